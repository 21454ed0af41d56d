package httpapi

import (
	"context"
	"testing"
	"time"

	"github.com/aivedio/aivedio/ports"
)

func TestCompensation(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	look := func() compensationView {
		t.Helper()
		return decoded[struct {
			Compensation compensationView `json:"compensation"`
		}](t, f.do(request{path: "/admin/compensation", key: f.platform})).Compensation
	}
	if v := look(); v.Chores == nil || len(v.Chores) != 0 || len(v.Waiting) != 7 || v.PartitionDaysAhead != 7 {
		t.Errorf("before the first sweep: %+v", v)
	}
	f.failed("a", "b")
	failed := f.now.Add(-time.Hour)
	err := f.store.RecordSweeps(context.Background(), []ports.SweepRun{
		{Chore: "inbox", LastAt: f.now, LastRows: 2, LastTook: 30 * time.Millisecond, FailedAt: &failed, Runs: 5, Rows: 9, Errors: 1},
	})
	if err != nil {
		t.Fatal(err)
	}
	v := look()
	if len(v.Chores) != 1 {
		t.Fatalf("chores %+v", v.Chores)
	}
	if c := v.Chores[0]; c.Name != "inbox" || c.LastRows != 2 || c.LastTookMS != 30 || c.FailedAt == nil || c.Runs != 5 || c.Rows != 9 || c.Errors != 1 {
		t.Errorf("chore %+v", c)
	}
	for _, w := range v.Waiting {
		if want := map[string]int{ports.WaitingRetry: 2}[w.Queue]; w.Rows != want || w.More || (w.Oldest != nil) != (want > 0) {
			t.Errorf("waiting %+v, want %d", w, want)
		}
	}
}
