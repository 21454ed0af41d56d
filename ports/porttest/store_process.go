package porttest

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

func processTests() []storeTest {
	return []storeTest{
		{"Nothing", processNothing},
		{"Applies", processApplies},
		{"OrderOfOneTask", processOrderOfOneTask},
		{"ManyOfOneTaskInOneRound", processManyOfOneTaskInOneRound},
		{"WorkersShareOnce", processWorkersShareOnce},
		{"WorkerKeepsToItsShards", processWorkerKeepsToItsShards},
		{"Limit", processLimit},
		{"Rollback", processRollback},
		{"Poison", processPoison},
		{"RefusedData", processRefusedData},
		{"Foreign", processForeign},
		{"Ignored", processIgnored},
		{"Orphan", processOrphan},
	}
}

// process runs one round of the only worker.
func (b *storeBench) process(decode func(ports.InboxRow) ports.Decoded) ports.ProcessReport {
	b.t.Helper()
	report, err := b.Store.Process(b.ctx, b.round(), decode)
	if err != nil {
		b.t.Fatalf("Process: %v", err)
	}
	return report
}

func (b *storeBench) round() ports.ProcessParams {
	return ports.ProcessParams{Worker: 0, Workers: 1, Limit: 100, Now: b.Clock.Now()}
}

// news is what a provider's adapter makes of a delivery.
func (b *storeBench) news(row ports.InboxRow, status domain.Observed) ports.Decoded {
	o := b.observation(made{vendorID: row.ProviderTaskID}, status)
	o.Source, o.Trust, o.TraceID = domain.SourceWebhook, row.Trust, row.TraceID
	o.ProviderEventID, o.DedupKey = row.ProviderEventID, row.DedupKey
	return ports.Decoded{Item: ports.Item{
		Ref: ports.Ref{
			TokenHash: row.TokenHash, Provider: row.Provider, AccountID: row.AccountID,
			ProviderTaskID: row.ProviderTaskID, ClientRequestID: row.ClientRequestID,
		},
		Input: domain.Input{Kind: domain.InputObservation, Observation: o},
	}}
}

// always decodes every row to the same status.
func (b *storeBench) always(status domain.Observed) func(ports.InboxRow) ports.Decoded {
	return func(row ports.InboxRow) ports.Decoded { return b.news(row, status) }
}

// inboxRow reads a row as it is now.
func (b *storeBench) inboxRow(id int64) ports.InboxRow {
	b.t.Helper()
	row, err := b.Store.InboxRow(b.ctx, id)
	if err != nil {
		b.t.Fatalf("InboxRow(%d): %v", id, err)
	}
	return row
}

func processNothing(t *testing.T, b *storeBench) {
	if report := b.process(b.always(domain.ObservedRunning)); report.Taken != 0 || len(report.Results) != 0 {
		t.Errorf("report %+v", report)
	}
}

func processApplies(t *testing.T, b *storeBench) {
	m := b.submitted()
	b.receive(b.delivery(m, "evt-1"))
	var id int64
	report := b.process(func(row ports.InboxRow) ports.Decoded {
		id = row.ID
		return b.news(row, domain.ObservedSucceeded)
	})
	if report.Taken != 1 || report.Applied != 1 || report.Orphans != 0 || report.Failed != 0 || len(report.Results) != 1 {
		t.Fatalf("report %+v", report)
	}
	if r := report.Results[0]; r.Event == nil || r.Decision.Task.ID != m.task || r.Event.Source != domain.SourceWebhook {
		t.Errorf("result %+v", r)
	}
	if v := b.task(m); v.Task.Phase != domain.PhaseProviderSucceeded {
		t.Errorf("task is %s", v.Task.Phase)
	}
	if row := b.inboxRow(id); row.Status != ports.InboxDone || row.LastError != "" {
		t.Errorf("row is %s, %q", row.Status, row.LastError)
	}
	if report := b.process(b.always(domain.ObservedRunning)); report.Taken != 0 {
		t.Errorf("a digested row was taken again: %+v", report)
	}
	b.checkStream(b.events(b.project))
}

