package memory_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aivedio/aivedio/adapters/memory"
	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
	"github.com/aivedio/aivedio/ports/porttest"
)

func TestBus(t *testing.T) {
	t.Parallel()
	porttest.Bus(t, func(t *testing.T) porttest.BusFixture {
		b := memory.NewBus(memory.BusConfig{RetryBase: time.Millisecond, RetryCap: 10 * time.Millisecond, PollInterval: 5 * time.Millisecond})
		t.Cleanup(func() { _ = b.Close() })
		return porttest.BusFixture{Bus: b, Exact: true}
	})
}

func busRow(id int64, project byte) ports.OutboxRow {
	return ports.OutboxRow{ID: id, Event: ports.StoredEvent{
		Event:   domain.Event{ProjectID: domain.ProjectID{ID: domain.ID{project}}, Version: id},
		EventID: id,
	}}
}

// TestBusBackoff checks the distance of retries with the clock of the bubble:
// 1, 2, 4, 8 and then 10 seconds.
func TestBusBackoff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := memory.NewBus(memory.BusConfig{RetryBase: time.Second, RetryCap: 10 * time.Second, PollInterval: 100 * time.Millisecond})
		defer func() { _ = b.Close() }()
		var calls []time.Duration
		start := time.Now()
		_, err := b.Subscribe(t.Context(), "g", func(context.Context, []ports.StoredEvent) error {
			calls = append(calls, time.Since(start))
			return errors.New("never")
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Publish(t.Context(), []ports.OutboxRow{busRow(1, 1)}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(30 * time.Second) // of the bubble's clock
		synctest.Wait()
		// A try of the whole project is followed by one of the event alone.
		at := func(i int) time.Duration { return calls[2*i].Round(100 * time.Millisecond) }
		if calls[0] != 0 {
			t.Errorf("first call after %v", calls[0])
		}
		calls = calls[1:]
		want := []time.Duration{1, 3, 7, 15, 25}
		if len(calls) != 2*len(want) {
			t.Fatalf("%d calls: %v", len(calls), calls)
		}
		for i, w := range want {
			if got := at(i); got < w*time.Second || got > w*time.Second+time.Duration(i+1)*100*time.Millisecond {
				t.Errorf("retry %d after %v, want about %ds", i+1, got, w)
			}
		}
	})
}

// TestBusPoisonEvent shows that an event which no handler can bear holds up
// nothing but itself.
func TestBusPoisonEvent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := memory.NewBus(memory.BusConfig{})
		defer func() { _ = b.Close() }()
		handled := map[int64]int{}
		_, err := b.Subscribe(t.Context(), "g", func(_ context.Context, events []ports.StoredEvent) error {
			for _, e := range events {
				if e.EventID == 2 {
					panic("poison")
				}
			}
			for _, e := range events {
				handled[e.EventID]++
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		rows := []ports.OutboxRow{busRow(1, 1), busRow(2, 1), busRow(3, 1), busRow(4, 2)}
		if err := b.Publish(t.Context(), rows); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if handled[1] != 1 || handled[3] != 1 || handled[4] != 1 || handled[2] != 0 {
			t.Errorf("handled %v", handled)
		}
	})
}

// brokenRetries is a store that is away.
type brokenRetries struct{ ports.BusRetries }

func (brokenRetries) AddRetries(context.Context, string, []int64, time.Time) error {
	return errors.New("the database is away")
}

func (brokenRetries) DueRetries(context.Context, string, time.Time, int) ([]ports.OutboxRow, error) {
	return nil, errors.New("the database is away")
}

// TestBusCannotOwe shows that a failure which cannot be written down is the
// publisher's: the rows are not taken for published.
func TestBusCannotOwe(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := memory.NewBus(memory.BusConfig{Retries: brokenRetries{}})
		defer func() { _ = b.Close() }()
		_, err := b.Subscribe(t.Context(), "g", func(context.Context, []ports.StoredEvent) error { return errors.New("no") })
		if err != nil {
			t.Fatal(err)
		}
		row := busRow(1, 7)
		err = b.Publish(t.Context(), []ports.OutboxRow{row})
		var failed *ports.PublishError
		if !errors.As(err, &failed) || failed.FailedProjects[row.Event.ProjectID.String()] == nil {
			t.Errorf("publish: %v", err)
		}
	})
}

// TestBusOwesClosedGroup publishes while no subscription of a known group is
// open: the next one gets what was missed.
func TestBusOwesClosedGroup(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := memory.NewBus(memory.BusConfig{})
		defer func() { _ = b.Close() }()
		var mu sync.Mutex
		var got []int64
		handler := func(_ context.Context, events []ports.StoredEvent) error {
			mu.Lock()
			defer mu.Unlock()
			for _, e := range events {
				got = append(got, e.EventID)
			}
			return nil
		}
		s, err := b.Subscribe(t.Context(), "g", handler)
		if err != nil {
			t.Fatal(err)
		}
		_ = s.Close()
		if err := b.Publish(t.Context(), []ports.OutboxRow{busRow(1, 1), busRow(2, 1)}); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Subscribe(t.Context(), "g", handler); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		if len(got) != 2 || got[0] != 1 || got[1] != 2 {
			t.Errorf("got %v", got)
		}
	})
}

// TestBusPublishGivesUp publishes to a handler that outlasts the context: the
// publisher is told, and the handler is left to finish.
func TestBusPublishGivesUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := memory.NewBus(memory.BusConfig{})
		release := make(chan struct{})
		_, err := b.Subscribe(t.Context(), "g", func(context.Context, []ports.StoredEvent) error { <-release; return nil })
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := b.Publish(ctx, []ports.OutboxRow{busRow(1, 1)}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("publish: %v", err)
		}
		close(release)
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
}
