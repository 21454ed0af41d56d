package redisnotify

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"

	"github.com/redis/go-redis/v9"
)

// session is one connection of a listener. The library would reconnect in
// silence; a session ends with its connection instead, so that the listener
// knows what was confirmed on which one.
type session struct {
	l    *listener
	ps   *redis.PubSub
	wake chan struct{}
	over chan struct{}

	// alive is set by the first answer; guarded by the listener's mu.
	alive bool
	// gapOwed is set until the listener has heard of the gap; guarded likewise.
	gapOwed bool

	endOnce sync.Once
	cause   error // of the end; written before over is closed
}

// errSilent ends a connection whose peer does not answer.
var errSilent = errors.New("no answer to a ping")

// serve runs one session to its end, and reports whether Redis ever answered.
// Every session but the first means a gap.
func (l *listener) serve(first bool) (connected bool, err error) {
	s := &session{
		l: l, ps: l.n.rdb.Subscribe(context.Background()),
		wake: make(chan struct{}, 1), over: make(chan struct{}), gapOwed: !first,
	}
	if !s.begin() {
		_ = s.ps.Close()
		return false, ErrClosed
	}
	var writer sync.WaitGroup
	writer.Go(s.write)
	s.end(s.read())
	writer.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.session = nil
	for _, sh := range l.shards {
		sh.lost()
	}
	return s.alive, s.cause
}

// begin makes the session the listener's.
func (s *session) begin() bool {
	l := s.l
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	l.session = s
	s.wakeWriter()
	return true
}

// end closes the connection, which ends read and write; the first cause stays.
func (s *session) end(cause error) {
	s.endOnce.Do(func() {
		s.cause = cause
		close(s.over)
		s.l.wg.Go(func() { _ = s.ps.Close() }) // waits for a dial that is under way
	})
}

func (s *session) wakeWriter() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// read receives until the connection fails.
func (s *session) read() error {
	ctx := context.Background()
	if err := s.ping(ctx); err != nil {
		return err
	}
	asked := true
	for {
		reply, err := s.ps.ReceiveTimeout(ctx, s.l.n.cfg.PingEvery)
		select {
		case <-s.over:
			return ErrClosed
		default:
		}
		var timeout net.Error
		switch {
		case err == nil:
			asked = false
			s.receive(reply)
		case !errors.As(err, &timeout) || !timeout.Timeout():
			return err
		case asked:
			return errSilent
		default:
			if err := s.ping(ctx); err != nil {
				return err
			}
			asked = true
		}
	}
}

func (s *session) ping(ctx context.Context) error {
	if err := s.ps.Ping(ctx); err != nil {
		return fmt.Errorf("ping: %w", err)
	}
	return nil
}

// receive handles one answer of Redis.
func (s *session) receive(reply any) {
	l := s.l
	switch r := reply.(type) {
	case *redis.Subscription:
		s.confirm(r)
	case *redis.Message:
		events, err := decode([]byte(r.Payload))
		if err != nil {
			l.n.cfg.Logger.Warn("a hint cannot be read", "channel", r.Channel, "error", err)
		}
		if heard := l.heard(events); len(heard) > 0 {
			l.handler.Events(heard)
		}
	}
	l.mu.Lock()
	if !s.alive {
		s.alive = true
		l.n.cfg.Logger.Info("a Redis subscription is connected")
	}
	gap := s.gapOwed && l.allSubscribed()
	if gap {
		s.gapOwed = false
	}
	l.mu.Unlock()
	if gap {
		l.handler.Gap() // now that all is subscribed again, a read misses nothing
	}
}

// confirm records what Redis has confirmed.
func (s *session) confirm(r *redis.Subscription) {
	l := s.l
	l.mu.Lock()
	defer l.mu.Unlock()
	sh := l.shards[l.n.shardOf(r.Channel)]
	if sh == nil {
		return
	}
	switch {
	case r.Kind == "subscribe" && sh.state == shardSubscribing:
		sh.state = shardSubscribed
		close(sh.ready)
	case r.Kind == "unsubscribe" && sh.state == shardUnsubscribing:
		sh.state = shardIdle
	}
	s.wakeWriter() // what was wanted meanwhile
}

// allSubscribed reports whether every watched project is heard; the caller
// holds mu.
func (l *listener) allSubscribed() bool {
	for _, sh := range l.shards {
		if sh.projects > 0 && sh.state != shardSubscribed {
			return false
		}
	}
	return true
}

// lost forgets a confirmation with its connection; the caller holds mu.
func (sh *shard) lost() {
	sh.renew()
	sh.state = shardIdle
}

// renew opens a new channel for waiters unless an open one is there.
func (sh *shard) renew() {
	select {
	case <-sh.ready:
		sh.ready = make(chan struct{})
	default:
	}
}

// write sends what the listener wants and Redis does not know yet.
func (s *session) write() {
	ctx := context.Background()
	for {
		select {
		case <-s.over:
			return
		case <-s.wake:
		}
		subscribe, unsubscribe := s.wanted()
		var err error
		if len(subscribe) > 0 {
			err = s.ps.Subscribe(ctx, subscribe...)
		}
		if len(unsubscribe) > 0 && err == nil {
			err = s.ps.Unsubscribe(ctx, unsubscribe...)
		}
		if err != nil {
			s.end(fmt.Errorf("subscribe: %w", err))
			return
		}
	}
}

// wanted marks and returns the channels whose state has to change.
func (s *session) wanted() (subscribe, unsubscribe []string) {
	l := s.l
	l.mu.Lock()
	defer l.mu.Unlock()
	for number, sh := range l.shards {
		switch {
		case sh.projects > 0 && sh.state == shardIdle:
			sh.state = shardSubscribing
			subscribe = append(subscribe, l.n.channel(number))
		case sh.projects == 0 && sh.state == shardSubscribed:
			sh.state = shardUnsubscribing
			sh.renew()
			unsubscribe = append(unsubscribe, l.n.channel(number))
		}
	}
	return subscribe, unsubscribe
}
