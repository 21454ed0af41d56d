package rocketbus

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/aivedio/aivedio/internal/testenv"
	"github.com/aivedio/aivedio/ports"
)

// These tests stop the broker that all share, so they are not parallel.

// collector is a handler that counts events per project.
type collector struct {
	mu      sync.Mutex
	seen    map[byte][]int64
	changed chan struct{}
}

func newCollector() *collector {
	return &collector{seen: map[byte][]int64{}, changed: make(chan struct{}, 1)}
}

func (c *collector) handle(_ context.Context, events []ports.StoredEvent) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range events {
		p := e.ProjectID.ID[0]
		if !slices.Contains(c.seen[p], e.EventID) {
			c.seen[p] = append(c.seen[p], e.EventID)
		}
	}
	select {
	case c.changed <- struct{}{}:
	default:
	}
	return nil
}

// await waits until each project's first occurrences are 1 to n, in order.
func (c *collector) await(t *testing.T, projects, n int) {
	t.Helper()
	timeout := time.After(2 * time.Minute)
	for !c.complete(t, projects, n) {
		select {
		case <-c.changed:
		case <-timeout:
			t.Fatalf("waited in vain for %d events of %d projects", n, projects)
		}
	}
}

func (c *collector) complete(t *testing.T, projects, n int) bool {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for p := range projects {
		ids := c.seen[byte(p+1)]
		if !slices.IsSorted(ids) {
			t.Fatalf("project %d: first occurrences %v", p+1, ids)
		}
		if len(ids) < n {
			return false
		}
	}
	return true
}

// eventRows are the rows of events from to to of the projects.
func eventRows(projects, from, to int) []ports.OutboxRow {
	return slices.DeleteFunc(testRows(projects, to), func(r ports.OutboxRow) bool { return r.Event.EventID < int64(from) })
}

// publishUntil repeats what a relay does: failed projects again.
func publishUntil(t *testing.T, b *Bus, rows []ports.OutboxRow, deadline time.Duration) {
	t.Helper()
	begin := time.Now()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		err := b.Publish(t.Context(), rows)
		if err == nil {
			return
		}
		var failed *ports.PublishError
		if !errors.As(err, &failed) {
			t.Fatalf("publish: %v", err)
		}
		if time.Since(begin) > deadline {
			t.Fatalf("no publish for %v: %v", deadline, err)
		}
		rows = slices.DeleteFunc(slices.Clone(rows), func(r ports.OutboxRow) bool {
			return failed.FailedProjects[r.Event.ProjectID.String()] == nil
		})
		<-tick.C
	}
}

// failFast publishes to a broker that is away.
func failFast(t *testing.T, b *Bus, rows []ports.OutboxRow) {
	t.Helper()
	begin := time.Now()
	err := b.Publish(t.Context(), rows)
	var failed *ports.PublishError
	if !errors.As(err, &failed) || len(failed.FailedProjects) != 20 {
		t.Errorf("publish without a broker: %v", err)
	}
	if d := time.Since(begin); d > 5500*time.Millisecond {
		t.Errorf("publish without a broker took %v", d)
	}
}

func TestBrokerAway(t *testing.T) {
	server := testenv.RocketMQ(t)
	ways := []struct {
		name       string
		away, back func()
	}{
		{"Stopped", server.StopBroker, server.StartBroker},
		{"Frozen", server.PauseBroker, server.ResumeBroker},
	}
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			b := open(t, server)
			c := newCollector()
			if _, err := b.Subscribe(t.Context(), "away", c.handle); err != nil {
				t.Fatal(err)
			}
			if err := b.Publish(t.Context(), eventRows(20, 1, 5)); err != nil {
				t.Fatal(err)
			}
			c.await(t, 20, 5)
			way.away()
			failFast(t, b, eventRows(20, 6, 10))
			failFast(t, b, eventRows(20, 6, 10))
			way.back()
			publishUntil(t, b, eventRows(20, 6, 10), time.Minute)
			c.await(t, 20, 10)
		})
	}
}

// TestOpenWithoutBroker fails, and names what is missing.
func TestOpenWithoutBroker(t *testing.T) {
	server := testenv.RocketMQ(t)
	server.StopBroker()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	b, err := Open(ctx, Config{NameServers: []string{server.NameServer}, Topic: "test-" + rand.Text()[:12]})
	if err == nil {
		_ = b.Close()
		t.Error("Open without a broker succeeded")
	}
	server.StartBroker()
}

// TestTopicOffsets compares the broker's count with what was published, repeats
// included.
func TestTopicOffsets(t *testing.T) {
	server := testenv.RocketMQ(t)
	b := open(t, server)
	if len(b.queues) != 8 {
		t.Errorf("the new topic has %d queues", len(b.queues))
	}
	before, err := b.TopicOffsets(t.Context())
	if err != nil || before != 0 {
		t.Fatalf("a new topic has %d messages, %v", before, err)
	}
	if err := b.Publish(t.Context(), testRows(30, 40)); err != nil {
		t.Fatal(err)
	}
	if err := b.Publish(t.Context(), testRows(10, 3)); err != nil {
		t.Fatal(err)
	}
	const want = 30*40 + 10*3
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	timeout := time.After(time.Minute)
	for {
		n, err := b.TopicOffsets(t.Context())
		if err != nil || n > want {
			t.Fatalf("%d messages, %v, want %d", n, err, want)
		}
		if n == want {
			return
		}
		select {
		case <-tick.C: // the broker indexes what it has stored
		case <-timeout:
			t.Fatalf("%d messages, want %d", n, want)
		}
	}
}

// TestGroupGoesOnAfterRestart closes the only member of a group, and the bus:
// what was published meanwhile is delivered to the next.
func TestGroupGoesOnAfterRestart(t *testing.T) {
	server := testenv.RocketMQ(t)
	first := open(t, server)
	c := newCollector()
	if _, err := first.Subscribe(t.Context(), "restart", c.handle); err != nil {
		t.Fatal(err)
	}
	if err := first.Publish(t.Context(), eventRows(20, 1, 3)); err != nil {
		t.Fatal(err)
	}
	c.await(t, 20, 3)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second, err := Open(t.Context(), first.cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = second.Close() }()
	if err := second.Publish(t.Context(), eventRows(20, 4, 6)); err != nil {
		t.Fatal(err)
	}
	if _, err := second.Subscribe(t.Context(), "restart", c.handle); err != nil {
		t.Fatal(err)
	}
	c.await(t, 20, 6)
}
