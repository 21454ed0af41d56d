package stream

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestNewJoinsFaults(t *testing.T) {
	t.Parallel()
	_, err := New(Config{Queue: -1, Heartbeat: -time.Second})
	for _, want := range []string{"Events", "Notifier", "Queue", "Heartbeat"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v does not name %s", err, want)
		}
	}
}

// TestLostHint loses a terminal event's hint: the delta query delivers it within
// 16 seconds, also when the database's clock is behind ours.
func TestLostHint(t *testing.T) {
	t.Parallel()
	for _, skew := range []time.Duration{0, -time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, func(c *Config) {
				c.Delta, c.DeltaUnhealthy = 5*time.Second, time.Second
				c.Now = func() time.Time { return time.Now().Add(-skew) }
			})
			c := b.open(StreamRequest{}, "/events?after=0", false)
			b.commit(taskA)
			b.store1(taskA, "ready", domain.StageDone, 100)
			time.Sleep(16 * time.Second)
			if diff := cmp.Diff(upTo(2), c.ids()); diff != "" {
				t.Errorf("skew %s: events (-want +got):\n%s", skew, diff)
			}
		})
	}
}

// TestUnhealthyNotifier reads every second while the notifier is away, and at
// once when it is back.
func TestUnhealthyNotifier(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, func(c *Config) { c.Delta, c.DeltaUnhealthy = 5*time.Second, time.Second })
		c := b.open(StreamRequest{}, "/events?after=0", false)
		synctest.Wait()
		b.notifier.Disconnect()
		time.Sleep(6 * time.Second)
		b.commit(taskA)
		time.Sleep(1100 * time.Millisecond)
		if got := len(c.ids()); got != 1 {
			t.Errorf("%d events after 1.1 s without a notifier, want 1", got)
		}
		b.commit(taskA)
		b.notifier.Reconnect()
		time.Sleep(gapRest)
		if got := len(c.ids()); got != 2 {
			t.Errorf("%d events after the gap was told, want 2", got)
		}
	})
}

// TestGap holds frames that came out of order for 50 ms and then reads once for
// all clients.
func TestGap(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil)
		clients := []*client{b.open(StreamRequest{}, "/events?after=0", false), b.open(StreamRequest{}, "/events?after=0", false)}
		synctest.Wait()
		one, two, three := b.store1(taskA, "running", "", 1), b.store1(taskA, "running", "", 2), b.store1(taskA, "running", "", 3)
		b.notify(three, one)
		time.Sleep(49 * time.Millisecond)
		before := b.store.reads
		if diff := cmp.Diff(upTo(1), clients[0].ids()); diff != "" {
			t.Errorf("while held (-want +got):\n%s", diff)
		}
		time.Sleep(time.Millisecond)
		for _, c := range clients {
			if diff := cmp.Diff(upTo(3), c.ids()); diff != "" {
				t.Errorf("after the hold (-want +got):\n%s", diff)
			}
		}
		if reads := b.store.reads - before; reads != 1 {
			t.Errorf("%d reads for the gap, want 1", reads)
		}
		b.notify(two, three) // late and repeated
		four, five := b.store1(taskA, "running", "", 4), b.store1(taskA, "running", "", 5)
		b.notify(five, four) // the gap closes by itself
		time.Sleep(time.Second)
		if diff := cmp.Diff(upTo(5), clients[0].ids()); diff != "" {
			t.Errorf("in the end (-want +got):\n%s", diff)
		}
		if reads := b.store.reads - before; reads != 1 {
			t.Errorf("%d reads in all, want 1", reads)
		}
	})
}

// TestGapSurvivesOutage repeats the shared read until the store answers.
func TestGapSurvivesOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, func(c *Config) { c.DeltaUnhealthy = time.Second })
		c := b.open(StreamRequest{}, "/events?after=0", false)
		synctest.Wait()
		b.store1(taskA, "running", "", 1)
		b.store.fail(ports.ErrUnavailable)
		b.notify(b.store1(taskA, "running", "", 2))
		time.Sleep(10 * time.Second)
		if got := c.ids(); len(got) != 0 {
			t.Errorf("events %v without a store", got)
		}
		b.store.fail(nil)
		time.Sleep(2 * time.Second)
		if diff := cmp.Diff(upTo(2), c.ids()); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	})
}

// TestRestoredDatabase notices in the middle of a stream that the store has lost
// its tail, and goes on from the new head.
func TestRestoredDatabase(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, func(c *Config) { c.Delta = 5 * time.Second })
		c := b.open(StreamRequest{}, "/events?after=0", false)
		for range 3 {
			b.commit(taskA)
		}
		synctest.Wait()
		b.store.truncate(testProject, 1)
		time.Sleep(16 * time.Second)
		resets := c.named("reset")
		if len(resets) != 1 || !strings.Contains(resets[0].data, `"cursor":"`+b.store.head(testProject).String()) {
			t.Fatalf("resets %v, want one with the head", resets)
		}
		b.commit(taskB)
		if diff := cmp.Diff([]int64{1, 2, 3, 2}, c.ids()); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	})
}

// deafNotifier confirms no watch.
type deafNotifier struct{ ports.Notifier }

type deafListener struct{ ports.Listener }

func (n deafNotifier) Listen(ctx context.Context, h ports.NotifyHandler) (ports.Listener, error) {
	l, err := n.Notifier.Listen(ctx, h)
	return deafListener{l}, err
}