// processOrderOfOneTask: rows of one task come in the order of their arrival,
// round by round.
func processOrderOfOneTask(t *testing.T, b *storeBench) {
	tasks := []made{b.submitted(), b.submitted(), b.submitted()}
	for i := range 4 {
		for k, m := range tasks {
			b.receive(b.delivery(m, fmt.Sprintf("evt-%d-%d", k, i)))
		}
	}
	got := map[string][]string{}
	params := b.round()
	params.Limit = 2
	for {
		report, err := b.Store.Process(b.ctx, params, func(row ports.InboxRow) ports.Decoded {
			got[row.ProviderTaskID] = append(got[row.ProviderTaskID], row.ProviderEventID)
			return b.news(row, domain.ObservedRunning)
		})
		if err != nil {
			t.Fatal(err)
		}
		if report.Taken == 0 {
			break
		}
	}
	for k, m := range tasks {
		want := fmt.Sprint([]string{fmt.Sprintf("evt-%d-0", k), fmt.Sprintf("evt-%d-1", k), fmt.Sprintf("evt-%d-2", k), fmt.Sprintf("evt-%d-3", k)})
		if fmt.Sprint(got[m.vendorID]) != want {
			t.Errorf("task %d was digested in the order %v, want %s", k, got[m.vendorID], want)
		}
	}
}

// processManyOfOneTaskInOneRound: each row sees what the one before has written.
func processManyOfOneTaskInOneRound(t *testing.T, b *storeBench) {
	m := b.submitted()
	statuses := []domain.Observed{domain.ObservedQueued, domain.ObservedRunning, domain.ObservedSucceeded, domain.ObservedRunning}
	for i := range statuses {
		b.receive(b.delivery(m, fmt.Sprintf("evt-%d", i)))
	}
	n := 0
	report := b.process(func(row ports.InboxRow) ports.Decoded {
		n++
		return b.news(row, statuses[n-1])
	})
	if report.Taken != 4 || len(report.Results) != 4 {
		t.Fatalf("report %+v", report)
	}
	wantVerdict(t, "running", report.Results[1], domain.VerdictApplied, "")
	wantVerdict(t, "succeeded", report.Results[2], domain.VerdictApplied, "")
	wantVerdict(t, "running after succeeded", report.Results[3], domain.VerdictIgnored, domain.ReasonTerminalAbsorbing)
	b.checkStream(b.events(b.project))
}

// processWorkersShareOnce: several workers take every row once, and the rows of
// one task in order.
func processWorkersShareOnce(t *testing.T, b *storeBench) {
	const workers, tasks, each = 4, 8, 5
	for k := range tasks {
		m := b.submitted()
		for i := range each {
			b.receive(b.delivery(m, fmt.Sprintf("evt-%d-%d", k, i)))
		}
	}
	var mu sync.Mutex
	got := map[string][]int64{}
	together(workers, func(w int) {
		for {
			report, err := b.Store.Process(b.ctx, ports.ProcessParams{Worker: w, Workers: workers, Limit: 3, Now: b.Clock.Now()}, func(row ports.InboxRow) ports.Decoded {
				mu.Lock()
				defer mu.Unlock()
				got[row.ProviderTaskID] = append(got[row.ProviderTaskID], row.ID)
				return b.news(row, domain.ObservedRunning)
			})
			if err != nil {
				t.Errorf("Process: %v", err)
				return
			}
			if report.Taken == 0 {
				return
			}
		}
	})
	if len(got) != tasks {
		t.Errorf("%d tasks were digested, want %d", len(got), tasks)
	}
	for job, ids := range got {
		if len(ids) != each {
			t.Errorf("job %s: %d rows, want %d", job, len(ids), each)
		}
		for i := range ids {
			if i > 0 && ids[i] <= ids[i-1] {
				t.Errorf("job %s: row %d after row %d", job, ids[i], ids[i-1])
			}
		}
	}
	b.checkStream(b.events(b.project))
}

