package memory

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// Claim implements ports.Work.
func (s *Store) Claim(ctx context.Context, params ports.ClaimParams) ([]ports.Job, error) {
	var jobs []ports.Job
	err := s.write(ctx, func(x *tx) error {
		for _, a := range s.dueAttempts(params) {
			x.lease(a, params)
			jobs = append(jobs, s.job(a.ID))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return jobs, nil
}

// lease takes an attempt for the caller, where the kind has a lease.
func (x *tx) lease(a attemptRow, params ports.ClaimParams) {
	until := params.Now.Add(params.LeaseFor)
	switch params.Kind {
	case ports.WorkSubmit:
		a.SubmitLease, a.SubmitLeaseUntil = params.Lease, &until
	case ports.WorkPoll:
		a.PollLease, a.PollLeaseUntil = params.Lease, &until
		x.order(a.Attempt, params.Now)
	case ports.WorkReconcile:
		a.PollLease, a.PollLeaseUntil = params.Lease, &until
	default:
		return
	}
	put(x, x.attempts, a.ID, a)
}

// dueRow is an attempt with the moment that counts.
type dueRow struct {
	attemptRow
	at time.Time
}

// dueAttempts lists the attempts that the claim is about, the longest due first.
func (s *Store) dueAttempts(params ports.ClaimParams) []attemptRow {
	var due []dueRow
	for id := range s.waiting {
		a := s.attempts[id]
		limit := params.Now
		if params.Kind == ports.WorkOverdue {
			limit = params.Before
		}
		if at := dueAt(a.Attempt, params); at != nil && !at.After(limit) && wanted(a.Attempt, params) {
			due = append(due, dueRow{a, *at})
		}
	}
	slices.SortFunc(due, longestDue)
	if params.Kind == ports.WorkPoll {
		due = s.share(due, params)
	}
	var rows []attemptRow
	for _, row := range due[:min(max(params.Limit, 0), len(due))] {
		rows = append(rows, row.attemptRow)
	}
	return rows
}

func longestDue(a, b dueRow) int {
	return cmp.Or(a.at.Compare(b.at), slices.Compare(a.ID.ID[:], b.ID.ID[:]))
}

// share takes from the two queues of polls what a claim may have of each.
func (s *Store) share(due []dueRow, params ports.ClaimParams) []dueRow {
	var first, rest []dueRow
	for _, row := range due {
		if _, ok := s.first[row.ID]; ok || row.PollHintAt != nil {
			first = append(first, row)
		} else {
			rest = append(rest, row)
		}
	}
	limit := max(params.Limit, 0)
	first = first[:min(len(first), max(limit-max(params.ForOthers, 0), 0))]
	both := append(first, rest[:min(len(rest), limit-len(first))]...)
	slices.SortFunc(both, longestDue)
	return both
}

// wanted reports whether the claim is about the attempt's account.
func wanted(a domain.Attempt, params ports.ClaimParams) bool {
	return (params.Provider == "" || params.Provider == a.Provider) && (params.AccountID == "" || params.AccountID == a.AccountID) &&
		!slices.Contains(params.Except, ports.AccountRef{Provider: a.Provider, AccountID: a.AccountID})
}

// dueAt is the moment that counts for the kind of work, nil when the attempt is
// none of it.
func dueAt(a domain.Attempt, params ports.ClaimParams) *time.Time {
	leased := !a.PollLease.IsZero() && a.PollLeaseUntil != nil && a.PollLeaseUntil.After(params.Now)
	switch params.Kind {
	case ports.WorkSubmit:
		if a.Status == domain.AttemptCreated && (a.SubmitLeaseUntil == nil || !a.SubmitLeaseUntil.After(params.Now)) {
			return a.NextSubmitAt
		}
	case ports.WorkSubmitExpired:
		if a.Status == domain.AttemptSubmitting {
			return a.SubmitLeaseUntil
		}
	case ports.WorkPoll:
		if !leased {
			return a.NextPollAt
		}
	case ports.WorkReconcile:
		if !leased {
			return a.NextReconcileAt
		}
	case ports.WorkProgress:
		return a.DeferredUntil
	case ports.WorkOverdue:
		if canBeOverdue(a) {
			return cmp.Or(a.SubmittedAt, &a.CreatedAt)
		}
	}
	return nil
}

// canBeOverdue reports whether the attempt may still take too long. An unknown
// submit has a case of its own already.
func canBeOverdue(a domain.Attempt) bool {
	return !a.Status.Terminal() && !a.Overdue && a.Status != domain.AttemptSubmitUnknown
}

// PutOff implements ports.Work.
func (s *Store) PutOff(ctx context.Context, params ports.PutOffParams) error {
	return s.write(ctx, func(x *tx) error {
		for _, job := range params.Jobs {
			a, ok := x.attempts[job.ID]
			switch params.Kind {
			case ports.WorkSubmit:
				if ok && a.SubmitLease == params.Lease && a.Status == domain.AttemptCreated {
					a.SubmitLeaseUntil = &job.Until
					put(x, x.attempts, a.ID, a)
				}
			case ports.WorkPoll, ports.WorkReconcile:
				if ok && a.PollLease == params.Lease {
					a.PollLeaseUntil = &job.Until
					put(x, x.attempts, a.ID, a)
				}
			default:
				return fmt.Errorf("%w: kind of work %q has no lease", errData, params.Kind)
			}
		}
		return nil
	})
}
