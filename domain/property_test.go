package domain_test

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/aivedio/aivedio/domain"
)

// world is a task with all its attempts, driven by random inputs the way a store
// drives it.
type world struct {
	task     domain.Task
	attempts []domain.Attempt
	now      time.Time
	ledger   map[domain.AttemptID][]domain.LedgerType
	ops      map[string]bool
	cases    map[domain.AttemptID]map[domain.CaseKind]bool
	conflict bool
}

var epoch = time.Date(2026, 9, 21, 14, 13, 20, 0, time.UTC)

func id(n byte) domain.ID { return domain.ID{15: n} }

func newWorld(policy domain.LateSuccess) *world {
	w := &world{now: epoch, ledger: map[domain.AttemptID][]domain.LedgerType{}, ops: map[string]bool{}, cases: map[domain.AttemptID]map[domain.CaseKind]bool{}}
	task := domain.Task{ID: domain.TaskID{ID: id(1)}, TenantID: domain.TenantID{ID: id(2)}, ProjectID: domain.ProjectID{ID: id(3)}, OnLateSuccess: policy}
	attempt := domain.Attempt{ID: domain.AttemptID{ID: id(101)}, TaskID: task.ID, Provider: "sim", Credits: 7}
	d := domain.Create(task, attempt, w.now)
	w.task, w.attempts = d.Task, []domain.Attempt{d.Attempt}
	w.book(d)
	return w
}

func (w *world) book(d domain.Decision) {
	for _, l := range d.Ledger {
		w.ledger[l.AttemptID] = append(w.ledger[l.AttemptID], l.Type)
	}
	for _, o := range d.Operations {
		w.ops[o.AttemptID.String()+string(o.Type)] = true
	}
	if w.cases[d.Attempt.ID] == nil {
		w.cases[d.Attempt.ID] = map[domain.CaseKind]bool{}
	}
	for _, k := range d.CloseCases {
		delete(w.cases[d.Attempt.ID], k)
	}
	for _, k := range d.OpenCases {
		w.cases[d.Attempt.ID][k] = true
	}
	w.conflict = w.conflict || d.Conflict != nil
}

// apply feeds one input about one attempt, and takes the decision over.
func (w *world) apply(i int, in domain.Input) (domain.Decision, error) {
	d, err := domain.Apply(w.task, w.attempts[i], in, w.now)
	if err != nil {
		return d, err
	}
	w.task, w.attempts[i] = d.Task, d.Attempt
	if d.NewAttempt != nil {
		w.attempts = append(w.attempts, *d.NewAttempt)
	}
	w.book(d)
	return d, nil
}

func (w *world) current() int {
	return slices.IndexFunc(w.attempts, func(a domain.Attempt) bool { return a.ID == w.task.CurrentAttemptID })
}

func drawObservation(t *rapid.T) *domain.Observation {
	o := &domain.Observation{
		Status: rapid.SampledFrom([]domain.Observed{"", "queued", "running", "running", "succeeded", "failed", "canceled"}).Draw(t, "status"),
		Source: rapid.SampledFrom([]domain.Source{domain.SourceWebhook, domain.SourcePoll, domain.SourceReconcile, domain.SourceSubmit, domain.SourceCorrection}).Draw(t, "source"),
		Trust:  rapid.SampledFrom(domain.Trusts()).Draw(t, "trust"),
		Thin:   rapid.IntRange(0, 5).Draw(t, "thin") == 0,
	}
	if rapid.Bool().Draw(t, "output") {
		o.Outputs = []domain.OutputRef{{Kind: "video", Ref: "r1", URL: "https://x.example/1"}}
	}
	if rapid.Bool().Draw(t, "hasProgress") {
		p := rapid.IntRange(-5, 130).Draw(t, "progress")
		o.Progress = &p
	}
	if rapid.IntRange(0, 2).Draw(t, "hasSeq") == 0 {
		s := rapid.Int64Range(1, 6).Draw(t, "seq")
		o.ProviderSequence, o.SequenceKind = &s, rapid.SampledFrom([]domain.SequenceKind{domain.SequenceCounter, domain.SequenceTimestamp}).Draw(t, "seqKind")
	}
	o.ProviderTaskID = rapid.SampledFrom([]string{"", "job", "job", "other"}).Draw(t, "jobID")
	return o
}

