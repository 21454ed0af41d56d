package stream

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aivedio/aivedio/app"
	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/internal/wire"
	"github.com/aivedio/aivedio/ports"
)

func TestStreamHead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil)
		e := b.commit(taskA)
		c := b.open(StreamRequest{}, "/events", false)
		blocks := c.all()
		want := http.Header{
			"Content-Type": {"text/event-stream"}, "Cache-Control": {"no-cache, no-transform"},
			"Connection": {"keep-alive"}, "X-Accel-Buffering": {"no"},
		}
		if diff := cmp.Diff(want, c.header); diff != "" {
			t.Errorf("header (-want +got):\n%s", diff)
		}
		if c.status != http.StatusOK || len(blocks) != 3 || len(blocks[0].comment) < 2047 || blocks[1].retry == "" {
			t.Fatalf("status %d, blocks %v; want 200, padding, retry, id", c.status, blocks)
		}
		if diff := cmp.Diff(block{id: e.Cursor().String()}, blocks[2], cmp.AllowUnexported(block{})); diff != "" {
			t.Errorf("first position (-want +got):\n%s", diff)
		}
	})
}

// TestHead answers a HEAD at once, or it would wait for ever for nothing.
func TestHead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil)
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodHead, "/events", nil)
		if err := b.hub.ServeEvents(w, r, StreamRequest{Project: testProject}); err != nil || w.Header().Get("Content-Type") != "text/event-stream" {
			t.Errorf("%v, %v", err, w.Header())
		}
	})
}

func TestEventBlock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil)
		e := b.commit(taskA)
		c := b.open(StreamRequest{}, "/events?after=0", false)
		blocks := c.all()
		last := blocks[len(blocks)-1]
		data, err := json.Marshal(wire.EventOf(e))
		if err != nil {
			t.Fatal(err)
		}
		want := block{id: e.Cursor().String(), event: "task.status", data: string(data)}
		if diff := cmp.Diff(want, last, cmp.AllowUnexported(block{})); diff != "" {
			t.Errorf("block (-want +got):\n%s", diff)
		}
	})
}

// TestCursorWins takes the header before the URL, as a browser's reconnect needs.
func TestCursorWins(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil)
		for range 3 {
			b.commit(taskA)
		}
		cursor := b.store.streams[testProject][1].Cursor().String()
		for _, target := range []string{"/e?after=" + cursor, "/e?last_event_id=" + cursor, "/e?cursor=" + cursor, "/e?after=2"} {
			if diff := cmp.Diff([]int64{3}, b.open(StreamRequest{}, target, false).ids()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", target, diff)
			}
		}
	})
}

func TestResets(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, cursor string
		reason       ports.ResetReason
	}{
		{"another tag", "1.zzzzzzzz", ports.ResetTag},
		{"the future", "99", ports.ResetFuture},
		{"the future with a tag", "99.abc", ports.ResetFuture},
		{"garbage", "garbage", ports.ResetBad},
		{"a negative number", "-1", ports.ResetBad},
		{"too large", "99999999999999999999", ports.ResetBad},
		{"markup", "%3Cscript%3E", ports.ResetBad},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, nil)
				b.commit(taskA)
				head := b.store.head(testProject).String()
				c := b.open(StreamRequest{}, "/events?after="+tt.cursor, false)
				resets := c.named("reset")
				want := `{"cursor":"` + head + `","reason":"` + string(tt.reason) + `"}`
				if len(resets) != 1 || resets[0].data != want || resets[0].id != head {
					t.Fatalf("resets %v, want %s", resets, want)
				}
				for _, block := range c.all() {
					if block.id == tt.cursor {
						t.Errorf("%v repeats a cursor that is of no use", block)
					}
				}
				b.commit(taskA)
				if diff := cmp.Diff([]int64{2}, c.ids()); diff != "" {
					t.Errorf("after the reset (-want +got):\n%s", diff)
				}
				answer, err := b.poll(StreamRequest{}, "/events?after="+tt.cursor)
				if err != nil || !answer.Reset || *answer.Reason != tt.reason || answer.Cursor != b.store.head(testProject).String() {
					t.Errorf("long-poll: %+v, %v", answer, err)
				}
			})
		})
	}
}

