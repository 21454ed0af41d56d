package leasewatch

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/internal/simulator"
)

// at is a moment of a made-up run, in ms.
func at(ms int) time.Time { return time.UnixMilli(1_800_000_000_000 + int64(ms)) }

func asked(job string, ms int) simulator.QueryEntry {
	return simulator.QueryEntry{Job: job, At: at(ms).UnixNano()}
}

func TestMatchQueriesWithClaims(t *testing.T) {
	t.Parallel()
	a, b := domain.ID{1}, domain.ID{2}
	jobs := map[string]domain.ID{"a": a, "b": b}
	lease := func(ms, due, left int) *Claim {
		c := &Claim{At: at(ms), Until: at(ms + 30_000), Due: at(due)}
		if left > 0 {
			c.Left = at(left)
		}
		return c
	}
	tests := map[string]struct {
		claims  map[domain.ID][]*Claim
		queries []simulator.QueryEntry
		want    Findings
		lags    []int
	}{
		"one query for each lease": {
			claims:  map[domain.ID][]*Claim{a: {lease(100, 90, 0), lease(5100, 5000, 0)}, b: {lease(200, 200, 0)}},
			queries: []simulator.QueryEntry{asked("a", 110), asked("b", 203), asked("a", 5120)},
			lags:    []int{3, 20, 120},
		},
		"asked twice under one lease": {
			claims:  map[domain.ID][]*Claim{a: {lease(100, 100, 0)}},
			queries: []simulator.QueryEntry{asked("a", 110), asked("a", 2000)},
			want:    Findings{Repeated: 1}, lags: []int{10},
		},
		"leased while another holds it": {
			claims:  map[domain.ID][]*Claim{a: {lease(100, 100, 0), lease(200, 100, 30_100)}},
			queries: []simulator.QueryEntry{asked("a", 110), asked("a", 210)},
			want:    Findings{Stolen: 1}, lags: []int{10, 110},
		},
		"taken over after its end": {
			claims:  map[domain.ID][]*Claim{a: {lease(100, 100, 0), lease(30_101, 100, 30_100)}},
			queries: []simulator.QueryEntry{asked("a", 110), asked("a", 30_110)},
			want:    Findings{TakenOver: 1}, lags: []int{10, 30_010},
		},
		"asked when the lease had ended": {
			claims: map[domain.ID][]*Claim{a: {lease(100, 100, 0)}}, queries: []simulator.QueryEntry{asked("a", 30_200)},
			want: Findings{Outside: 1}, lags: []int{30_100},
		},
		"asked without a lease": {
			claims:  map[domain.ID][]*Claim{a: {lease(100, 100, 0)}},
			queries: []simulator.QueryEntry{asked("a", 50), asked("stranger", 500), asked("b", 600)},
			want:    Findings{Unclaimed: 3},
		},
		// Given back for want of a permit, with a later timer: the wait goes on.
		"put off": {
			claims: map[domain.ID][]*Claim{a: {lease(100, 100, 0), lease(900, 800, 0)}}, queries: []simulator.QueryEntry{asked("a", 910)},
			lags: []int{810},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := (&Log{claims: tc.claims, jobs: jobs}).Match(tc.queries)
			if diff := cmp.Diff(tc.want, got, cmpopts.IgnoreFields(Findings{}, "Lags")); diff != "" {
				t.Error(diff)
			}
			var lags []int
			for _, l := range got.Lags {
				lags = append(lags, int(l.Late.Milliseconds()))
			}
			slices.Sort(lags)
			if !slices.Equal(lags, tc.lags) {
				t.Errorf("lags %v, want %v", lags, tc.lags)
			}
		})
	}
}
