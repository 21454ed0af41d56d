package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/aivedio/aivedio/ports"
)

// The bounds of a requeue of many.
const (
	requeueNormal = 1000
	requeueMost   = 100_000
	requeueRate   = 100
	requeueFast   = 10_000
	// requeueChunk is how many rows one transaction takes.
	requeueChunk = 1000
)

// RequeueDeps are what [Requeue] works with; all are required.
type RequeueDeps struct {
	Env
	DeadLetters ports.DeadLetters
}

// Requeue gives dead letters another life, many at once but not all in the same
// second. It is safe for concurrent use.
type Requeue struct{ deps RequeueDeps }

// NewRequeue checks what it is given.
func NewRequeue(deps RequeueDeps) (*Requeue, error) {
	err := errors.Join(deps.Env.Validate(), required("requeue", map[string]bool{"DeadLetters": deps.DeadLetters != nil}))
	if err != nil {
		return nil, err
	}
	deps.Env = deps.Env.WithDefaults()
	return &Requeue{deps: deps}, nil
}

// RequeueCommand chooses deliveries and says how fast they come back.
type RequeueCommand struct {
	// Filter's Status is dead when empty; its Limit is 1,000 when zero and at most
	// 100,000.
	Filter ports.TroubledFilter
	// Rate is deliveries per second; 100 when zero, at most 10,000.
	Rate int
	// DryRun only says what would be taken.
	DryRun bool
	Actor  string
	// Reason is required unless DryRun.
	Reason string
}

// RequeueReport says what was taken, or would be.
type RequeueReport struct {
	Rows int
	// Groups are the rows by vendor, status and code as they stood before.
	Groups []ports.TroubledGroup
	// LastDueAt is when the last of them comes to work.
	LastDueAt time.Time
}

// Run requeues the oldest chosen deliveries. They come to work by their due times,
// Rate of them per second, through the sweep; so a process that dies in between
// takes nothing with it. Each transaction of a thousand is audited. An error after
// some of them leaves those requeued, and the report says how many; the same
// command goes on with the rest. *FieldErrors, ports.ErrUnavailable.
func (r *Requeue) Run(ctx context.Context, cmd RequeueCommand) (RequeueReport, error) {
	cmd.Filter.Status = cmp.Or(cmd.Filter.Status, ports.InboxDead)
	cmd.Filter.Limit, cmd.Rate = cmp.Or(cmd.Filter.Limit, requeueNormal), cmp.Or(cmd.Rate, requeueRate)
	if err := validateRequeue(cmd); err != nil {
		return RequeueReport{}, err
	}
	groups, err := r.deps.DeadLetters.TroubledGroups(ctx, cmd.Filter)
	if err != nil {
		return RequeueReport{}, fmt.Errorf("groups: %w", err)
	}
	report := RequeueReport{Groups: groups}
	start, step := r.deps.Now().UTC(), time.Second/time.Duration(cmd.Rate)
	if cmd.DryRun {
		for _, g := range groups {
			report.Rows += g.Rows
		}
	} else {
		report.Rows, err = r.chunks(ctx, cmd, start, step)
	}
	report.LastDueAt = start.Add(time.Duration(max(report.Rows-1, 0)) * step)
	return report, err
}

// chunks takes the rows a transaction at a time. The next goes on behind the last
// row of the one before, since rows of a filter for retry still match it.
func (r *Requeue) chunks(ctx context.Context, cmd RequeueCommand, start time.Time, step time.Duration) (rows int, err error) {
	left := cmd.Filter.Limit
	for left > 0 {
		cmd.Filter.Limit = min(left, requeueChunk)
		done, err := r.deps.DeadLetters.RequeueMany(ctx, ports.RequeueParams{
			Filter: cmd.Filter, Start: start.Add(time.Duration(rows) * step), Step: step,
			Audit: *audit(r.deps.Env, cmd.Actor, "inbox.requeue_many", cmd.Reason),
		})
		if err != nil {
			return rows, fmt.Errorf("requeue after %d rows: %w", rows, err)
		}
		rows, left, cmd.Filter.AfterID = rows+done.Rows, left-done.Rows, done.LastID
		if done.Rows < cmd.Filter.Limit {
			break
		}
	}
	return rows, nil
}

func validateRequeue(cmd RequeueCommand) error {
	faults := &FieldErrors{}
	faults.check(slices.Contains([]ports.InboxStatus{ports.InboxDead, ports.InboxRetry, ports.InboxOrphan}, cmd.Filter.Status),
		"status", "unknown", "use dead, retry or orphan")
	faults.check(cmd.Filter.Limit >= 1 && cmd.Filter.Limit <= requeueMost, "limit", "invalid", "use 1 to "+strconv.Itoa(requeueMost))
	faults.check(cmd.Rate >= 1 && cmd.Rate <= requeueFast, "rate", "invalid", "use 1 to "+strconv.Itoa(requeueFast)+" a second")
	faults.check(clean(cmd.Filter.Provider), "provider", "invalid", "use text without NUL")
	faults.check(clean(cmd.Filter.Code), "code", "invalid", "use text without NUL")
	faults.check(cmd.DryRun || cmd.Reason != "", "reason", "required", "say why")
	checkReason(faults, cmd.Reason)
	return faults.err()
}