// drawInput makes any input, fitting or not.
func drawInput(t *rapid.T, w *world, i int) domain.Input {
	kind := rapid.SampledFrom(append(domain.Kinds(), domain.InputObservation, domain.InputObservation, domain.InputSubmitAccepted, domain.InputMediaStage)).Draw(t, "kind")
	in := domain.Input{Kind: kind, Jitter: rapid.Float64Range(0.8, 1.2).Draw(t, "jitter")}
	in.Policy = domain.Policy{CanCancel: rapid.Bool().Draw(t, "canCancel"), CanLookup: rapid.Bool().Draw(t, "canLookup"), ReplaySafe: rapid.Bool().Draw(t, "replay"), Corrections: rapid.IntRange(0, 9).Draw(t, "corr") == 0}
	a := w.attempts[i]
	in.Lease = rapid.SampledFrom([]domain.ID{{}, a.SubmitLease, a.PollLease, id(99)}).Draw(t, "lease")
	if in.Lease.IsZero() && (kind == domain.InputSubmitStarted || kind == domain.InputSubmitReplayed) {
		in.Lease = id(98)
	}
	in.LeaseUntil = w.now.Add(30 * time.Second)
	in.Observation = drawObservation(t)
	in.QueryError = &domain.QueryError{Class: rapid.SampledFrom(domain.QueryClasses()).Draw(t, "class"), RetryAfter: time.Duration(rapid.IntRange(0, 1).Draw(t, "ra")) * time.Minute}
	in.ProviderTaskID = rapid.SampledFrom([]string{"job", "job", "other", ""}).Draw(t, "id")
	in.AcceptPossibleDuplicate = rapid.Bool().Draw(t, "accept")
	in.NewAttempt = &domain.Attempt{ID: domain.AttemptID{ID: id(byte(101 + len(w.attempts)))}, Provider: "sim", Credits: 7}
	in.Stage = rapid.SampledFrom(domain.Stages()).Draw(t, "stage")
	in.AssetID = domain.AssetID{ID: id(200)}
	in.Resolution = &domain.Resolution{
		Kind: rapid.SampledFrom(domain.ResolutionKinds()).Draw(t, "resolution"), ActionID: domain.ActionID{ID: id(201)}, ProviderTaskID: "job",
		Closing: rapid.SampledFrom([]domain.Closing{domain.ClosingSettled, domain.ClosingRefunded}).Draw(t, "closing"),
	}
	if rapid.Bool().Draw(t, "withOutputs") {
		in.Resolution.Outputs = []domain.OutputRef{{Kind: "video", Ref: "r9"}}
	}
	return in
}

// TestRandomSequences drives any input at any state and checks what must always
// hold: I3, I4, I9, I11, I12 and I16, and that the facts stay legal.
func TestRandomSequences(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(rapid.SampledFrom([]domain.LateSuccess{domain.LateSuccessKeep, domain.LateSuccessDiscard}).Draw(t, "policy"))
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			w.now = w.now.Add(time.Duration(rapid.IntRange(0, 90).Draw(t, "dt")) * time.Second)
			i := rapid.IntRange(0, len(w.attempts)-1).Draw(t, "attempt")
			if len(w.attempts) > 20 {
				return
			}
			in := drawInput(t, w, i)
			task, attempt := w.task, w.attempts[i]
			d, err := w.apply(i, in)
			if err != nil {
				continue
			}
			check(t, task, attempt, in, d)
			w.check(t)
		}
	})
}

// failer is what a random test and a fuzz test have in common.
type failer interface{ Fatalf(string, ...any) }

// check holds one decision against the state before it.
func check(t failer, task domain.Task, attempt domain.Attempt, in domain.Input, d domain.Decision) {
	wantVersion := task.Version
	if d.TaskChanged {
		wantVersion++
	}
	if d.Task.Version != wantVersion || d.TaskChanged != (d.Event != nil) || d.TaskChanged != (d.Verdict.Kind == domain.VerdictApplied) {
		t.Fatalf("I4: version %d → %d, changed %v, verdict %v", task.Version, d.Task.Version, d.TaskChanged, d.Verdict)
	}
	if !d.TaskChanged && d.Task != task {
		t.Fatalf("the task changed without an event: %+v → %+v", task, d.Task)
	}
	command := in.Kind == domain.InputRetryRequested || in.Kind == domain.InputResolution
	if task.Phase.Terminal() && d.TaskChanged && !command {
		t.Fatalf("I3: %s left %s", in.Kind, task.Phase)
	}
	corrects := in.Kind == domain.InputObservation && in.Observation.Source == domain.SourceCorrection
	if attempt.Status.Terminal() && d.Attempt.Status != attempt.Status && !command && !corrects {
		t.Fatalf("I3: %s moved an attempt from %s to %s", in.Kind, attempt.Status, d.Attempt.Status)
	}
	if attempt.ID != task.CurrentAttemptID && d.TaskChanged && in.Kind != domain.InputResolution {
		t.Fatalf("I11: %s of an old attempt changed the task", in.Kind)
	}
	if in.Kind == domain.InputPollFailed && (d.Attempt.Status.Terminal() != attempt.Status.Terminal() || d.Task.Phase != task.Phase) {
		t.Fatalf("I12: a failed query ended an attempt")
	}
	if !domain.LegalFacts(d.Task.Phase, d.Task.Cancel, d.Task.UnknownSince != nil) {
		t.Fatalf("%s: illegal facts %s %s unknown=%v", in.Kind, d.Task.Phase, d.Task.Cancel, d.Task.UnknownSince != nil)
	}
	if last := attempt.LastSequence; last != nil && *d.Attempt.LastSequence < *last {
		t.Fatalf("the vendor's sequence fell from %d to %d", *last, *d.Attempt.LastSequence)
	}
	if e := d.Task.Error; e != nil && !slices.Contains(domain.ErrorClasses(), e.Code) {
		t.Fatalf("I15: %q is public", e.Code)
	}
	if (d.Task.TerminalAt != nil) != d.Task.Phase.Terminal() {
		t.Fatalf("terminal_at does not fit phase %s", d.Task.Phase)
	}
	if (d.Task.Error != nil) != (d.Task.Phase == domain.PhaseFailed) {
		t.Fatalf("%s: error %v in phase %s", in.Kind, d.Task.Error, d.Task.Phase)
	}
}

