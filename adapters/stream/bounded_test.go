package stream

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aivedio/aivedio/ports"
)

// TestFrozenStore takes every question and answers none: a stream says that it is
// busy and when to come back, a long-poll is an error that means 503. Nothing waits
// longer than one read may take.
func TestFrozenStore(t *testing.T) {
	t.Parallel()
	over := StreamRequest{Task: taskA, TaskTerminal: true, TaskLastEventID: 1}
	for _, tt := range []struct {
		name, target string
		req          StreamRequest
	}{
		{"from now on", "/events", StreamRequest{}},
		{"from a cursor", "/events?after=1", StreamRequest{}},
		{"from no cursor", "/events?after=abc", StreamRequest{}},
		{"one task", "/events?after=1", StreamRequest{Task: taskA}},
		{"a task that is over", "/events?after=1", over},
		{"the right cannot be proven", "/events?after=1", StreamRequest{Unavailable: true}},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, nil)
			b.commit(taskA)
			b.store.freeze(true)
			c := b.open(tt.req, tt.target, false)
			time.Sleep(6 * time.Second)
			busy := c.named("busy")
			if !c.ended() || len(busy) != 1 || !strings.Contains(busy[0].data, `"unavailable"`) || busy[0].retry == "" || busy[0].id != "" {
				t.Errorf("%s: blocks %v, want busy without an id", tt.name, c.all())
			}
			begun := time.Now()
			_, err := b.poll(tt.req, tt.target)
			if took := time.Since(begun); !errors.Is(err, ports.ErrUnavailable) || took > 5*time.Second {
				t.Errorf("%s: long-poll: %v after %s", tt.name, err, took)
			}
		})
	}
}

// TestFreezeWhileLive keeps a live client, and gives it what it missed.
func TestFreezeWhileLive(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, func(c *Config) { c.Delta, c.DeltaUnhealthy = 5*time.Second, time.Second })
		c := b.open(StreamRequest{}, "/events?after=0", false)
		b.store.freeze(true)
		time.Sleep(time.Minute)
		b.store1(taskA, "running", "generating", 5)
		b.store.freeze(false)
		time.Sleep(16 * time.Second)
		if diff := cmp.Diff(upTo(1), c.ids()); diff != "" || c.ended() {
			t.Errorf("after the store thawed (-want +got):\n%s", diff)
		}
	})
}
