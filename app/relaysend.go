package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// send publishes the rows outside any transaction and records what became of
// them.
func (r *Relay) send(ctx context.Context, rows []ports.OutboxRow) (int, error) {
	sendCtx, cancel := context.WithTimeout(ctx, r.cfg.SendTimeout)
	defer cancel()
	err := r.deps.Bus.Publish(sendCtx, rows)
	out := sortRows(rows, err)
	if err != nil {
		r.deps.Metrics.Add(MetricPublishErrors, 1)
	}
	if err := r.published(ctx, out.sent); err != nil {
		return 0, err
	}
	for _, group := range out.refused {
		if err := r.refused(ctx, group); err != nil {
			return len(out.sent), err
		}
	}
	r.note(out, err)
	if len(out.sent) == 0 && len(out.refused) == 0 {
		return 0, fmt.Errorf("publish: %w", err)
	}
	return len(out.sent), nil
}

// handover is what the bus did with a batch.
type handover struct {
	sent    []ports.OutboxRow
	refused []refusedRow
	away    []domain.ProjectID // the bus did not take them, and may later
}

// refusedRow is the first row of a project that the bus refuses, and why.
type refusedRow struct {
	row ports.OutboxRow
	err error
}

// sortRows sorts the rows by what the bus said of their projects. A plain error
// says nothing about any of them.
func sortRows(rows []ports.OutboxRow, err error) handover {
	if err == nil {
		return handover{sent: rows}
	}
	var out handover
	var pe *ports.PublishError
	errors.As(err, &pe)
	var last domain.ProjectID // the rows of a project are together
	for i, row := range rows {
		project := row.Event.ProjectID
		first := i == 0 || project != last
		last = project
		failed := err
		if pe != nil && len(pe.FailedProjects) > 0 {
			failed = pe.FailedProjects[project.String()]
		}
		switch {
		case failed == nil:
			out.sent = append(out.sent, row)
		case first && errors.Is(failed, ports.ErrRefused):
			out.refused = append(out.refused, refusedRow{row, failed})
		case first:
			out.away = append(out.away, project)
		}
	}
	return out
}

func (r *Relay) published(ctx context.Context, rows []ports.OutboxRow) error {
	if len(rows) == 0 {
		return nil
	}
	now := r.deps.Now()
	for _, row := range rows {
		r.deps.Metrics.Observe(MetricPublishLag, now.Sub(row.Event.CreatedAt).Seconds())
	}
	r.deps.Metrics.Add(MetricPublished, float64(len(rows)))
	if err := r.deps.Outbox.MarkPublished(ctx, r.shards, rowIDs(rows)); err != nil {
		return fmt.Errorf("mark published: %w", err)
	}
	return nil
}

// refused has a project's rows wait, for a person after MaxTries.
func (r *Relay) refused(ctx context.Context, group refusedRow) error {
	project := group.row.Event.ProjectID
	wait := domain.Interval{Base: r.cfg.Retry, Cap: r.cfg.MaxRetry}.Backoff(group.row.Tries)
	parked, err := r.deps.Outbox.MarkFailed(ctx, ports.PublishFailure{
		ProjectID: project, Lease: r.leaseOf(group.row.Shard), MaxTries: r.cfg.MaxTries, ErrorCode: "refused",
		NextAt: r.deps.Now().Add(time.Duration(float64(wait) * r.deps.Jitter())),
	})
	if err != nil {
		return fmt.Errorf("mark failed: %w", err)
	}
	if parked {
		r.gaugeAt = time.Time{}
		r.deps.Logger.Warn("a project is parked: the bus refuses its events", "project_id", project.String(), "refusals", group.row.Tries+1, "error", group.err)
	}
	return nil
}

func (r *Relay) leaseOf(shard int) ports.ShardLease {
	for _, l := range r.shards {
		if l.Shard == shard {
			return l
		}
	}
	return ports.ShardLease{Shard: shard}
}

func rowIDs(rows []ports.OutboxRow) []int64 {
	ids := make([]int64, len(rows))
	for i, row := range rows {
		ids[i] = row.ID
	}
	return ids
}

// note keeps in mind which projects the bus does not take at present. While it takes
// some, nobody else would tell of the others.
func (r *Relay) note(out handover, err error) {
	before := len(r.away.projects)
	for _, row := range out.sent {
		r.away.back(row.Event.ProjectID)
	}
	r.away.add(out.away, err, r.deps.Now(), r.deps.Jitter)
	r.away.all = len(out.sent) == 0
	switch after := len(r.away.projects); {
	case before == 0 && after > 0 && len(out.sent) > 0:
		r.deps.Logger.Warn("the bus takes the events of some projects only; trying on", "projects", after, "error", err)
	case before > 0 && after == 0:
		r.deps.Logger.Info("the bus takes events of all projects again")
	}
}
