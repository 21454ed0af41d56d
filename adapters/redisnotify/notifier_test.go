package redisnotify

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/internal/testenv"
	"github.com/aivedio/aivedio/ports"
	"github.com/aivedio/aivedio/ports/porttest"
)

// dial returns a client that ends with the test.
func dial(t *testing.T, addr string) *redis.Client {
	t.Helper()
	rdb, err := Dial(ClientOptions{URL: "redis://" + addr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

func testConfig() NotifierConfig {
	return NotifierConfig{
		Prefix: "test:" + rand.Text() + ":", PingEvery: 500 * time.Millisecond,
		ReconnectEvery: 10 * time.Millisecond, NotifyTimeout: 2 * time.Second,
	}
}

// open returns a notifier that ends with the test.
func open(t *testing.T, rdb *redis.Client, cfg NotifierConfig) *Notifier {
	t.Helper()
	n := NewNotifier(rdb, cfg)
	t.Cleanup(func() { _ = n.Close() })
	return n
}

func TestNotifier(t *testing.T) {
	t.Parallel()
	server := testenv.Redis(t)
	t.Run("Suite", func(t *testing.T) {
		porttest.Notifier(t, func(t *testing.T) porttest.NotifierFixture {
			link := newLink(t, server.Addr)
			n := open(t, dial(t, link.addr), testConfig())
			return porttest.NotifierFixture{Notifier: n, Disconnect: func() { link.cut() }, Reconnect: link.mend}
		})
	})
}

// link is a wire to Redis that can be cut and mended.
type link struct {
	addr string

	mu  sync.Mutex
	ctx context.Context // done while the link is cut
	cut context.CancelFunc
	wg  sync.WaitGroup
}

func newLink(t *testing.T, upstream string) *link {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &link{addr: listener.Addr().String()}
	l.mend()
	l.wg.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			l.wg.Go(func() { l.carry(conn, upstream) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		l.mu.Lock()
		l.cut()
		l.mu.Unlock()
		l.wg.Wait()
	})
	return l
}

// mend makes new connections possible again.
func (l *link) mend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ctx, l.cut = context.WithCancel(context.Background())
}

// carry copies both ways until the link is cut.
func (l *link) carry(down net.Conn, upstream string) {
	defer func() { _ = down.Close() }()
	l.mu.Lock()
	ctx := l.ctx
	l.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	up, err := net.Dial("tcp", upstream)
	if err != nil {
		return
	}
	defer func() { _ = up.Close() }()
	ended := make(chan struct{}, 2)
	pipe := func(to, from net.Conn) {
		_, _ = io.Copy(to, from)
		ended <- struct{}{}
	}
	l.wg.Go(func() { pipe(up, down) })
	l.wg.Go(func() { pipe(down, up) })
	select {
	case <-ended:
	case <-ctx.Done():
	}
}

// ear counts what a listener hears.
type ear struct {
	events chan ports.StoredEvent
	gaps   chan struct{}
}

func newEar() *ear {
	return &ear{events: make(chan ports.StoredEvent, 1000), gaps: make(chan struct{}, 1000)}
}

func (e *ear) Events(events []ports.StoredEvent) {
	for _, event := range events {
		e.events <- event
	}
}

func (e *ear) Gap() { e.gaps <- struct{}{} }

func await[T any](t *testing.T, what string, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(15 * time.Second):
		t.Fatalf("waited in vain for %s", what)
		panic("unreachable")
	}
}

// awaitUnhealthy asks until the answer is no: health has no signal of its own.
func awaitUnhealthy(t *testing.T, l ports.Listener) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for l.Healthy() {
		await(t, "the listener to be unhealthy", tick.C)
	}
}

func project(b byte) domain.ProjectID { return domain.ProjectID{ID: domain.ID{b, 1}} }

func event(p domain.ProjectID, id int64) ports.StoredEvent {
	return ports.StoredEvent{
		Event: domain.Event{
			ProjectID: p, TenantID: domain.TenantID{ID: domain.ID{1}}, TaskID: domain.TaskID{ID: domain.ID{2}},
			Version: id, Type: domain.EventTaskStatusChanged,
		},
		EventID: id, CreatedAt: time.UnixMilli(1_700_000_000_000).UTC(),
	}
}

