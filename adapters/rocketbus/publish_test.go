package rocketbus

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	rocketmq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/primitive"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/internal/wire"
	"github.com/aivedio/aivedio/ports"
)

// fakeProducer stands for the library's: it answers as it is told.
type fakeProducer struct {
	rocketmq.Producer
	answer func(ctx context.Context, queue *primitive.MessageQueue, messages []*primitive.Message) (primitive.SendStatus, error)

	mu   sync.Mutex
	sent []*primitive.Message
}

func (p *fakeProducer) SendSync(ctx context.Context, messages ...*primitive.Message) (*primitive.SendResult, error) {
	status, err := p.answer(ctx, messages[0].Queue, messages)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sent = append(p.sent, messages...)
	return &primitive.SendResult{Status: status}, nil
}

func (p *fakeProducer) Shutdown() error { return nil }

// fakeBus is a bus with queues on two brokers and no network.
func fakeBus(p *fakeProducer, cfg Config) *Bus {
	cfg.NameServers = []string{"127.0.0.1:1"}
	b := &Bus{cfg: cfg.WithDefaults(), producer: p, suspects: map[string]bool{}}
	for _, broker := range []string{"a", "b"} {
		for i := range 4 {
			b.queues = append(b.queues, primitive.MessageQueue{Topic: b.cfg.Topic, BrokerName: broker, QueueId: i})
		}
	}
	return b
}

func testEvent(project byte, id int64) ports.StoredEvent {
	return ports.StoredEvent{
		Event: domain.Event{
			TenantID: domain.TenantID{ID: domain.ID{1}}, ProjectID: domain.ProjectID{ID: domain.ID{project, 1}},
			TaskID: domain.TaskID{ID: domain.ID{project, 2}}, Version: id, Type: domain.EventTaskStatusChanged,
		},
		EventID: id, CreatedAt: time.UnixMilli(1_700_000_000_000 + id).UTC(),
	}
}

// testRows are events 1 to n of the given projects, newest project first.
func testRows(projects, n int) []ports.OutboxRow {
	var rows []ports.OutboxRow
	for id := range n {
		for p := projects; p > 0; p-- {
			rows = append(rows, ports.OutboxRow{Event: testEvent(byte(p), int64(id+1))})
		}
	}
	return rows
}

func ok(context.Context, *primitive.MessageQueue, []*primitive.Message) (primitive.SendStatus, error) {
	return primitive.SendOK, nil
}

// TestMessageForm checks what the specification promises of a message.
func TestMessageForm(t *testing.T) {
	t.Parallel()
	p := &fakeProducer{answer: ok}
	b := fakeBus(p, Config{})
	e := testEvent(3, 7)
	if err := b.Publish(t.Context(), []ports.OutboxRow{{Event: e}}); err != nil {
		t.Fatal(err)
	}
	m := p.sent[0]
	if got := m.GetKeys(); got != wire.TaskID(e.TaskID) {
		t.Errorf("KEYS %q", got)
	}
	if got := m.GetTags(); got != "task.status.changed" {
		t.Errorf("TAG %q", got)
	}
	if m.Topic != "aivedio-task-events" {
		t.Errorf("topic %q", m.Topic)
	}
	got, err := wire.ParseMessage(m.Body)
	if err != nil || got.Cursor() != e.Cursor() {
		t.Errorf("body %s: %v", m.Body, err)
	}
}

// TestBatches checks size, order and queue of what is sent.
func TestBatches(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	queues := map[string]primitive.MessageQueue{} // project → queue
	last := map[string]int64{}
	p := &fakeProducer{answer: func(_ context.Context, q *primitive.MessageQueue, messages []*primitive.Message) (primitive.SendStatus, error) {
		mu.Lock()
		defer mu.Unlock()
		bytes := 0
		for _, m := range messages {
			bytes += len(m.Body)
			e, err := wire.ParseMessage(m.Body)
			if err != nil {
				return 0, err
			}
			project := e.ProjectID.String()
			if before, ok := queues[project]; ok && before != *q || *m.Queue != *q {
				t.Errorf("project %s is in queues %v and %v", project, before, q)
			}
			queues[project] = *q
			if e.EventID != last[project]+1 {
				t.Errorf("project %s: event %d after %d", project, e.EventID, last[project])
			}
			last[project] = e.EventID
		}
		if len(messages) > 10 || bytes > 4000 {
			t.Errorf("a batch of %d messages, %d bytes", len(messages), bytes)
		}
		return primitive.SendOK, nil
	}}
	b := fakeBus(p, Config{BatchSize: 10, BatchBytes: 4000})
	rows := testRows(100, 12)
	if err := b.Publish(t.Context(), rows); err != nil {
		t.Fatal(err)
	}
	if len(p.sent) != len(rows) {
		t.Errorf("sent %d of %d", len(p.sent), len(rows))
	}
	used := map[primitive.MessageQueue]int{}
	for _, q := range queues {
		used[q]++
	}
	if len(used) != 8 {
		t.Errorf("100 projects use %d queues of 8: %v", len(used), used)
	}
}

