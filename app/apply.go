package app

import (
	"context"
	"fmt"
	"time"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// applier brings inputs to the state machine and lets those of many finished
// calls share a transaction.
type applier struct {
	env         Env
	transitions ports.Transitions
	batch       batcher[[]ports.Item, []ports.Result]
}

// The shape of shared transactions: few and large, since each locks rows.
const (
	applyFlushers = 2
	applyBatch    = 64
	applyQueue    = 1 << 16
	applyTimeout  = 10 * time.Second
)

func newApplier(env Env, transitions ports.Transitions) *applier {
	a := &applier{env: env, transitions: transitions}
	a.batch = batcher[[]ports.Item, []ports.Result]{
		flush: a.flush, flushers: applyFlushers, size: applyBatch, depth: applyQueue, timeout: applyTimeout,
	}
	return a
}

// apply stores the items, in their order, and returns their results. An error
// means that nothing is known to be stored. Faults of single items stand in their
// results. It waits for the commit, which is bounded in time, even when ctx has
// ended: what was started is worth knowing.
func (a *applier) apply(ctx context.Context, items ...ports.Item) ([]ports.Result, error) {
	if len(items) == 0 {
		return nil, nil
	}
	results, err := a.batch.do(context.WithoutCancel(ctx), items)
	if err != nil {
		return nil, fmt.Errorf("apply: %w", err)
	}
	return results, nil
}

// applyAll is apply for items whose own faults are errors too.
func (a *applier) applyAll(ctx context.Context, items ...ports.Item) error {
	results, err := a.apply(ctx, items...)
	if err != nil {
		return err
	}
	return faults(results)
}

func (a *applier) flush(ctx context.Context, groups [][]ports.Item) ([][]ports.Result, error) {
	var items []ports.Item
	for _, g := range groups {
		items = append(items, g...)
	}
	results, err := a.transitions.Apply(ctx, items)
	if err != nil {
		return nil, err
	}
	if len(results) != len(items) {
		return nil, fmt.Errorf("%w: %d results for %d items", ports.ErrUnavailable, len(results), len(items))
	}
	a.env.committed(results)
	countVerdicts(a.env.Metrics, items, results)
	out := make([][]ports.Result, len(groups))
	for i, g := range groups {
		out[i], results = results[:len(g):len(g)], results[len(g):]
	}
	return out, nil
}

// faults joins the errors of single items.
func faults(results []ports.Result) error {
	for _, r := range results {
		if r.Err != nil {
			return fmt.Errorf("apply: %w", r.Err)
		}
	}
	return nil
}

func countVerdicts(m Metrics, items []ports.Item, results []ports.Result) {
	for i, r := range results {
		if r.Err == nil {
			m.Add(MetricVerdicts, 1, sourceOf(items[i].Input), string(r.Decision.Verdict.Kind), string(r.Decision.Verdict.Reason))
		}
	}
}

// sourceOf is the label of an input: where news came from, or what it is.
func sourceOf(in domain.Input) string {
	if in.Observation != nil {
		return string(in.Observation.Source)
	}
	return string(in.Kind)
}
