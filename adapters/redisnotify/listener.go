package redisnotify

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// listener is one gateway's ear: a connection of its own, renewed for as long
// as the listener lives. One goroutine reads and calls the handler.
type listener struct {
	n       *Notifier
	handler ports.NotifyHandler
	done    chan struct{}
	wg      sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	watched map[domain.ProjectID]*watch
	shards  map[int]*shard
	session *session // nil while there is no connection
}

// watch is a project that is watched, or for which a Watch waits.
type watch struct {
	waiting   int
	confirmed bool
}

// shard is a channel with its count of watched projects.
type shard struct {
	projects int
	state    shardState
	// ready is closed while Redis has confirmed the subscription.
	ready chan struct{}
}

// shardState is what was last said to Redis in the session. A command is sent
// only when the one before is confirmed: a late confirmation of a former
// subscription can then never be taken for that of a new one.
type shardState int

const (
	shardIdle shardState = iota
	shardSubscribing
	shardSubscribed
	shardUnsubscribing
)

var _ ports.Listener = (*listener)(nil)

func newListener(n *Notifier, handler ports.NotifyHandler) *listener {
	l := &listener{
		n: n, handler: handler, done: make(chan struct{}),
		watched: map[domain.ProjectID]*watch{}, shards: map[int]*shard{},
	}
	l.wg.Go(l.run)
	return l
}

// run keeps a session alive until the listener closes.
func (l *listener) run() {
	for first := true; ; first = false {
		connected, err := l.serve(first)
		select {
		case <-l.done:
			return
		default:
		}
		if connected || first { // one line per outage, not one per try
			l.n.cfg.Logger.Warn("no Redis subscription, connecting again", "error", err)
		}
		select {
		case <-l.done:
			return
		case <-time.After(l.n.cfg.ReconnectEvery):
		}
	}
}

// Watch implements [ports.Listener]. While Redis is away it waits for the
// context. A failed Watch leaves nothing watched.
func (l *listener) Watch(ctx context.Context, project domain.ProjectID) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return ErrClosed
	}
	w := l.watched[project]
	s := l.shard(project)
	if w == nil {
		w = &watch{}
		l.watched[project] = w
		s.projects++
		l.reconcile()
	}
	w.waiting++
	ready := s.ready
	l.mu.Unlock()

	err := l.confirmed(ctx, ready)
	l.mu.Lock()
	defer l.mu.Unlock()
	w.waiting--
	if err == nil {
		w.confirmed = true
		return nil
	}
	if !w.confirmed && w.waiting == 0 && l.watched[project] == w {
		l.forget(project)
	}
	return err
}

func (l *listener) confirmed(ctx context.Context, ready <-chan struct{}) error {
	select {
	case <-ready:
		return nil
	case <-l.done:
		return ErrClosed
	case <-ctx.Done():
		return fmt.Errorf("the subscription is not confirmed: %w", ctx.Err())
	}
}

// Unwatch implements [ports.Listener].
func (l *listener) Unwatch(project domain.ProjectID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.watched[project]; ok {
		l.forget(project)
	}
}

// forget ends the watch of a project; the caller holds mu.
func (l *listener) forget(project domain.ProjectID) {
	delete(l.watched, project)
	if s := l.shard(project); s.projects > 0 {
		s.projects--
		l.reconcile()
	}
}

// shard returns the project's shard; the caller holds mu.
func (l *listener) shard(project domain.ProjectID) *shard {
	number := l.n.shard(project)
	s := l.shards[number]
	if s == nil {
		s = &shard{ready: make(chan struct{})}
		l.shards[number] = s
	}
	return s
}

// reconcile wakes the session's writer; the caller holds mu.
func (l *listener) reconcile() {
	if l.session != nil {
		l.session.wakeWriter()
	}
}

// Healthy implements [ports.Listener].
func (l *listener) Healthy() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.closed && l.session != nil && l.session.alive
}

// Close implements [ports.Listener]; it waits for a running handler. Closing
// twice is fine.
func (l *listener) Close() error {
	l.n.remove(l)
	l.mu.Lock()
	if !l.closed {
		l.closed = true
		close(l.done)
	}
	if l.session != nil {
		l.session.end(ErrClosed)
	}
	l.mu.Unlock()
	l.wg.Wait()
	return nil
}

// heard keeps the events of watched projects: a shard carries others too.
func (l *listener) heard(events []ports.StoredEvent) []ports.StoredEvent {
	l.mu.Lock()
	defer l.mu.Unlock()
	heard := events[:0]
	for _, e := range events {
		if l.watched[e.ProjectID] != nil {
			heard = append(heard, e)
		}
	}
	return heard
}

// shardOf reads a channel name; −1 when it is none of ours.
func (n *Notifier) shardOf(channel string) int {
	suffix, ok := strings.CutPrefix(channel, n.cfg.Prefix+"events:")
	number, err := strconv.Atoi(suffix)
	if !ok || err != nil || number < 0 || number >= n.cfg.Shards {
		return -1
	}
	return number
}
