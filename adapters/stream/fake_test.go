package stream

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aivedio/aivedio/adapters/memory"
	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/internal/wire"
	"github.com/aivedio/aivedio/ports"
)

// fakeEvents is a store of streams that can fail and go back in time.
type fakeEvents struct {
	mu      sync.Mutex
	streams map[domain.ProjectID][]ports.StoredEvent
	// oldest is the first event that is still kept.
	oldest int64
	err    error
	reads  int
	// frozen: every call waits for the end of its context.
	frozen bool
}

var _ ports.Events = (*fakeEvents)(nil)

func (f *fakeEvents) head(p domain.ProjectID) domain.Cursor {
	if events := f.streams[p]; len(events) > 0 {
		return events[len(events)-1].Cursor()
	}
	return domain.Cursor{}
}

func (f *fakeEvents) Head(ctx context.Context, p domain.ProjectID) (domain.Cursor, error) {
	f.enter(ctx)
	defer f.mu.Unlock()
	return f.head(p), errors.Join(f.err, ctx.Err())
}

func (f *fakeEvents) After(ctx context.Context, p domain.ProjectID, c domain.Cursor, limit int) (ports.EventPage, error) {
	f.enter(ctx)
	defer f.mu.Unlock()
	f.reads++
	if err := errors.Join(f.err, ctx.Err()); err != nil {
		return ports.EventPage{}, err
	}
	events := f.streams[p]
	page := ports.EventPage{Head: f.head(p)}
	switch {
	case c.EventID > int64(len(events)):
		page.Reset = ports.ResetFuture
		return page, nil
	case c.EventID > 0 && c.Tag != "" && events[c.EventID-1].Cursor() != c:
		page.Reset = ports.ResetTag
		return page, nil
	case c.EventID < f.oldest:
		page.Reset = ports.ResetExpired
		return page, nil
	}
	rest := events[c.EventID:]
	page.Events = append(page.Events, rest[:min(limit, len(rest))]...)
	return page, nil
}

func (f *fakeEvents) Since(ctx context.Context, at time.Time, limit int) ([]ports.StoredEvent, error) {
	f.enter(ctx)
	defer f.mu.Unlock()
	if err := errors.Join(f.err, ctx.Err()); err != nil {
		return nil, err
	}
	var found []ports.StoredEvent
	for _, events := range f.streams {
		for _, e := range events {
			if !e.CreatedAt.Before(at) && len(found) < limit {
				found = append(found, e)
			}
		}
	}
	return found, nil
}

func (f *fakeEvents) Heads(ctx context.Context, projects []domain.ProjectID) (map[domain.ProjectID]int64, error) {
	f.enter(ctx)
	defer f.mu.Unlock()
	heads := map[domain.ProjectID]int64{}
	for _, p := range projects {
		if events := f.streams[p]; len(events) > 0 {
			heads[p] = int64(len(events))
		}
	}
	return heads, errors.Join(f.err, ctx.Err())
}

// freeze makes every call wait for the end of its context.
func (f *fakeEvents) freeze(frozen bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.frozen = frozen
}

// enter takes the lock when the store answers at all.
func (f *fakeEvents) enter(ctx context.Context) {
	f.mu.Lock()
	if f.frozen {
		f.mu.Unlock()
		<-ctx.Done()
		f.mu.Lock()
	}
}

func (f *fakeEvents) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
}

// truncate is a restore that lost the events after keep.
func (f *fakeEvents) truncate(p domain.ProjectID, keep int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.streams[p] = f.streams[p][:keep:keep]
}

var (
	testProject = domain.ProjectID{ID: domain.ID{15: 1}}
	taskA       = domain.TaskID{ID: domain.ID{15: 0xa}}
	taskB       = domain.TaskID{ID: domain.ID{15: 0xb}}
)

// bench is a hub with its surroundings, inside a synctest bubble.
type bench struct {
	t        *testing.T
	hub      *Hub
	store    *fakeEvents
	notifier *memory.Notifier
}

// newBench starts a hub whose delta query is off unless the test sets it.
func newBench(t *testing.T, change func(*Config)) *bench {
	t.Helper()
	b := &bench{t: t, store: &fakeEvents{streams: map[domain.ProjectID][]ports.StoredEvent{}}, notifier: memory.NewNotifier()}
	cfg := Config{
		Events: b.store, Notifier: b.notifier, Logger: slog.New(slog.DiscardHandler),
		Rand: func() float64 { return 0.5 }, Delta: 24 * time.Hour, DeltaUnhealthy: 24 * time.Hour,
	}
	if change != nil {
		change(&cfg)
	}
	hub, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	b.hub = hub
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- hub.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	synctest.Wait()
	return b
}

// store1 commits an event without telling the notifier.
func (b *bench) store1(task domain.TaskID, status domain.Status, stage domain.Stage, progress int) ports.StoredEvent {
	b.store.mu.Lock()
	defer b.store.mu.Unlock()
	events := b.store.streams[testProject]
	e := ports.StoredEvent{
		Event: domain.Event{
			TenantID: domain.TenantID{ID: domain.ID{1}}, ProjectID: testProject, TaskID: task, Type: domain.EventTaskStatusChanged,
			Version: int64(len(events) + 1), Status: status, Phase: domain.Phase(status), Stage: stage, Progress: &progress,
			Source: domain.SourcePoll,
		},
		EventID: int64(len(events) + 1), CreatedAt: time.Now().UTC().Truncate(time.Millisecond),
	}
	b.store.streams[testProject] = append(events, e)
	return e
}