// check holds the whole world against the invariants that span attempts.
func (w *world) check(t failer) {
	for _, a := range w.attempts {
		count := map[domain.LedgerType]int{}
		for _, l := range w.ledger[a.ID] {
			count[l]++
		}
		if count[domain.LedgerReserve] != 1 || count[domain.LedgerSettle]+count[domain.LedgerRefund] > 1 {
			t.Fatalf("I9: ledger of attempt %d: %v", a.No, count)
		}
		if (a.Closing == domain.ClosingOpen) != (count[domain.LedgerSettle]+count[domain.LedgerRefund] == 0) {
			t.Fatalf("I9: closing %s, ledger %v", a.Closing, count)
		}
		if a.ID == w.task.CurrentAttemptID && w.task.Phase.Terminal() && a.Closing == domain.ClosingOpen {
			t.Fatalf("I9: the task is %s and the money of its attempt is open", w.task.Phase)
		}
		if !a.Status.Terminal() && a.Timer() == nil && len(w.cases[a.ID]) == 0 {
			t.Fatalf("I16: attempt %d in %s has no timer and no case", a.No, a.Status)
		}
	}
	for _, a := range w.attempts {
		if a.Status.AtVendor() && a.NextPollAt == nil && a.NextReconcileAt == nil {
			t.Fatalf("I16: attempt %d in %s is never asked about", a.No, a.Status)
		}
		if a.Status.Terminal() && (a.NextPollAt != nil || a.NextSubmitAt != nil || a.SubmitLeaseUntil != nil) {
			t.Fatalf("attempt %d in %s is still worked on", a.No, a.Status)
		}
	}
	cur := w.attempts[w.current()]
	open := w.task.Phase == domain.PhaseQueued || w.task.Phase == domain.PhaseRunning
	if open == cur.Status.Terminal() {
		t.Fatalf("task in %s, its attempt in %s", w.task.Phase, cur.Status)
	}
	if w.task.Phase == domain.PhaseProviderSucceeded && !w.ops[cur.ID.String()+string(domain.OperationFetchOutput)] {
		t.Fatalf("provider_succeeded without its operation")
	}
}

// TestReordering feeds the same authentic news in two orders, with repetitions.
// Both ends are the same, unless a contradiction was recorded in either.
func TestReordering(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var news []*domain.Observation
		for range rapid.IntRange(1, 6).Draw(t, "n") {
			o := drawObservation(t)
			o.Trust, o.ProviderTaskID, o.Thin = domain.TrustAuthentic, "job", false
			o.Source = rapid.SampledFrom([]domain.Source{domain.SourceWebhook, domain.SourcePoll}).Draw(t, "from")
			o.ProviderSequence = nil
			news = append(news, o)
		}
		again := append(slices.Clone(news), news[rapid.IntRange(0, len(news)-1).Draw(t, "repeat")])
		shuffled := rapid.Permutation(again).Draw(t, "order")
		play := func(order []*domain.Observation) *world {
			w := newWorld(domain.LateSuccessKeep)
			for _, o := range order {
				w.now = w.now.Add(3 * time.Second)
				if _, err := w.apply(0, domain.Input{Kind: domain.InputObservation, Observation: o}); err != nil {
					t.Fatal(err)
				}
			}
			return w
		}
		a, b := play(again), play(shuffled)
		if a.conflict || b.conflict {
			return
		}
		if a.task.Phase != b.task.Phase || a.attempts[0].Status != b.attempts[0].Status {
			t.Fatalf("%s/%s in one order, %s/%s in the other", a.task.Phase, a.attempts[0].Status, b.task.Phase, b.attempts[0].Status)
		}
	})
}

// TestRepetition feeds every input twice at the same moment: the second changes
// nothing that the public sees, for observations. Queries that teach nothing
// (another job, an unknown word) are counted, and excepted.
func TestRepetition(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(domain.LateSuccessKeep)
		for range rapid.IntRange(1, 15).Draw(t, "steps") {
			w.now = w.now.Add(time.Duration(rapid.IntRange(0, 20).Draw(t, "dt")) * time.Second)
			in := drawInput(t, w, w.current())
			i := w.current()
			if d, err := w.apply(i, in); err != nil || in.Kind != domain.InputObservation || in.Observation.Source == domain.SourceCorrection || d.Verdict.Reason == domain.ReasonIdentityMismatch || in.Observation.Status == domain.ObservedNone {
				continue
			}
			before := w.task
			if d, _ := w.apply(i, in); d.TaskChanged || len(d.Ledger) > 0 {
				t.Fatalf("the same %s news changed the task twice: %v → %v", in.Observation.Status, before, d.Task)
			}
		}
	})
}
