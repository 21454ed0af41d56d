package leasewatch

import (
	"fmt"
	"slices"
	"time"

	"github.com/aivedio/aivedio/internal/simulator"
)

// Findings is what the vendor's log says when it is held against the leases.
type Findings struct {
	// Repeated are queries under a lease that had one before; Stolen are attempts
	// that were leased while another's lease ran; Unclaimed are queries of jobs that
	// nobody had leased. All three break a promise.
	Repeated  int `json:"repeated"`
	Stolen    int `json:"stolen"`
	Unclaimed int `json:"unclaimed"`
	// Outside arrived after their lease had ended.
	Outside int `json:"outside"`
	// TakenOver are attempts whose lease ran out in the hands of somebody who did
	// not give it back.
	TakenOver int `json:"taken_over"`
	// Lags are those of the queries, in no order.
	Lags []Lag `json:"-"`
}

// String is a line for a person, without the lags.
func (f Findings) String() string {
	return fmt.Sprintf("repeated %d, stolen %d, unclaimed %d, outside their lease %d, taken over %d", f.Repeated, f.Stolen, f.Unclaimed, f.Outside, f.TakenOver)
}

// Lag is how long after its timer a query arrived at the vendor. For one that was
// given back and leased again, for want of a permit, its first timer counts.
type Lag struct {
	At   time.Time
	Late time.Duration
}

// Match holds the vendor's log, in the order of arrival, against the leases. Both
// clocks must be of one machine. It may be called once.
func (l *Log) Match(queries []simulator.QueryEntry) Findings {
	var f Findings
	for _, q := range queries {
		at := time.Unix(0, q.At)
		c := claimedBefore(l.claims[l.jobs[q.Job]], at)
		if c == nil {
			f.Unclaimed++
			continue
		}
		if c.asked++; c.asked > 1 {
			f.Repeated++
			continue
		}
		if c.first = at; at.After(c.Until) {
			f.Outside++
		}
	}
	for _, of := range l.claims {
		f.add(of)
	}
	return f
}

// add counts the claims of one attempt.
func (f *Findings) add(of []*Claim) {
	var due time.Time // of the first claim since the last query: others were given back
	for _, c := range of {
		if c.stolen() {
			f.Stolen++
		}
		if c.takenOver() {
			f.TakenOver++
		}
		if due.IsZero() {
			due = c.Due
		}
		if c.asked > 0 {
			f.Lags = append(f.Lags, Lag{c.first, c.first.Sub(due)})
			due = time.Time{}
		}
	}
}

// claimedBefore is the newest claim of those, which are in order, at that time.
func claimedBefore(of []*Claim, at time.Time) *Claim {
	n, _ := slices.BinarySearchFunc(of, at, func(c *Claim, at time.Time) int {
		if c.At.After(at) {
			return 1
		}
		return -1
	})
	if n == 0 {
		return nil
	}
	return of[n-1]
}