func (b *bench) notify(events ...ports.StoredEvent) {
	if err := b.notifier.Notify(context.Background(), events); err != nil {
		b.t.Error(err)
	}
}

// commit stores an event and notifies.
func (b *bench) commit(task domain.TaskID) ports.StoredEvent {
	e := b.store1(task, "running", domain.StageGenerating, 5)
	b.notify(e)
	return e
}

// block is one block of an SSE stream.
type block struct{ id, event, data, comment, retry string }

// client reads a stream over a pipe.
type client struct {
	t      *testing.T
	conn   net.Conn
	header http.Header
	status int
	cancel context.CancelFunc
	done   chan error

	// turn holds the token without which the client does not read on.
	turn chan struct{}

	mu     sync.Mutex
	blocks []block
}

// Read takes what the stream wrote, when it is its turn.
func (c *client) Read(p []byte) (int, error) {
	n, err := c.conn.Read(p)
	<-c.turn
	c.turn <- struct{}{}
	return n, err
}

// stall makes the client slow until resume; one more write still goes through.
func (c *client) stall()  { <-c.turn }
func (c *client) resume() { c.turn <- struct{}{} }

// pipeWriter is a response over a pipe: it blocks as a socket does.
type pipeWriter struct {
	c    *client
	conn net.Conn
}

func (w pipeWriter) Header() http.Header                 { return w.c.header }
func (w pipeWriter) WriteHeader(status int)              { w.c.status = status }
func (w pipeWriter) Write(p []byte) (int, error)         { return w.conn.Write(p) }
func (w pipeWriter) Flush()                              {}
func (w pipeWriter) SetWriteDeadline(at time.Time) error { return w.conn.SetWriteDeadline(at) }

// open starts a stream and waits until it is served as far as it goes; a dead
// client takes nothing at all.
func (b *bench) open(req StreamRequest, target string, dead bool) *client {
	near, far := net.Pipe()
	ctx, cancel := context.WithCancel(b.t.Context())
	c := &client{t: b.t, conn: near, header: http.Header{}, cancel: cancel, done: make(chan error, 1), turn: make(chan struct{}, 1)}
	c.turn <- struct{}{}
	if req.Project == (domain.ProjectID{}) {
		req.Project = testProject
	}
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	r.Header.Set("Accept", "text/event-stream")
	go func() {
		c.done <- b.hub.ServeEvents(pipeWriter{c, far}, r, req)
		_ = far.Close()
	}()
	if !dead {
		go c.read()
	}
	b.t.Cleanup(func() {
		cancel()
		_ = near.Close()
		synctest.Wait()
	})
	synctest.Wait()
	return c
}

func (c *client) read() {
	scanner := bufio.NewScanner(c)
	var now block
	for scanner.Scan() {
		line := scanner.Text()
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "":
			c.mu.Lock()
			c.blocks = append(c.blocks, now)
			c.mu.Unlock()
			now = block{}
		case name == "":
			now.comment = value
		case name == "id":
			now.id = value
		case name == "event":
			now.event = value
		case name == "data":
			now.data = value
		case name == "retry":
			now.retry = value
		}
	}
}

// all waits until the bubble is idle and returns what arrived.
func (c *client) all() []block {
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]block(nil), c.blocks...)
}

// ids are the numbers of the task events that arrived.
func (c *client) ids() []int64 {
	var ids []int64
	for _, b := range c.all() {
		if b.event != wire.StreamEvent {
			continue
		}
		var e wire.Event
		if err := json.Unmarshal([]byte(b.data), &e); err != nil {
			c.t.Errorf("data %q: %v", b.data, err)
		}
		ids = append(ids, e.EventID)
	}
	return ids
}

// named are the blocks of a control event.
func (c *client) named(event string) []block {
	var found []block
	for _, b := range c.all() {
		if b.event == event {
			found = append(found, b)
		}
	}
	return found
}

func (c *client) ended() bool {
	synctest.Wait()
	select {
	case err := <-c.done:
		if err != nil {
			c.t.Errorf("ServeEvents: %v", err)
		}
		return true
	default:
		return false
	}
}

// poll runs a long-poll to its end.
func (b *bench) poll(req StreamRequest, target string) (pollAnswer, error) {
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(b.t.Context(), http.MethodGet, target, nil)
	r.Header.Set("Accept", "application/json")
	req.Project = testProject
	if err := b.hub.ServeEvents(w, r, req); err != nil {
		return pollAnswer{}, err
	}
	body, err := io.ReadAll(w.Body)
	if err != nil {
		return pollAnswer{}, err
	}
	var a pollAnswer
	return a, json.Unmarshal(body, &a)
}

func upTo(n int64) []int64 {
	var ids []int64
	for i := int64(1); i <= n; i++ {
		ids = append(ids, i)
	}
	return ids
}
