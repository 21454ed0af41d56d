package pgstore

import (
	"cmp"
	"slices"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// plan is what a transaction will write, in the order in which it was decided.
type plan struct {
	// results are completed with the numbers of their events.
	results []*ports.Result

	// dirty lists changed attempts once, in the order of their first change.
	dirty   []domain.AttemptID
	isDirty map[domain.AttemptID]bool
	opened  []opened

	events []pendingEvent
	// changed holds per task its version when it was locked and its last event.
	changed map[domain.TaskID]changed

	booked     []booked
	started    []domain.Operation
	finished   []ports.OperationFinish
	conflicts  []conflict
	cases      []caseMove
	observed   []observed
	counted    map[counterKey]int64
	assets     []ports.Asset
	audits     []audited
	remembered []remembered
}

// opened is a new attempt with the hash of its callback token.
type opened struct {
	domain.Attempt
	tokenHash []byte
}

// pendingEvent is an event that waits for its number, with the task behind it;
// result is the place of the item that caused it.
type pendingEvent struct {
	domain.Event
	task   domain.Task
	result int
}

type changed struct {
	before int64
	event  int
}

// booked is a ledger entry with what its attempt has reserved.
type booked struct {
	domain.LedgerEntry
	reserved int64
}

type conflict struct {
	domain.Conflict
	subject string
	task    domain.TaskID
	attempt domain.AttemptID
}

// caseMove opens or closes a case.
type caseMove struct {
	kind    domain.CaseKind
	task    domain.TaskID
	attempt domain.AttemptID
	open    bool
}

// observed is an input for the timeline.
type observed struct {
	input         domain.Input
	source        domain.Source
	decision      domain.Decision
	versionBefore int64
	inboxID       int64
}

type counterKey struct {
	task domain.TaskID
	domain.Verdict
}

type audited struct {
	ports.Audit
	task    domain.TaskID
	attempt domain.AttemptID
	subject string
}

// remembered is an idempotency key and what it led to.
type remembered struct {
	ports.Idempotency
	task domain.TaskID
}

func newPlan() plan {
	return plan{isDirty: map[domain.AttemptID]bool{}, changed: map[domain.TaskID]changed{}, counted: map[counterKey]int64{}}
}

func (p *plan) changeAttempt(id domain.AttemptID) {
	if !p.isDirty[id] {
		p.isDirty[id] = true
		p.dirty = append(p.dirty, id)
	}
}

// emit plans a task's event. The item's result is the next in the list.
func (p *plan) emit(before domain.Task, d domain.Decision) {
	c, ok := p.changed[d.Task.ID]
	if !ok {
		c.before = before.Version
	}
	c.event = len(p.events)
	p.changed[d.Task.ID] = c
	p.events = append(p.events, pendingEvent{*d.Event, d.Task, len(p.results)})
}

// follow plans operations, conflicts and cases of a decision.
func (p *plan) follow(d domain.Decision) {
	p.started = append(p.started, d.Operations...)
	if d.Conflict != nil {
		p.conflicts = append(p.conflicts, conflict{*d.Conflict, d.Attempt.ID.String(), d.Task.ID, d.Attempt.ID})
	}
	for _, kind := range d.CloseCases {
		p.cases = append(p.cases, caseMove{kind, d.Task.ID, d.Attempt.ID, false})
	}
	for _, kind := range d.OpenCases {
		p.cases = append(p.cases, caseMove{kind, d.Task.ID, d.Attempt.ID, true})
	}
}

// record plans the timeline's entry of an input, or counts it.
func (p *plan) record(item ports.Item, versionBefore int64, d domain.Decision, inboxID int64) {
	if !d.Recorded() {
		p.counted[counterKey{d.Task.ID, d.Verdict}]++
		return
	}
	source := domain.SourceSystem
	switch {
	case item.Input.Observation != nil:
		source = item.Input.Observation.Source
	case d.Source != "":
		source = d.Source
	}
	p.observed = append(p.observed, observed{item.Input, source, d, versionBefore, inboxID})
}

// counters lists the counts in a fixed order, so that two transactions meet
// their common rows in the same order.
func (p *plan) counters() []counterKey {
	keys := make([]counterKey, 0, len(p.counted))
	for key := range p.counted {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b counterKey) int {
		return cmp.Or(slices.Compare(a.task.ID[:], b.task.ID[:]), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Reason, b.Reason))
	})
	return keys
}
