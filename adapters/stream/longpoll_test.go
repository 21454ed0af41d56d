package stream

import (
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aivedio/aivedio/app"
	"github.com/aivedio/aivedio/internal/wire"
)

func pollIDs(t *testing.T, a pollAnswer) []int64 {
	t.Helper()
	ids := []int64{}
	for _, raw := range a.Events {
		var e wire.Event
		if err := json.Unmarshal(raw, &e); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, e.EventID)
	}
	return ids
}

func TestLongPoll(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, target string
		// later is committed after a second of waiting.
		later int
		want  []int64
		took  time.Duration
	}{
		{"there are events", "/e?after=0", 0, []int64{1, 2, 3}, 0},
		{"more than the limit", "/e?after=0&limit=2", 0, []int64{1, 2}, 0},
		{"none come", "/e?after=3&wait=2s", 0, []int64{}, 2 * time.Second},
		{"no wait", "/e?after=3&wait=0", 0, []int64{}, 0},
		{"one comes", "/e?after=3&wait=10", 1, []int64{4}, time.Second},
		{"from now on", "/e", 1, []int64{4}, time.Second},
		{"the longest wait", "/e?wait=60s", 0, []int64{}, time.Minute},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, nil)
				for range 3 {
					b.commit(taskA)
				}
				if tt.later > 0 {
					timer := time.AfterFunc(time.Second, func() { b.commit(taskA) })
					defer timer.Stop()
				}
				begun := time.Now()
				a, err := b.poll(StreamRequest{}, tt.target)
				if err != nil {
					t.Fatal(err)
				}
				if took := time.Since(begun); took != tt.took {
					t.Errorf("took %s, want %s", took, tt.took)
				}
				if diff := cmp.Diff(tt.want, pollIDs(t, a)); diff != "" {
					t.Errorf("events (-want +got):\n%s", diff)
				}
				last := int64(3)
				if n := len(tt.want); n > 0 {
					last = tt.want[n-1]
				}
				if want := b.store.streams[testProject][last-1].Cursor().String(); a.Cursor != want || a.Reset {
					t.Errorf("cursor %q reset %v, want %q", a.Cursor, a.Reset, want)
				}
			})
		})
	}
}

// TestLongPollFiltered moves the cursor past other tasks.
func TestLongPollFiltered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil)
		b.commit(taskA)
		e := b.commit(taskA)
		a, err := b.poll(StreamRequest{Task: taskB}, "/e?after=0&wait=1")
		if err != nil || len(a.Events) != 0 || a.Cursor != e.Cursor().String() {
			t.Errorf("%+v, %v; want no event and the cursor of the head", a, err)
		}
	})
}

func TestBadQuery(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil)
		for target, field := range map[string]string{
			"/e?limit=0": "limit", "/e?limit=1001": "limit", "/e?limit=x": "limit",
			"/e?wait=-1s": "wait", "/e?wait=61": "wait", "/e?wait=1h": "wait", "/e?wait=soon": "wait",
		} {
			_, err := b.poll(StreamRequest{}, target)
			var bad *app.FieldErrors
			if !errors.As(err, &bad) || bad.Fields[0].Field != field {
				t.Errorf("%s: %v, want a fault of %s", target, err, field)
			}
		}
	})
}
