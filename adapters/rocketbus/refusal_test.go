package rocketbus

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/apache/rocketmq-client-go/v2/primitive"

	"github.com/aivedio/aivedio/internal/wire"
	"github.com/aivedio/aivedio/ports"
)

// TestRefusedProject: a message that the broker never takes holds up its own project
// only, from that message on.
func TestRefusedProject(t *testing.T) {
	t.Parallel()
	const poisoned, poison = 7, 3 // the project and its event
	p := &fakeProducer{answer: func(_ context.Context, _ *primitive.MessageQueue, messages []*primitive.Message) (primitive.SendStatus, error) {
		for _, m := range messages {
			if e, err := wire.ParseMessage(m.Body); err == nil && e.ProjectID.ID[0] == poisoned && e.EventID == poison {
				return 0, errors.New("CODE: 13, DESC: the message is illegal, maybe msg body or properties length not matched")
			}
		}
		return primitive.SendOK, nil
	}}
	b := fakeBus(p, Config{BatchSize: 5})
	rows := testRows(60, 6)
	err := b.Publish(t.Context(), rows)
	var failed *ports.PublishError
	if !errors.As(err, &failed) || len(failed.FailedProjects) != 1 {
		t.Fatalf("publish: %v, want one project to fail", err)
	}
	if cause := failed.FailedProjects[testEvent(poisoned, 1).ProjectID.String()]; !errors.Is(cause, ports.ErrRefused) {
		t.Errorf("the project failed with %v, want ErrRefused", cause)
	}
	next := map[byte]int64{}
	for _, m := range p.sent {
		e, err := wire.ParseMessage(m.Body)
		if err != nil {
			t.Fatal(err)
		}
		project := e.ProjectID.ID[0]
		if next[project]++; e.EventID != next[project] || project == poisoned && e.EventID >= poison {
			t.Errorf("project %d: event %d was sent as number %d", project, e.EventID, next[project])
		}
	}
	for project := byte(1); project <= 60; project++ {
		if project != poisoned && next[project] != 6 {
			t.Errorf("project %d: %d of 6 events were sent", project, next[project])
		}
	}
	if b.suspect("a") || b.suspect("b") {
		t.Error("a broker that answers is suspected")
	}
}

// TestBrokerFaultIsNoRefusal: whatever else a broker answers may pass.
func TestBrokerFaultIsNoRefusal(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"CODE: 2, DESC: [TIMEOUT_CLEAN_QUEUE]broker busy", "CODE: 14, DESC: disk full", "request timeout", "CODE: 130, DESC: x", "dial tcp: refused"} {
		p := &fakeProducer{answer: func(context.Context, *primitive.MessageQueue, []*primitive.Message) (primitive.SendStatus, error) {
			return 0, errors.New(text)
		}}
		err := fakeBus(p, Config{}).Publish(t.Context(), testRows(1, 1))
		if err == nil || errors.Is(err, ports.ErrRefused) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestMessageAsItIs: a row that has its message is sent without another encoding.
func TestMessageAsItIs(t *testing.T) {
	t.Parallel()
	p := &fakeProducer{answer: ok}
	e := testEvent(3, 7)
	row := ports.OutboxRow{Event: e, Message: []byte(`{"a": 1}`)}
	if err := fakeBus(p, Config{}).Publish(t.Context(), []ports.OutboxRow{row}); err != nil {
		t.Fatal(err)
	}
	if m := p.sent[0]; string(m.Body) != `{"a": 1}` || m.GetKeys() != wire.TaskID(e.TaskID) || m.GetTags() != "task.status.changed" {
		t.Errorf("body %s, keys %q, tag %q", m.Body, m.GetKeys(), m.GetTags())
	}
}

// TestFailureInTheMiddleOfARefusal: the broker goes away while a refused batch is
// sent project by project.
func TestFailureInTheMiddleOfARefusal(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	calls := 0
	p := &fakeProducer{answer: func(context.Context, *primitive.MessageQueue, []*primitive.Message) (primitive.SendStatus, error) {
		mu.Lock()
		defer mu.Unlock()
		switch calls++; calls {
		case 1, 2: // the batch, and its first project
			return 0, errors.New("CODE: 13, DESC: illegal")
		case 3:
			return primitive.SendOK, nil
		default:
			return 0, errors.New("gone")
		}
	}}
	b := fakeBus(p, Config{})
	b.queues = b.queues[:1]
	err := b.Publish(t.Context(), testRows(5, 2))
	var failed *ports.PublishError
	if !errors.As(err, &failed) || len(failed.FailedProjects) != 5 || calls != 4 {
		t.Fatalf("after %d calls: %v", calls, err)
	}
	refused := 0
	for _, cause := range failed.FailedProjects {
		if errors.Is(cause, ports.ErrRefused) {
			refused++
		}
	}
	if refused != 1 {
		t.Errorf("%d projects count as refused, want 1", refused)
	}
}