// TestOnlySendOKCounts: the library returns no error for these.
func TestOnlySendOKCounts(t *testing.T) {
	t.Parallel()
	for _, status := range []primitive.SendStatus{
		primitive.SendFlushDiskTimeout, primitive.SendFlushSlaveTimeout, primitive.SendSlaveNotAvailable, primitive.SendUnknownError,
	} {
		p := &fakeProducer{answer: func(context.Context, *primitive.MessageQueue, []*primitive.Message) (primitive.SendStatus, error) {
			return status, nil
		}}
		if err := fakeBus(p, Config{}).Publish(t.Context(), testRows(1, 1)); err == nil {
			t.Errorf("status %d was taken for success", status)
		}
	}
}

// TestFailedLane: a lane stops at its first failed batch, and only the projects
// from there on have failed.
func TestFailedLane(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	var mu sync.Mutex
	calls := map[primitive.MessageQueue]int{}
	p := &fakeProducer{answer: func(_ context.Context, q *primitive.MessageQueue, _ []*primitive.Message) (primitive.SendStatus, error) {
		mu.Lock()
		defer mu.Unlock()
		if calls[*q]++; q.BrokerName == "b" && calls[*q] > 1 {
			return 0, broken
		}
		return primitive.SendOK, nil
	}}
	b := fakeBus(p, Config{BatchSize: 3})
	rows := testRows(64, 2)
	err := b.Publish(t.Context(), rows)
	var failed *ports.PublishError
	if !errors.As(err, &failed) || !errors.Is(err, broken) {
		t.Fatalf("publish: %v", err)
	}
	stored := map[string]int{}
	for _, m := range p.sent {
		e, _ := wire.ParseMessage(m.Body)
		stored[e.ProjectID.String()]++
	}
	for _, r := range rows {
		project := r.Event.ProjectID.String()
		whole := stored[project] == 2
		if whole == (failed.FailedProjects[project] != nil) {
			t.Errorf("project %s: %d of 2 rows are stored, its error is %v", project, stored[project], failed.FailedProjects[project])
		}
	}
	for q, n := range calls {
		if q.BrokerName == "b" && n != 2 {
			t.Errorf("queue %v was sent to %d times, want 2: the rest would overtake", q, n)
		}
	}
}

// TestDeadBrokerCostsOneTry: after a failure one queue of the broker is tried
// before the others, and the sound broker's go on.
func TestDeadBrokerCostsOneTry(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	tries := map[string]int{}
	down := true
	p := &fakeProducer{answer: func(_ context.Context, q *primitive.MessageQueue, _ []*primitive.Message) (primitive.SendStatus, error) {
		mu.Lock()
		defer mu.Unlock()
		tries[q.BrokerName]++
		if down && q.BrokerName == "a" {
			return 0, errors.New("refused")
		}
		return primitive.SendOK, nil
	}}
	b := fakeBus(p, Config{})
	rows := testRows(100, 1)
	publish := func() (failed int) {
		t.Helper()
		clear(tries)
		err := b.Publish(t.Context(), rows)
		var e *ports.PublishError
		if errors.As(err, &e) {
			return len(e.FailedProjects)
		}
		return 0
	}
	lost := publish()
	if lost == 0 || lost == 100 || tries["a"] != 4 {
		t.Fatalf("first: %d projects failed, %v", lost, tries)
	}
	if again := publish(); again != lost || tries["a"] != 1 || tries["b"] != 4 {
		t.Errorf("second: %d projects failed, want %d; %v", again, lost, tries)
	}
	down = false
	if back := publish(); back != 0 || tries["a"] != 4 {
		t.Errorf("back: %d projects failed, %v", back, tries)
	}
}

// TestPublishDoesNotWaitForLibrary: the library's lock lets a send outlast its
// context; Publish does not, and Close waits for the send.
func TestPublishDoesNotWaitForLibrary(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		p := &fakeProducer{answer: func(context.Context, *primitive.MessageQueue, []*primitive.Message) (primitive.SendStatus, error) {
			<-release
			return primitive.SendOK, nil
		}}
		b := fakeBus(p, Config{})
		begin := time.Now()
		err := b.Publish(t.Context(), testRows(20, 1))
		var failed *ports.PublishError
		if !errors.As(err, &failed) || len(failed.FailedProjects) != 20 || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("publish: %v", err)
		}
		if d := time.Since(begin); d != 5*time.Second {
			t.Errorf("publish took %v", d)
		}
		closed := make(chan struct{})
		go func() { _ = b.Close(); close(closed) }()
		synctest.Wait()
		select {
		case <-closed:
			t.Error("Close did not wait for the send")
		default:
		}
		close(release)
		<-closed
	})
}

func TestProperty(t *testing.T) {
	t.Parallel()
	if got := property("a\x01b\x02c d|e\x7f\né.1"); got != "abcdeé.1" {
		t.Errorf("got %q", got)
	}
}

func TestConfigValidate(t *testing.T) {
	t.Parallel()
	good := Config{NameServers: []string{"127.0.0.1:9876"}}.WithDefaults()
	if err := good.Validate(); err != nil {
		t.Errorf("the defaults are refused: %v", err)
	}
	bad := Config{
		Topic: "with space", Queues: -1, BatchSize: 5000, BatchBytes: 1 << 30, HandlerTimeout: time.Hour, SendTimeout: time.Hour,
	}.WithDefaults()
	err := bad.Validate()
	for _, want := range []string{"name server", "with space", "queues", "batch size", "batch bytes", "handler time-out", "send time-out"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not reported: %v", want, err)
		}
	}
	if _, err := Open(t.Context(), Config{NameServers: []string{"nowhere"}}); err == nil {
		t.Error("a name server without a port was accepted")
	}
}