func (deafListener) Watch(ctx context.Context, _ domain.ProjectID) error {
	<-ctx.Done()
	return ctx.Err()
}

func TestWatchNotConfirmed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, func(c *Config) {
			c.Notifier, c.Delta = deafNotifier{c.Notifier}, 5*time.Second
		})
		c := b.open(StreamRequest{}, "/events?after=0", false)
		b.commit(taskA)
		time.Sleep(2 * time.Second)
		b.commit(taskA)
		time.Sleep(6 * time.Second)
		if diff := cmp.Diff(upTo(2), c.ids()); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	})
}

// TestRetire forgets a project without clients and watches it anew for the next.
func TestRetire(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, func(c *Config) { c.Delta = 5 * time.Second })
		c := b.open(StreamRequest{}, "/events", false)
		synctest.Wait()
		if live := b.hub.Live(); len(live) != 1 {
			t.Errorf("live projects %v, want the one with a client", live)
		}
		c.cancel()
		synctest.Wait()
		if live := b.hub.Live(); len(live) != 0 {
			t.Errorf("live projects %v, though the client has gone", live)
		}
		time.Sleep(11 * time.Second)
		if s := b.hub.Stats(); s.Projects != 0 || s.Connections != 0 {
			t.Fatalf("stats %+v, want nothing left", s)
		}
		again := b.open(StreamRequest{}, "/events", false)
		synctest.Wait()
		b.commit(taskA)
		if diff := cmp.Diff(upTo(1), again.ids()); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	})
}

func TestBusy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, func(c *Config) { c.MaxPerProject = 1 })
		b.open(StreamRequest{}, "/events", false)
		synctest.Wait()
		c := b.open(StreamRequest{}, "/events", false)
		if !c.ended() || len(c.named("busy")) != 1 || c.status != http.StatusOK {
			t.Errorf("status %d, blocks %v; want one busy on a 200", c.status, c.all())
		}
		if _, err := b.poll(StreamRequest{}, "/events"); !errors.Is(err, ErrBusy) {
			t.Errorf("long-poll: %v, want ErrBusy", err)
		}
	})
}

func TestStoreAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil)
		b.store.fail(ports.ErrUnavailable)
		c := b.open(StreamRequest{}, "/events?after=0", false)
		if busy := c.named("busy"); !c.ended() || len(busy) != 1 || !strings.Contains(busy[0].data, "unavailable") {
			t.Errorf("blocks %v, want busy for the store", c.all())
		}
		if _, err := b.poll(StreamRequest{}, "/events?after=0"); !errors.Is(err, ports.ErrUnavailable) {
			t.Errorf("long-poll: %v, want ErrUnavailable", err)
		}
	})
}

// TestDrain moves each client within the window, after what it was owed.
func TestDrain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil)
		clients := make([]*client, 20)
		for i := range clients {
			clients[i] = b.open(StreamRequest{}, "/events", false)
		}
		b.commit(taskA)
		synctest.Wait()
		begun := time.Now()
		if err := b.hub.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begun); took > 10*time.Second {
			t.Errorf("drain took %s, longer than its window", took)
		}
		for _, c := range clients {
			if !c.ended() || len(c.named("move")) != 1 || len(c.ids()) != 1 {
				t.Fatalf("blocks %v, want the event and one move", c.all())
			}
		}
		late := b.open(StreamRequest{}, "/events", false)
		if !late.ended() || len(late.named("move")) != 1 {
			t.Errorf("blocks %v of a client after the drain, want move", late.all())
		}
	})
}

func TestDrainTimesOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil)
		c := b.open(StreamRequest{}, "/events", true) // takes nothing, so it cannot be told
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := b.hub.Drain(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("drain: %v, want the deadline", err)
		}
		time.Sleep(10 * time.Second)
		if !c.ended() {
			t.Error("the write deadline did not cut the client")
		}
	})
}

// TestDeltaKeepsUp has more events in the time that a delta query looks back than
// one round can read: the next round looks at later ones.
func TestDeltaKeepsUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, func(c *Config) { c.Delta = time.Minute })
		b.open(StreamRequest{}, "/events", false)
		time.Sleep(time.Minute) // the first round has a mark
		synctest.Wait()
		began := time.Now()
		for i := range deltaPages*deltaPage + deltaPage {
			if i%10 == 0 {
				time.Sleep(time.Millisecond)
			}
			b.store1(taskB, "running", domain.StageGenerating, 5)
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if b.hub.mark.Before(began.Add(30 * time.Second)) {
			t.Errorf("the mark stands still at %s", b.hub.mark.Sub(began))
		}
	})
}

// slowSince is a store that cannot answer for the events of all projects.
type slowSince struct{ *fakeEvents }

func (slowSince) Since(context.Context, time.Time, int) ([]ports.StoredEvent, error) {
	return nil, ports.ErrUnavailable
}

// TestLostHintWithoutSince finds a lost hint by the heads alone.
func TestLostHintWithoutSince(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, func(c *Config) { c.Events, c.Delta = slowSince{c.Events.(*fakeEvents)}, 5*time.Second })
		c := b.open(StreamRequest{}, "/events?after=0", false)
		b.store1(taskA, "running", domain.StageGenerating, 5)
		time.Sleep(16 * time.Second)
		if diff := cmp.Diff(upTo(1), c.ids()); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	})
}