// TestRestartOfRedis stops and starts the server: the listener is unhealthy in
// between, Notify fails fast, Watch waits, and afterwards there is a gap and
// every watch holds again.
func TestRestartOfRedis(t *testing.T) {
	t.Parallel()
	server := testenv.Redis(t)
	n := open(t, dial(t, server.Addr), testConfig())
	e := newEar()
	l, err := n.Listen(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	for b := range byte(20) {
		if err := l.Watch(t.Context(), project(b)); err != nil {
			t.Fatal(err)
		}
	}
	server.Stop()
	awaitUnhealthy(t, l)
	begin := time.Now()
	if err := n.Notify(t.Context(), []ports.StoredEvent{event(project(1), 1)}); err == nil {
		t.Error("Notify without Redis succeeded")
	}
	if d := time.Since(begin); d > 3*time.Second {
		t.Errorf("Notify took %v", d)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	if err := l.Watch(ctx, project(100)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Watch without Redis: %v", err)
	}
	cancel()
	late := make(chan error, 1)
	go func() { late <- l.Watch(t.Context(), project(200)) }()
	server.Start()
	await(t, "the gap", e.gaps)
	if err := await(t, "the late watch", late); err != nil {
		t.Error(err)
	}
	for b := range byte(20) {
		if err := n.Notify(t.Context(), []ports.StoredEvent{event(project(b), 2)}); err != nil {
			t.Fatal(err)
		}
		if got := await(t, "an event after the restart", e.events); got.ProjectID != project(b) {
			t.Errorf("heard %v, want project %d", got.ProjectID, b)
		}
	}
	select {
	case <-e.gaps:
		t.Error("a second gap")
	default:
	}
}

// TestFrozenRedis pauses the server: nothing answers and nothing is closed.
func TestFrozenRedis(t *testing.T) {
	t.Parallel()
	server := testenv.Redis(t)
	cfg := testConfig()
	cfg.NotifyTimeout = 200 * time.Millisecond
	n := open(t, dial(t, server.Addr), cfg)
	e := newEar()
	l, err := n.Listen(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Watch(t.Context(), project(1)); err != nil {
		t.Fatal(err)
	}
	server.Pause()
	begin := time.Now()
	if err := n.Notify(t.Context(), []ports.StoredEvent{event(project(1), 1)}); err == nil {
		t.Error("Notify to a frozen Redis succeeded")
	}
	if d := time.Since(begin); d > time.Second {
		t.Errorf("Notify took %v, its time-out is 200ms", d)
	}
	awaitUnhealthy(t, l)
	server.Resume()
	await(t, "the gap", e.gaps)
	for {
		if err := n.Notify(t.Context(), []ports.StoredEvent{event(project(1), 2)}); err == nil {
			break
		}
	}
	for await(t, "the event after the gap", e.events).EventID != 2 {
	}
}

// TestSlowSubscriberIsCut overflows the output buffer that Redis keeps for a
// subscriber: Redis ends the connection, and the listener hears of a gap.
func TestSlowSubscriberIsCut(t *testing.T) {
	t.Parallel()
	server := testenv.RedisWith(t, map[string]string{"client-output-buffer-limit": "pubsub 64kb 32kb 1"})
	n := open(t, dial(t, server.Addr), testConfig())
	slow := &blockedEar{ear: newEar(), blocked: make(chan struct{})}
	l, err := n.Listen(t.Context(), slow)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Watch(t.Context(), project(1)); err != nil {
		t.Fatal(err)
	}
	batch := make([]ports.StoredEvent, 500)
	for i := range batch {
		batch[i] = event(project(1), int64(i+1))
	}
	for range 200 { // some 50 MB, more than the sockets hold
		if err := n.Notify(t.Context(), batch); err != nil {
			t.Fatal(err)
		}
	}
	close(slow.blocked)
	await(t, "the gap", slow.gaps)
}

// blockedEar breaks the rule that a handler must not block.
type blockedEar struct {
	*ear
	blocked chan struct{}
}

func (b *blockedEar) Events([]ports.StoredEvent) { <-b.blocked }

// TestUnsubscribes checks that Redis is told when the last project of a shard
// is no longer watched, and not before.
func TestUnsubscribes(t *testing.T) {
	t.Parallel()
	server := testenv.Redis(t)
	rdb := dial(t, server.Addr)
	cfg := testConfig()
	cfg.Shards = 1
	n := open(t, rdb, cfg)
	l, err := n.Listen(t.Context(), newEar())
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range []byte{1, 2} {
		if err := l.Watch(t.Context(), project(b)); err != nil {
			t.Fatal(err)
		}
	}
	subscribers := func() int64 {
		counts, err := rdb.PubSubNumSub(t.Context(), n.channel(0)).Result()
		if err != nil {
			t.Fatal(err)
		}
		return counts[n.channel(0)]
	}
	l.Unwatch(project(1))
	if subscribers() != 1 {
		t.Error("unsubscribed while a project is watched")
	}
	l.Unwatch(project(2))
	deadline := time.Now().Add(10 * time.Second)
	for subscribers() != 0 {
		if time.Now().After(deadline) {
			t.Fatal("still subscribed without a watched project")
		}
	}
	if err := l.Watch(t.Context(), project(2)); err != nil {
		t.Fatal(err)
	}
	if subscribers() != 1 {
		t.Error("Watch returned before the subscription")
	}
}

func TestDialRefusesWithoutEcho(t *testing.T) {
	t.Parallel()
	_, err := Dial(ClientOptions{URL: "redis://:geheim@%zz"})
	if err == nil {
		t.Fatal("a bad URL was accepted")
	}
	if got := err.Error(); got != "redis URL: want redis://user:password@host:port/db" {
		t.Errorf("the error quotes its input: %s", got)
	}
}
