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

// Process implements ports.Inbox.
func (s *Store) Process(ctx context.Context, params ports.ProcessParams, decode func(ports.InboxRow) ports.Decoded) (ports.ProcessReport, error) {
	var report ports.ProcessReport
	err := s.write(ctx, func(x *tx) error {
		for _, row := range x.take(params) {
			x.digest(row, params.Now, decode, &report)
		}
		return nil
	})
	if err != nil {
		return ports.ProcessReport{}, err
	}
	return report, nil
}

// take removes up to Limit rows of the worker's shards from the queue.
func (x *tx) take(params ports.ProcessParams) []ports.InboxRow {
	var rows []ports.InboxRow
	var rest []int64
	for _, id := range x.queue {
		row := x.inbox[id]
		if len(rows) < params.Limit && inboxShard(row)%max(params.Workers, 1) == params.Worker {
			rows = append(rows, copyRow(row))
		} else {
			rest = append(rest, id)
		}
	}
	assign(x, &x.queue, rest)
	return rows
}

// digest decodes one row, lets the domain decide and marks it.
func (x *tx) digest(row ports.InboxRow, now time.Time, decode func(ports.InboxRow) ports.Decoded, report *ports.ProcessReport) {
	report.Taken++
	row.ClaimCount++
	decoded := safely(decode, copyRow(row))
	switch {
	case decoded.Err != nil:
		report.Failed++
		x.fail(row, now, cmp.Or(decoded.Code, "undecodable"))
		return
	case decoded.Foreign:
		x.mark(row, ports.InboxIgnored, string(domain.ReasonForeignEvent))
		return
	}
	savepoint := x.savepoint()
	result := x.applyOne(decoded.Item)
	report.Results = append(report.Results, result)
	switch verdict := result.Decision.Verdict; {
	case result.Err != nil:
		x.rollback(savepoint)
		report.Failed++
		x.fail(row, now, "apply")
	case verdict.Reason == domain.ReasonOrphan:
		report.Orphans++
		row.NextRetryAt = now.Add(retryDelay(row.ClaimCount))
		x.mark(row, ports.InboxOrphan, string(verdict.Reason))
	case verdict.Kind == domain.VerdictIgnored:
		x.mark(row, ports.InboxIgnored, string(verdict.Reason))
	default:
		if verdict.Kind == domain.VerdictApplied {
			report.Applied++
		}
		x.mark(row, ports.InboxDone, "")
	}
}

// safely decodes a row; a panic is a body that does not parse.
func safely(decode func(ports.InboxRow) ports.Decoded, row ports.InboxRow) (decoded ports.Decoded) {
	defer func() {
		if r := recover(); r != nil {
			decoded = ports.Decoded{Err: fmt.Errorf("decode: panic: %v", r), Code: "panic"}
		}
	}()
	return decode(row)
}

func (x *tx) mark(row ports.InboxRow, status ports.InboxStatus, code string) {
	row.Status, row.LastError = status, code
	put(x, x.inbox, row.ID, row)
}

// fail counts a failure and puts the row off.
func (x *tx) fail(row ports.InboxRow, now time.Time, code string) {
	row.ErrorCount++
	row.NextRetryAt = now.Add(retryDelay(row.ErrorCount))
	x.mark(row, ports.InboxRetry, code)
}

// retryDelay doubles from a second to five minutes.
func retryDelay(n int) time.Duration {
	return min(time.Second<<min(n-1, 16), 5*time.Minute)
}

// Revive implements ports.Inbox. A pending row without a queue entry, which
// StuckAfter is for, cannot exist here.
func (s *Store) Revive(ctx context.Context, params ports.ReviveParams) (ports.ReviveReport, error) {
	var report ports.ReviveReport
	err := s.write(ctx, func(x *tx) error {
		for _, row := range s.waitingRows(params.Limit, params.Now) {
			orphaned := row.Status == ports.InboxOrphan && params.Now.Sub(row.ReceivedAt) > params.OrphanFor
			failed := row.Status == ports.InboxRetry && row.ErrorCount >= params.MaxErrors
			if orphaned || failed {
				report.Dead++
				x.mark(row, ports.InboxDead, row.LastError)
			} else {
				report.Revived++
				x.requeue(row)
			}
		}
		return nil
	})
	if err != nil {
		return ports.ReviveReport{}, err
	}
	return report, nil
}

// waitingRows lists due rows that wait for a retry or for their task.
func (s *Store) waitingRows(limit int, now time.Time) []ports.InboxRow {
	var due []ports.InboxRow
	for _, row := range s.inbox {
		if (row.Status == ports.InboxRetry || row.Status == ports.InboxOrphan) && !row.NextRetryAt.After(now) {
			due = append(due, row)
		}
	}
	slices.SortFunc(due, func(a, b ports.InboxRow) int { return cmp.Compare(a.ID, b.ID) })
	return due[:min(max(limit, 0), len(due))]
}
