package stream

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// TestChaos sends hints late, out of order, twice or not at all, while clients
// come, fall back to a reconnect and the store fails now and then: each client
// sees every event exactly once, in order.
func TestChaos(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { chaos(t, rand.New(rand.NewPCG(seed, 1))) })
		})
	}
}

func chaos(t *testing.T, random *rand.Rand) {
	const events = 300
	b := newBench(t, func(c *Config) {
		c.Delta, c.DeltaUnhealthy, c.ReadBatch, c.Pending = 5*time.Second, time.Second, 7, 5
	})
	var clients []*client
	var owed []ports.StoredEvent
	for range events {
		owed = append(owed, b.store1([]domain.TaskID{taskA, taskB}[random.IntN(2)], "running", domain.StageGenerating, 50))
		if random.IntN(3) == 0 {
			random.Shuffle(len(owed), func(i, j int) { owed[i], owed[j] = owed[j], owed[i] })
			for _, e := range owed {
				for range random.IntN(3) { // lost, once or twice
					b.notify(e)
				}
			}
			owed = nil
		}
		switch random.IntN(40) {
		case 0:
			clients = append(clients, b.open(StreamRequest{}, "/events?after=0", false))
		case 1:
			b.store.fail(ports.ErrUnavailable)
			time.Sleep(time.Duration(random.IntN(3000)) * time.Millisecond)
			b.store.fail(nil)
		case 2:
			time.Sleep(time.Duration(random.IntN(200)) * time.Millisecond)
		}
	}
	time.Sleep(20 * time.Second)
	for i, c := range clients {
		if diff := cmp.Diff(upTo(events), c.ids()); diff != "" {
			t.Errorf("client %d (-want +got):\n%s", i, diff)
		}
	}
	if len(clients) == 0 {
		t.Error("no client came")
	}
}

// BenchmarkDispatch is one event for a project's clients, written by nobody.
func BenchmarkDispatch(b *testing.B) {
	for _, n := range []int{1, 100, 1000} {
		b.Run(fmt.Sprintf("clients=%d", n), func(b *testing.B) {
			cfg := Config{Events: &fakeEvents{}, Notifier: deafNotifier{}}
			hub, err := New(cfg)
			if err != nil {
				b.Fatal(err)
			}
			p := newProject(hub, testProject)
			p.known = true
			subs := make([]*Subscriber, n)
			for i := range subs {
				subs[i] = newSubscriber(hub.cfg, domain.TaskID{}, func(int) {})
				subs[i].live = true
				p.add(subs[i])
			}
			e := ports.StoredEvent{Event: domain.Event{ProjectID: testProject, TaskID: taskA, Version: 1, Status: "running"}, CreatedAt: time.Now()}
			b.ReportAllocs()
			for b.Loop() {
				e.EventID++
				p.offer(newFrame(e))
				for _, s := range subs {
					s.take()
				}
			}
		})
	}
}
