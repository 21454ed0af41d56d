package memory

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// ErrNotifierClosed refuses calls of a notifier or listener that was closed.
var ErrNotifierClosed = errors.New("the notifier is closed")

// Notifier calls its listeners in the process, within Notify. It can lose
// hints on purpose, as the service that it stands for does: see [Notifier.Lose]
// and [Notifier.Disconnect].
type Notifier struct {
	mu        sync.RWMutex
	closed    bool
	lost      func(ports.StoredEvent) bool
	away      bool
	listeners []*listener
}

var _ ports.Notifier = (*Notifier)(nil)

// NewNotifier returns a notifier without listeners.
func NewNotifier() *Notifier { return &Notifier{} }

// Lose sets which events are lost in silence; nil loses none.
func (n *Notifier) Lose(lost func(ports.StoredEvent) bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lost = lost
}

// Disconnect makes every listener unhealthy and loses all hints until
// [Notifier.Reconnect].
func (n *Notifier) Disconnect() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.away = true
}

// Reconnect ends Disconnect; every listener hears of the gap.
func (n *Notifier) Reconnect() {
	n.mu.Lock()
	n.away = false
	listeners := slices.Clone(n.listeners)
	n.mu.Unlock()
	for _, l := range listeners {
		l.gap()
	}
}

// Notify implements [ports.Notifier]; the handlers have returned when it does.
func (n *Notifier) Notify(ctx context.Context, events []ports.StoredEvent) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	n.mu.RLock()
	if n.closed {
		n.mu.RUnlock()
		return ErrNotifierClosed
	}
	if n.away {
		n.mu.RUnlock()
		return nil
	}
	if lost := n.lost; lost != nil {
		events = slices.DeleteFunc(slices.Clone(events), lost)
	}
	listeners := slices.Clone(n.listeners)
	n.mu.RUnlock()
	for _, l := range listeners {
		l.deliver(events)
	}
	return nil
}

// Listen implements [ports.Notifier]. A handler must not close its listener.
func (n *Notifier) Listen(ctx context.Context, handler ports.NotifyHandler) (ports.Listener, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return nil, ErrNotifierClosed
	}
	l := &listener{notifier: n, handler: handler, watched: map[domain.ProjectID]struct{}{}}
	n.listeners = append(n.listeners, l)
	return l, nil
}

// Close implements [ports.Notifier]; it waits for running handlers. Closing
// twice is fine.
func (n *Notifier) Close() error {
	n.mu.Lock()
	n.closed = true
	listeners := n.listeners
	n.listeners = nil
	n.mu.Unlock()
	for _, l := range listeners {
		l.end()
	}
	return nil
}

func (n *Notifier) remove(l *listener) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.listeners = slices.DeleteFunc(n.listeners, func(have *listener) bool { return have == l })
}

func (n *Notifier) connected() bool {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return !n.closed && !n.away
}

// listener is one gateway's ear.
type listener struct {
	notifier *Notifier
	handler  ports.NotifyHandler

	// calling is held during a call of the handler: one at a time.
	calling sync.Mutex
	closed  bool

	// mu guards watched apart from calling, so that a handler may watch.
	mu      sync.Mutex
	watched map[domain.ProjectID]struct{}
	ended   bool
}

var _ ports.Listener = (*listener)(nil)

// Watch implements [ports.Listener].
func (l *listener) Watch(ctx context.Context, project domain.ProjectID) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return ErrNotifierClosed
	}
	l.watched[project] = struct{}{}
	return nil
}

// Unwatch implements [ports.Listener].
func (l *listener) Unwatch(project domain.ProjectID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.watched, project)
}

// Healthy implements [ports.Listener].
func (l *listener) Healthy() bool {
	l.mu.Lock()
	ended := l.ended
	l.mu.Unlock()
	return !ended && l.notifier.connected()
}

// Close implements [ports.Listener]; it waits for a running handler.
func (l *listener) Close() error {
	l.notifier.remove(l)
	l.end()
	return nil
}

func (l *listener) end() {
	l.mu.Lock()
	l.ended = true
	l.mu.Unlock()
	l.calling.Lock()
	l.closed = true
	l.calling.Unlock()
}

func (l *listener) deliver(events []ports.StoredEvent) {
	l.calling.Lock()
	defer l.calling.Unlock()
	if heard := l.heard(events); len(heard) > 0 && !l.closed {
		l.handler.Events(heard)
	}
}

// heard copies the events of watched projects: handlers keep what they get.
func (l *listener) heard(events []ports.StoredEvent) []ports.StoredEvent {
	l.mu.Lock()
	defer l.mu.Unlock()
	heard := make([]ports.StoredEvent, 0, len(events))
	for _, e := range events {
		if _, ok := l.watched[e.ProjectID]; ok {
			heard = append(heard, e)
		}
	}
	return heard
}

func (l *listener) gap() {
	l.calling.Lock()
	defer l.calling.Unlock()
	if !l.closed {
		l.handler.Gap()
	}
}
