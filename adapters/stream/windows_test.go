package stream

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/aivedio/aivedio/domain"
)

// TestWindows commits an event in each window, with its hint and with a hint that
// comes only when all is live: it arrives exactly once and in order.
func TestWindows(t *testing.T) {
	t.Parallel()
	for _, at := range Points() {
		for _, late := range []bool{false, true} {
			for _, filtered := range []bool{false, true} {
				for _, warm := range []bool{false, true} {
					name := fmt.Sprintf("after %s/late hint %v/one task %v/project is live %v", at, late, filtered, warm)
					t.Run(name, func(t *testing.T) {
						t.Parallel()
						synctest.Test(t, func(t *testing.T) { testWindow(t, at, late, filtered, warm) })
					})
				}
			}
		}
	}
}

func testWindow(t *testing.T, at Point, late, filtered, warm bool) {
	var b *bench
	var owed func()
	once := warm // the client that warms the project up passes the windows first
	inWindow := func(p Point) {
		if p != at || once {
			return
		}
		once = true
		e := b.store1(taskA, "running", domain.StageGenerating, 50)
		if late {
			owed = func() { b.notify(e) }
			return
		}
		b.notify(e)
		b.notify(e) // a repeated hint changes nothing
	}
	b = newBench(t, func(c *Config) { c.Failpoint = inWindow })
	b.commit(taskA)
	b.commit(taskA)
	req := StreamRequest{}
	if filtered {
		req.Task = taskA
	}
	if warm {
		b.open(StreamRequest{}, "/events", false)
		once = false
	}
	c := b.open(req, "/events?after=0", false)
	if !once {
		t.Fatal("the failpoint was not reached")
	}
	if owed != nil {
		owed()
	}
	b.commit(taskA)
	if diff := cmp.Diff(upTo(4), c.ids()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// TestWindowsTogether puts an event into every window of one subscription while
// another client is live already.
func TestWindowsTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var b *bench
		b2 := newBench(t, func(c *Config) {
			c.Failpoint = func(Point) {
				if b != nil {
					b.commit(taskA)
				}
			}
		})
		first := b2.open(StreamRequest{}, "/events?after=0", false)
		synctest.Wait()
		b = b2
		second := b2.open(StreamRequest{}, "/events?after=0", false)
		synctest.Wait()
		b.commit(taskA)
		n := int64(len(b.store.streams[testProject]))
		if n < 6 {
			t.Fatalf("%d events, want one per window and one more", n)
		}
		for name, c := range map[string]*client{"live": first, "joining": second} {
			if diff := cmp.Diff(upTo(n), c.ids()); diff != "" {
				t.Errorf("%s client (-want +got):\n%s", name, diff)
			}
		}
	})
}

// TestOvertaken has one client read, and another read later and join first, in a
// project that nobody has followed yet: what came between the two reads reaches
// both.
func TestOvertaken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		held, first := make(chan struct{}), true
		b := newBench(t, func(c *Config) {
			c.Failpoint = func(p Point) {
				if p == PointRead && first {
					first = false
					<-held
				}
			}
		})
		b.commit(taskA)
		slow := b.open(StreamRequest{}, "/events?after=0", false)
		b.commit(taskA)
		b.commit(taskA)
		fast := b.open(StreamRequest{}, "/events?after=0", false)
		close(held)
		synctest.Wait()
		b.commit(taskA)
		for name, c := range map[string]*client{"overtaken": slow, "fast": fast} {
			if diff := cmp.Diff(upTo(4), c.ids()); diff != "" {
				t.Errorf("%s client (-want +got):\n%s", name, diff)
			}
		}
	})
}

// TestPendingOverflow floods the buffer of a client that still reads: it reads
// again instead of missing anything.
func TestPendingOverflow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var b *bench
		floods := 0
		b = newBench(t, func(c *Config) {
			c.Pending, c.ReadBatch = 4, 8
			c.Failpoint = func(p Point) {
				if p != PointWritten {
					return
				}
				if floods++; floods <= 3 {
					for range 10 {
						b.commit(taskA)
					}
				}
			}
		})
		b.open(StreamRequest{}, "/events", false) // makes the project live, so that frames are dispatched
		synctest.Wait()
		c := b.open(StreamRequest{}, "/events?after=0", false)
		synctest.Wait()
		b.commit(taskA)
		if diff := cmp.Diff(upTo(31), c.ids()); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	})
}