func TestHeartbeat(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil)
		all := b.open(StreamRequest{}, "/events", false)
		one := b.open(StreamRequest{Task: taskB}, "/events", false)
		synctest.Wait()
		begun := time.Now()
		e := b.commit(taskA) // nothing for the filtered stream
		time.Sleep(25 * time.Second)
		for name, c := range map[string]*client{"all": all, "filtered": one} {
			blocks := c.all()
			last := blocks[len(blocks)-1]
			parts := strings.Fields(last.comment)
			if len(parts) != 3 || parts[0] != "ping" || parts[2] != "1" {
				t.Fatalf("%s: heartbeat %v of %s", name, last, begun)
			}
			if want := map[string]string{"all": "", "filtered": e.Cursor().String()}[name]; last.id != want {
				t.Errorf("%s: heartbeat id %q, want %q", name, last.id, want)
			}
		}
		if got := one.ids(); len(got) != 0 {
			t.Errorf("filtered stream shows %v of another task", got)
		}
	})
}

// TestFinishedTask ends a filtered stream after the terminal and answers its
// reconnect with 204.
func TestFinishedTask(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil)
		b.commit(taskA)
		c := b.open(StreamRequest{Task: taskA, TaskLastEventID: 1}, "/events?after=0", false)
		e := b.store1(taskA, "ready", domain.StageDone, 100)
		b.notify(e)
		if !c.ended() || len(c.named("end")) != 1 {
			t.Fatalf("blocks %v, want end", c.all())
		}
		end := c.named("end")[0]
		if end.id != e.Cursor().String() {
			t.Errorf("end at %q, want %q", end.id, e.Cursor())
		}
		over := StreamRequest{Task: taskA, TaskTerminal: true, TaskLastEventID: 2}
		again := b.open(over, "/events?after="+end.id, false)
		if !again.ended() || again.status != http.StatusNoContent {
			t.Errorf("reconnect: status %d, want 204", again.status)
		}
		late := b.open(over, "/events", false)
		if !late.ended() || len(late.named("end")) != 1 {
			t.Errorf("first visit after the end: %v, want end", late.all())
		}
		wrong := b.open(over, "/events?after=2.zzz", false)
		if len(wrong.named("reset")) != 1 {
			t.Errorf("wrong tag: %v, want reset", wrong.all())
		}
		behind := b.open(over, "/events?after=1", false)
		if diff := cmp.Diff([]int64{2}, behind.ids()); diff != "" || !behind.ended() {
			t.Errorf("behind (-want +got):\n%s", diff)
		}
	})
}

// TestRetriedTask does not end at a terminal that a retry has left behind.
func TestRetriedTask(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil)
		b.store1(taskA, "failed", domain.StageDone, 0)
		b.store1(taskA, "queued", domain.StageSubmitting, 0)
		c := b.open(StreamRequest{Task: taskA, TaskLastEventID: 2}, "/events?after=0", false)
		if c.ended() {
			t.Errorf("the stream ended: %v", c.all())
		}
		if diff := cmp.Diff(upTo(2), c.ids()); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	})
}

func TestUnauthorizedLater(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil)
		var ended atomic.Bool
		auth := func(context.Context) error {
			if ended.Load() {
				return app.ErrUnauthenticated
			}
			return errors.New("the database is away")
		}
		c := b.open(StreamRequest{Auth: auth}, "/events", false)
		time.Sleep(time.Minute)
		if c.ended() {
			t.Fatal("a passing fault of the check ended the stream")
		}
		ended.Store(true)
		time.Sleep(15 * time.Second)
		if !c.ended() || len(c.named("unauthorized")) != 1 {
			t.Errorf("blocks %v, want unauthorized", c.all())
		}
	})
}

