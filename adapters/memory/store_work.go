package memory

import (
	"cmp"
	"context"
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
			if params.Kind == ports.WorkPoll || params.Kind == ports.WorkReconcile {
				until := params.Now.Add(params.LeaseFor)
				a.PollLease, a.PollLeaseUntil = params.Lease, &until
				put(x, s.attempts, a.ID, a)
			}
			jobs = append(jobs, s.job(a.ID))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return jobs, nil
}

// dueAttempts lists the attempts that the claim is about, the longest due first.
func (s *Store) dueAttempts(params ports.ClaimParams) []attemptRow {
	type dueRow struct {
		attemptRow
		at time.Time
	}
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
	slices.SortFunc(due, func(a, b dueRow) int {
		return cmp.Or(a.at.Compare(b.at), slices.Compare(a.ID.ID[:], b.ID.ID[:]))
	})
	var rows []attemptRow
	for _, row := range due[:min(max(params.Limit, 0), len(due))] {
		rows = append(rows, row.attemptRow)
	}
	return rows
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
		if a.Status == domain.AttemptCreated {
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
