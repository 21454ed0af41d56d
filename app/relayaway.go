package app

import (
	"fmt"
	"time"

	"github.com/aivedio/aivedio/domain"
)

// The waits for a bus that does not take a project's rows, and for how many
// projects they are kept.
const (
	firstAway = 250 * time.Millisecond
	mostAway  = 5 * time.Second
	keptAway  = 4096
)

// awayProjects are the projects whose rows the bus, or a broker of it, does not take
// at present. They are skipped for some seconds, so that those of another broker
// come to their turn, and are never written down: an outage ends by itself.
type awayProjects struct {
	projects map[domain.ProjectID]awayProject
	cause    error
	all      bool // the bus took nothing of the last batch
}

type awayProject struct {
	until    time.Time
	failures int
}

func newAwayProjects() awayProjects {
	return awayProjects{projects: map[domain.ProjectID]awayProject{}}
}

// err is why nothing is sent, nil when that is not the bus's fault.
func (a *awayProjects) err() error {
	if len(a.projects) == 0 || !a.all {
		return nil
	}
	return fmt.Errorf("%d projects wait for the bus: %w", len(a.projects), a.cause)
}

// add has the projects wait, longer with each failure.
func (a *awayProjects) add(projects []domain.ProjectID, err error, now time.Time, jitter func() float64) {
	if len(projects) == 0 {
		return
	}
	a.cause = err
	if len(a.projects) > keptAway {
		clear(a.projects)
	}
	for _, p := range projects {
		known := a.projects[p]
		wait := domain.Interval{Base: firstAway, Cap: mostAway}.Backoff(known.failures)
		a.projects[p] = awayProject{now.Add(time.Duration(float64(wait) * jitter())), known.failures + 1}
	}
}

func (a *awayProjects) back(project domain.ProjectID) { delete(a.projects, project) }

// waiting lists whom to skip.
func (a *awayProjects) waiting(now time.Time) []domain.ProjectID {
	var skip []domain.ProjectID
	for p, w := range a.projects {
		if w.until.After(now) {
			skip = append(skip, p)
		}
	}
	return skip
}

// forget drops projects that were due long ago: another relay has sent them.
func (a *awayProjects) forget(now time.Time) {
	for p, w := range a.projects {
		if now.Sub(w.until) > 2*mostAway {
			delete(a.projects, p)
		}
	}
}
