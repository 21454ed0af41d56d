package app_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/aivedio/aivedio/adapters/memory"
	"github.com/aivedio/aivedio/app"
	"github.com/aivedio/aivedio/ports"
)

// manyDead is a desk with many dead letters of which it only keeps the number.
type manyDead struct {
	*memory.Store
	left  int
	after int64
	calls []ports.RequeueParams
	// failAfter is the number of transactions that pass; 0 lets all pass.
	failAfter int
}

func (d *manyDead) TroubledGroups(_ context.Context, f ports.TroubledFilter) ([]ports.TroubledGroup, error) {
	return []ports.TroubledGroup{{Provider: "acme", Status: f.Status, Rows: min(f.Limit, d.left)}}, nil
}

func (d *manyDead) RequeueMany(_ context.Context, p ports.RequeueParams) (ports.RequeueReport, error) {
	if d.failAfter > 0 && len(d.calls) == d.failAfter {
		return ports.RequeueReport{}, errAway
	}
	d.calls = append(d.calls, p)
	n := min(p.Filter.Limit, d.left)
	d.left -= n
	d.after += int64(n)
	return ports.RequeueReport{Rows: n, LastID: d.after}, nil
}

func newRequeue(t *testing.T, desk *manyDead) (*bundle, *app.Requeue) {
	t.Helper()
	b := setup(t)
	desk.Store = b.store
	r, err := app.NewRequeue(app.RequeueDeps{Env: b.env, DeadLetters: desk})
	b.must(err)
	return b, r
}

// TestRequeueOfAHundredThousand: in transactions of a thousand, the whole at one
// pace, no row twice.
func TestRequeueOfAHundredThousand(t *testing.T) {
	t.Parallel()
	desk := &manyDead{left: 250_000}
	b, r := newRequeue(t, desk)
	report, err := r.Run(b.ctx(), app.RequeueCommand{Filter: ports.TroubledFilter{Limit: 100_000}, Rate: 1000, Actor: "op", Reason: "mended"})
	if err != nil || report.Rows != 100_000 || desk.left != 150_000 || len(desk.calls) != 100 {
		t.Fatalf("%d rows in %d transactions, %v", report.Rows, len(desk.calls), err)
	}
	start := b.clock.Now()
	if want := start.Add(99_999 * time.Millisecond); !report.LastDueAt.Equal(want) {
		t.Errorf("the last is due %v, want %v", report.LastDueAt, want)
	}
	actions := map[string]bool{}
	for i, call := range desk.calls {
		if call.Filter.Status != ports.InboxDead || call.Filter.AfterID != int64(i)*1000 || call.Step != time.Millisecond || !call.Start.Equal(start.Add(time.Duration(i)*time.Second)) {
			t.Errorf("transaction %d: %+v", i, call)
		}
		if call.Audit.Actor != "op" || call.Audit.Reason != "mended" || call.Audit.Action != "inbox.requeue_many" {
			t.Errorf("audit %+v", call.Audit)
		}
		actions[call.Audit.ActionID.String()] = true
	}
	if len(actions) != len(desk.calls) {
		t.Errorf("%d actions for %d transactions", len(actions), len(desk.calls))
	}
}

func TestRequeueDryRun(t *testing.T) {
	t.Parallel()
	desk := &manyDead{left: 250}
	b, r := newRequeue(t, desk)
	report, err := r.Run(b.ctx(), app.RequeueCommand{DryRun: true, Rate: 10})
	if err != nil || report.Rows != 250 || len(desk.calls) != 0 || len(report.Groups) != 1 {
		t.Errorf("report %+v, %v after %d transactions", report, err, len(desk.calls))
	}
	if want := b.clock.Now().Add(24900 * time.Millisecond); !report.LastDueAt.Equal(want) {
		t.Errorf("the last would be due %v, want %v", report.LastDueAt, want)
	}
}

// TestRequeueEndsEarly: with fewer rows than asked for, and with a store that goes
// away, the report says what was really taken.
func TestRequeueEndsEarly(t *testing.T) {
	t.Parallel()
	b, r := newRequeue(t, &manyDead{left: 1500})
	if report, err := r.Run(b.ctx(), app.RequeueCommand{Filter: ports.TroubledFilter{Limit: 5000}, Reason: "r"}); err != nil || report.Rows != 1500 {
		t.Errorf("%d rows, %v", report.Rows, err)
	}
	b, r = newRequeue(t, &manyDead{left: 5000, failAfter: 2})
	if report, err := r.Run(b.ctx(), app.RequeueCommand{Filter: ports.TroubledFilter{Limit: 5000}, Reason: "r"}); !errors.Is(err, errAway) || report.Rows != 2000 {
		t.Errorf("%d rows, %v", report.Rows, err)
	}
}

func TestRequeueRefuses(t *testing.T) {
	t.Parallel()
	b, r := newRequeue(t, &manyDead{left: 1})
	for field, cmd := range map[string]app.RequeueCommand{
		"reason":   {},
		"limit":    {Reason: "r", Filter: ports.TroubledFilter{Limit: 100_001}},
		"rate":     {Reason: "r", Rate: -1},
		"status":   {Reason: "r", Filter: ports.TroubledFilter{Status: ports.InboxDone}},
		"provider": {Reason: "r", Filter: ports.TroubledFilter{Provider: "a\x00"}},
		"code":     {Reason: "r", Filter: ports.TroubledFilter{Code: "\xff"}},
	} {
		_, err := r.Run(b.ctx(), cmd)
		var faults *app.FieldErrors
		if !errors.As(err, &faults) || len(faults.Fields) != 1 || faults.Fields[0].Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
}