// processWorkerKeepsToItsShards: a job belongs to one worker, whoever asks first.
func processWorkerKeepsToItsShards(t *testing.T, b *storeBench) {
	const tasks, each = 24, 2
	for k := range tasks {
		m := b.submitted()
		for i := range each {
			b.receive(b.delivery(m, fmt.Sprintf("evt-%d-%d", k, i)))
		}
	}
	got := [2]map[string]int{{}, {}}
	for w := range got {
		params := b.round()
		params.Worker, params.Workers = w, len(got)
		for report := (ports.ProcessReport{Taken: 1}); report.Taken > 0; {
			var err error
			if report, err = b.Store.Process(b.ctx, params, func(row ports.InboxRow) ports.Decoded {
				got[w][row.ProviderTaskID]++
				return b.news(row, domain.ObservedRunning)
			}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(got[0]) == 0 || len(got[1]) == 0 || len(got[0])+len(got[1]) != tasks {
		t.Errorf("the workers took %d and %d jobs of %d", len(got[0]), len(got[1]), tasks)
	}
	for w := range got {
		for job, n := range got[w] {
			if n != each {
				t.Errorf("worker %d took %d rows of job %s, want %d", w, n, job, each)
			}
		}
	}
}

func processLimit(t *testing.T, b *storeBench) {
	m := b.submitted()
	for i := range 5 {
		b.receive(b.delivery(m, fmt.Sprintf("evt-%d", i)))
	}
	params := b.round()
	params.Limit = 2
	for _, want := range []int{2, 2, 1, 0} {
		report, err := b.Store.Process(b.ctx, params, b.always(domain.ObservedRunning))
		if err != nil || report.Taken != want {
			t.Errorf("taken %d, %v; want %d", report.Taken, err, want)
		}
	}
}

// processRollback: a crash before the commit gives the rows back, in order, and
// leaves nothing of what was decided.
func processRollback(t *testing.T, b *storeBench) {
	b.needRollback()
	m := b.submitted()
	b.receive(b.delivery(m, "evt-1"))
	b.receive(b.delivery(m, "evt-2"))
	head := b.head(b.project)
	b.InjectRollback(1)
	_, err := b.Store.Process(b.ctx, b.round(), b.always(domain.ObservedRunning))
	wantErr(t, "a lost transaction", err, ports.ErrUnavailable)
	b.InjectRollback(0)
	if b.head(b.project) != head || b.task(m).Task.Version != 2 {
		t.Errorf("a lost transaction left something: head %v, version %d", b.head(b.project), b.task(m).Task.Version)
	}
	rows := b.takenRows(2)
	if rows[0].ProviderEventID != "evt-1" || rows[1].ProviderEventID != "evt-2" {
		t.Errorf("given back in the order %s, %s", rows[0].ProviderEventID, rows[1].ProviderEventID)
	}
}

// processPoison: a body that does not parse hurts nobody else.
func processPoison(t *testing.T, b *storeBench) {
	good, bad := b.submitted(), b.submitted()
	b.receive(b.delivery(good, "evt-1"))
	b.receive(b.delivery(bad, "evt-2"))
	b.receive(b.delivery(good, "evt-3"))
	var poison int64
	report := b.process(func(row ports.InboxRow) ports.Decoded {
		if row.ProviderEventID == "evt-2" {
			poison = row.ID
			return ports.Decoded{Err: errors.New("unexpected end of input"), Code: "truncated"}
		}
		return b.news(row, domain.ObservedSucceeded)
	})
	if report.Taken != 3 || report.Failed != 1 || report.Applied != 1 || len(report.Results) != 2 {
		t.Errorf("report %+v", report)
	}
	row := b.inboxRow(poison)
	if row.Status != ports.InboxRetry || row.ErrorCount != 1 || row.LastError != "truncated" || !row.NextRetryAt.After(b.Clock.Now()) {
		t.Errorf("the poison row: %s, %d errors, %q, next at %v", row.Status, row.ErrorCount, row.LastError, row.NextRetryAt)
	}
	if b.task(good).Task.Phase != domain.PhaseProviderSucceeded || b.task(bad).Task.Version != 2 {
		t.Errorf("tasks %s and version %d", b.task(good).Task.Phase, b.task(bad).Task.Version)
	}
}

// processRefusedData: a body that parses and cannot be stored hurts nobody else
// either.
func processRefusedData(t *testing.T, b *storeBench) {
	good, bad := b.submitted(), b.submitted()
	b.receive(b.delivery(bad, "evt-1"))
	b.receive(b.delivery(good, "evt-2"))
	var poison int64
	report := b.process(func(row ports.InboxRow) ports.Decoded {
		d := b.news(row, domain.ObservedFailed)
		if row.ProviderEventID == "evt-1" {
			poison = row.ID
			d.Item.Input.Observation.ErrorCode = "a\x00b"
		}
		return d
	})
	if report.Taken != 2 || report.Failed != 1 || report.Applied != 1 {
		t.Errorf("report %+v", report)
	}
	if row := b.inboxRow(poison); row.Status != ports.InboxRetry || row.ErrorCount != 1 {
		t.Errorf("the refused row: %s, %d errors", row.Status, row.ErrorCount)
	}
	if b.task(good).Task.Phase != domain.PhaseFailed || b.task(bad).Task.Phase == domain.PhaseFailed {
		t.Errorf("tasks %s and %s", b.task(good).Task.Phase, b.task(bad).Task.Phase)
	}
	b.checkStream(b.events(b.project))
}

func processForeign(t *testing.T, b *storeBench) {
	m := b.submitted()
	b.receive(b.delivery(m, "evt-1"))
	var id int64
	report := b.process(func(row ports.InboxRow) ports.Decoded {
		id = row.ID
		return ports.Decoded{Foreign: true}
	})
	if report.Taken != 1 || report.Failed != 0 || len(report.Results) != 0 {
		t.Errorf("report %+v", report)
	}
	if row := b.inboxRow(id); row.Status != ports.InboxIgnored {
		t.Errorf("row is %s, want %s", row.Status, ports.InboxIgnored)
	}
}

// processIgnored: what the domain refuses is dealt with for good.
func processIgnored(t *testing.T, b *storeBench) {
	one, two := b.submitted(), b.submitted()
	b.must(b.saw(one, domain.ObservedSucceeded))
	b.receive(b.delivery(one, "evt-1"))
	mixed := b.delivery(one, "evt-2")
	mixed.TokenHash = hash(two.token)
	b.receive(mixed)
	ids := map[string]int64{}
	report := b.process(func(row ports.InboxRow) ports.Decoded {
		ids[row.ProviderEventID] = row.ID
		return b.news(row, domain.ObservedRunning)
	})
	if report.Taken != 2 || report.Applied != 0 || report.Failed != 0 || report.Orphans != 0 {
		t.Errorf("report %+v", report)
	}
	for name, id := range ids {
		if row := b.inboxRow(id); row.Status != ports.InboxIgnored && row.Status != ports.InboxDone {
			t.Errorf("row %s is %s", name, row.Status)
		}
	}
	if b.attempt(two).Status != domain.AttemptSubmitted {
		t.Error("a delivery under contradicting names changed state")
	}
	b.Clock.Advance(time.Hour)
	b.takenRows(0)
}

func processOrphan(t *testing.T, b *storeBench) {
	stranger := made{vendorID: "job-unknown", token: "unknown"}
	b.receive(b.delivery(stranger, "evt-1"))
	var id int64
	report := b.process(func(row ports.InboxRow) ports.Decoded {
		id = row.ID
		return b.news(row, domain.ObservedRunning)
	})
	if report.Taken != 1 || report.Orphans != 1 || report.Failed != 0 {
		t.Errorf("report %+v", report)
	}
	if row := b.inboxRow(id); row.Status != ports.InboxOrphan || !row.NextRetryAt.After(b.Clock.Now()) {
		t.Errorf("row is %s, next at %v", row.Status, row.NextRetryAt)
	}
	b.takenRows(0)
}
