package porttest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// GapPlan is what the writers of a gap test work on. It survives encoding/json,
// which carries it to their processes.
type GapPlan struct {
	// Projects are the streams.
	Projects []domain.ProjectID
	// Tasks are spread over the projects in turns.
	Tasks []domain.TaskID
}

// NewGapPlan creates projects and tasks in the store.
func NewGapPlan(t *testing.T, store ports.Store, projects, tasks int) GapPlan {
	t.Helper()
	b := newStoreBench(t, StoreFixture{Store: store, Clock: NewClock()})
	plan := GapPlan{Projects: []domain.ProjectID{b.project}}
	for len(plan.Projects) < projects {
		plan.Projects = append(plan.Projects, b.newProject(b.tenant, fmt.Sprintf("project %d", len(plan.Projects))))
	}
	for i := range tasks {
		plan.Tasks = append(plan.Tasks, b.createIn(plan.Projects[i%projects]).task)
	}
	return plan
}

// Write is the work of one process: rounds of batches over some of the tasks in
// random order, each of which cancels and retries, and a line on out for each
// event after its commit. A call that fails as ports.ErrUnavailable is passed
// over: it is the fault that the test injects.
func (p GapPlan) Write(ctx context.Context, store ports.Store, seed uint64, rounds int, out io.Writer) error {
	rng := rand.New(rand.NewPCG(seed, 0))
	for range rounds {
		results, err := store.Apply(ctx, p.batch(rng))
		switch {
		case errors.Is(err, ports.ErrUnavailable):
			continue
		case err != nil:
			return fmt.Errorf("apply: %w", err)
		}
		for _, r := range results {
			if r.Event == nil {
				continue
			}
			if _, err := io.WriteString(out, GapLine(p.stream(r.Event.ProjectID), gapEvent(*r.Event))); err != nil {
				return err
			}
		}
	}
	return nil
}

// batch takes up to half of the tasks.
func (p GapPlan) batch(rng *rand.Rand) []ports.Item {
	var items []ports.Item
	for _, i := range rng.Perm(len(p.Tasks))[:1+rng.IntN(max(len(p.Tasks)/2, 1))] {
		m := made{task: p.Tasks[i], project: p.Projects[i%len(p.Projects)]}
		cancel := command(m, domain.Input{Kind: domain.InputCancelRequested})
		again, _ := retryOf(m)
		items = append(items, cancel, again)
	}
	return items
}

func (p GapPlan) stream(project domain.ProjectID) int {
	for i, id := range p.Projects {
		if id == project {
			return i
		}
	}
	return -1
}

// Follow is the reader of a stream, as Gap.Follow wants it.
func (p GapPlan) Follow(store ports.Store) func(stream int) func(ctx context.Context) ([]GapEvent, error) {
	return func(stream int) func(ctx context.Context) ([]GapEvent, error) {
		var cursor domain.Cursor
		return func(ctx context.Context) ([]GapEvent, error) {
			page, err := store.After(ctx, p.Projects[stream], cursor, 100)
			if err != nil {
				return nil, err
			}
			if page.Reset != "" {
				return nil, fmt.Errorf("reset %s at cursor %s", page.Reset, cursor)
			}
			var events []GapEvent
			for _, e := range page.Events {
				events = append(events, gapEvent(e))
				cursor = e.Cursor()
			}
			return events, nil
		}
	}
}

// gapEvent names an event by what makes it unique.
func gapEvent(e ports.StoredEvent) GapEvent {
	return GapEvent{Number: e.EventID, Name: fmt.Sprintf("%s/%d", e.TaskID, e.Version)}
}
