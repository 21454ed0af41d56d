package breaker_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/aivedio/aivedio/adapters/breaker"
)

func TestTripsOnFailuresInARow(t *testing.T) {
	t.Parallel()
	w := breaker.New(breaker.Config{})
	for range 4 {
		if w.Report(false) {
			t.Fatal("tripped too early")
		}
	}
	w.Report(true)
	for range 4 {
		if w.Report(false) {
			t.Fatal("a success in between did not count")
		}
	}
	if !w.Report(false) {
		t.Error("not tripped by the fifth in a row")
	}
	if w.Report(false) {
		t.Error("the count did not begin anew")
	}
}

func TestTripsOnRatio(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := breaker.New(breaker.Config{})
		trips := 0
		for i := range 20 {
			if w.Report(i%2 == 0) {
				trips++
			}
		}
		if trips != 1 {
			t.Errorf("%d trips by half of 20 calls, want 1", trips)
		}
		for i := range 19 { // the same, but so slow that the window never holds 20 calls
			for _, ok := range []bool{i%2 == 0, true} {
				time.Sleep(2 * time.Second)
				if w.Report(ok) {
					t.Error("tripped by calls that the window has left behind")
				}
			}
		}
	})
}

func TestResetForgets(t *testing.T) {
	t.Parallel()
	w := breaker.New(breaker.Config{Consecutive: 2})
	w.Report(false)
	w.Reset()
	if w.Report(false) {
		t.Error("a failure from before the reset counted")
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	if err := (breaker.Config{}).Validate(); err != nil {
		t.Error(err)
	}
	for _, bad := range []breaker.Config{{Consecutive: -1}, {MinCalls: -1}, {Window: -1}, {Ratio: 1.5}} {
		if bad.Validate() == nil {
			t.Errorf("%+v passed", bad)
		}
	}
}

func BenchmarkReport(b *testing.B) {
	w := breaker.New(breaker.Config{})
	for b.Loop() {
		w.Report(true)
	}
}