// TestDenied is said in the stream to an EventSource and as an error to a
// long-poll.
func TestDenied(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil)
		b.commit(taskA)
		c := b.open(StreamRequest{Denied: true}, "/events?after=0", false)
		if !c.ended() || len(c.named("unauthorized")) != 1 || len(c.ids()) != 0 || c.status != http.StatusOK {
			t.Errorf("blocks %v, want unauthorized and no event", c.all())
		}
		if _, err := b.poll(StreamRequest{Denied: true}, "/events?after=0"); !errors.Is(err, app.ErrUnauthenticated) {
			t.Errorf("long-poll: %v, want ErrUnauthenticated", err)
		}
	})
}

// TestSlowReader conflates progress, keeps stages and terminals, and moves a
// client that is slow all the same.
func TestSlowReader(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, func(c *Config) { c.Queue = 4; c.WriteTimeout = time.Hour })
		c := b.open(StreamRequest{}, "/events", false)
		quick := b.open(StreamRequest{}, "/events", false)
		c.stall()
		for progress := 0; progress <= 95; progress += 5 {
			b.notify(b.store1(taskA, "running", domain.StageGenerating, progress))
			synctest.Wait()
		}
		b.notify(b.store1(taskA, "ready", domain.StageDone, 100))
		synctest.Wait()
		if s := b.hub.Stats(); s.Queued == 0 || s.LongestQueue != s.Queued || s.LongestQueue > 4 {
			t.Errorf("%d events wait, %d of them for the slowest client; want all for one, at most 4", s.Queued, s.LongestQueue)
		}
		c.resume()
		if diff := cmp.Diff(upTo(21), quick.ids()); diff != "" {
			t.Errorf("quick client (-want +got):\n%s", diff)
		}
		ids := c.ids()
		if n := len(ids); n == 0 || n > 8 || ids[n-1] != 21 || ids[n-2] != 20 {
			t.Errorf("slow client got %v, want few, the newest progress and the terminal", ids)
		}
		if b.hub.Stats().Conflated == 0 {
			t.Error("nothing was counted as conflated")
		}
	})
}

func TestTooSlowReader(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, func(c *Config) { c.Queue = 4; c.WriteTimeout = time.Hour })
		c := b.open(StreamRequest{}, "/events", false)
		c.stall()
		for i := range 20 { // more different tasks than the queue and a write hold
			b.commit(domain.TaskID{ID: domain.ID{1, byte(i)}})
		}
		c.resume()
		moves := c.named("move")
		if !c.ended() || len(moves) != 1 || !strings.Contains(moves[0].data, `"slow"`) {
			t.Fatalf("blocks %v, want move for slowness", c.all())
		}
		if b.hub.Stats().Slow != 1 {
			t.Error("the slow client was not counted")
		}
		again := b.open(StreamRequest{}, "/events?after="+moves[0].id, false)
		if diff := cmp.Diff(upTo(20), append(c.ids(), again.ids()...)); diff != "" {
			t.Errorf("before and after the move (-want +got):\n%s", diff)
		}
	})
}

// TestDeadClient is cut by the write deadline and its place is free again.
func TestDeadClient(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil)
		c := b.open(StreamRequest{}, "/events", true)
		time.Sleep(11 * time.Second)
		if s := b.hub.Stats(); !c.ended() || s.Connections != 0 || s.WriteErrors != 1 {
			t.Errorf("stats %+v, want the dead client cut", s)
		}
	})
}

// TestDocumentedCloses keeps docs/events.md and the table together.
func TestDocumentedCloses(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/events.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range Closes() {
		row, err := json.Marshal(c.Code)
		if err != nil {
			t.Fatal(err)
		}
		want := "| " + string(row) + " | `" + c.Event + "` | `" + c.Reason + "` |"
		if !strings.Contains(string(text), want) {
			t.Errorf("docs/events.md has no row %q", want)
		}
	}
}
