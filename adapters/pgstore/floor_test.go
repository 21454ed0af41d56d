package pgstore

import (
	"testing"
	"time"
)

func TestFloors(t *testing.T) {
	t.Parallel()
	var f floors
	now := time.Now()
	look := func(after time.Duration, want int64) {
		t.Helper()
		if got := f.get(1, now.Add(after)); got != want {
			t.Errorf("after %v the worker looks above %d, want %d", after, got, want)
		}
	}
	look(0, 0) // nothing is known yet
	f.raise(1, 10_000)
	look(0, 10_000-floorMargin)
	if f.get(2, now) != 0 {
		t.Error("another worker's floor is not this one's")
	}
	look(floorTime, 0) // a full look, once a while
	f.raise(1, 20_000)
	look(floorTime, 20_000-floorMargin)
	f.raise(1, 30_000)
	look(2*floorTime-1, 30_000-floorMargin)
	look(2*floorTime, 0)
	f.raise(1, 40)
	look(2*floorTime, 0)
	f.raise(1, 50_000)
	f.drop(1)
	look(2*floorTime, 0)
}
