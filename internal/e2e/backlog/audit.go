package backlog

import (
	"fmt"
	"time"

	"github.com/aivedio/aivedio/domain"
)

// Audit reads messages in the order of their queues and compares them with what
// there was. It is not safe for concurrent use.
type Audit struct {
	want map[domain.ProjectID]int64
	// next is the number of the event that has to come first among those that have
	// not come yet.
	next map[domain.ProjectID]int64

	messages, repeats int
	missing           int64
	early, strange    int
	firstAt, lastAt   time.Time
	example           string
}

// NewAudit expects the events 1 to n of each project.
func NewAudit(want map[domain.ProjectID]int64) *Audit {
	a := &Audit{want: want, next: map[domain.ProjectID]int64{}}
	for project, n := range want {
		a.next[project] = 1
		a.missing += n
	}
	return a
}

// See takes the next message of a queue.
func (a *Audit) See(project domain.ProjectID, event int64, stored time.Time) {
	a.messages++
	if a.firstAt.IsZero() || stored.Before(a.firstAt) {
		a.firstAt = stored
	}
	if stored.After(a.lastAt) {
		a.lastAt = stored
	}
	next, known := a.next[project]
	switch {
	case !known || event < 1 || event > a.want[project]:
		a.strange++
	case event < next:
		a.repeats++
	case event > next:
		a.early++
		if a.example == "" {
			a.example = fmt.Sprintf("event %d of project %s came before event %d", event, project, next)
		}
	default:
		a.next[project]++
		a.missing--
	}
}

// Complete reports whether everything has come.
func (a *Audit) Complete() bool { return a.missing == 0 }

// Finding is what an audit found.
type Finding struct {
	// Messages are all that came, Repeats those that had come before.
	Messages int `json:"messages"`
	Repeats  int `json:"repeats"`
	// Lost are events that never came in their order; after one of them nothing of
	// its project counts. Early are messages before one that had to come first, Strange those that nobody
	// wrote.
	Lost    int64 `json:"lost"`
	Early   int   `json:"early"`
	Strange int   `json:"strange"`
	// Took is from the first message that the broker stored to the last.
	Took time.Duration `json:"-"`
	// Example describes the first violation.
	Example string `json:"example,omitempty"`
}

// Finding is the result so far.
func (a *Audit) Finding() Finding {
	return Finding{
		Messages: a.messages, Repeats: a.repeats, Lost: a.missing, Early: a.early, Strange: a.strange,
		Took: a.lastAt.Sub(a.firstAt), Example: a.example,
	}
}

// Violations is how many promises were broken; repeats are none.
func (f Finding) Violations() int { return f.Early + f.Strange }
