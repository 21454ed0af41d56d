package domain_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aivedio/aivedio/domain"
)

// cell is a state before or after: the columns of testdata/matrix.txt.
type cell struct {
	phase   domain.Phase
	cancel  domain.Cancel
	unknown bool
	attempt domain.AttemptStatus
}

// state is a cell with the role of the attempt that the input is about.
type state struct {
	current bool
	cell
}

func (s state) columns() [5]string {
	role := "old"
	if s.current {
		role = "cur"
	}
	return [5]string{role, string(s.phase), string(s.cancel), yesNo(s.unknown), string(s.attempt)}
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// statuses are those that the current attempt may have in a phase.
var statuses = map[domain.Phase][]domain.AttemptStatus{
	domain.PhaseQueued:            {domain.AttemptCreated, domain.AttemptSubmitting, domain.AttemptSubmitUnknown, domain.AttemptSubmitted, domain.AttemptQueued},
	domain.PhaseRunning:           {domain.AttemptRunning},
	domain.PhaseProviderSucceeded: {domain.AttemptSucceeded},
	domain.PhaseProcessingMedia:   {domain.AttemptSucceeded},
	domain.PhaseReady:             {domain.AttemptSucceeded},
	domain.PhaseFailed:            {domain.AttemptFailed, domain.AttemptSucceeded},   // succeeded: the media work failed
	domain.PhaseCanceled:          {domain.AttemptCanceled, domain.AttemptSucceeded}, // succeeded: a late result was discarded
}

// states lists every legal combination of facts, once for a current attempt and
// once for a superseded one.
func states() []state {
	var all []state
	for _, p := range domain.Phases() {
		for _, c := range domain.Cancels() {
			for _, u := range []bool{false, true} {
				if !domain.LegalFacts(p, c, u) {
					continue
				}
				for _, a := range statuses[p] {
					all = append(all, state{true, cell{p, c, u, a}})
				}
				for _, a := range domain.AttemptStatuses() {
					all = append(all, state{false, cell{p, c, u, a}})
				}
			}
		}
	}
	return all
}

// policy is what the last column before the arrow varies.
type policy struct {
	late      domain.LateSuccess
	canCancel bool
}

func (p policy) String() string {
	if p.canCancel {
		return string(p.late) + ".can"
	}
	return string(p.late) + ".cannot"
}

var policies = []policy{
	{domain.LateSuccessKeep, true}, {domain.LateSuccessKeep, false},
	{domain.LateSuccessDiscard, true}, {domain.LateSuccessDiscard, false},
}

// rule is one line of the matrix.
type rule struct {
	line   int
	text   string
	input  pattern
	state  [5]pattern
	policy pattern

	verdict string
	after   [4]string
	effects []string
	used    bool
}

// pattern is a dotted row of alternatives; see the head of the matrix.
type pattern [][]string

// sets are the names for several words.
var sets = map[string]string{
	"before":  "created/submitting/submit_unknown",
	"vendor":  "submitted/queued/running",
	"open":    "created/submitting/submit_unknown/submitted/queued/running",
	"end":     "succeeded/failed/canceled",
	"live":    "queued/running",
	"media":   "provider_succeeded/processing_media",
	"over":    "ready/failed/canceled",
	"pending": "requested/sent",
}

func parsePattern(text string, expand bool) pattern {
	var p pattern
	for segment := range strings.SplitSeq(text, ".") {
		bare, negated := strings.CutPrefix(segment, "!")
		var words []string
		for word := range strings.SplitSeq(bare, "/") {
			if set, ok := sets[word]; ok && expand {
				words = append(words, strings.Split(set, "/")...)
				continue
			}
			words = append(words, word)
		}
		if negated {
			words = append([]string{"!"}, words...)
		}
		p = append(p, words)
	}
	return p
}

func (p pattern) match(name string) bool {
	parts := strings.Split(name, ".")
	if len(p) > len(parts) {
		return false
	}
	for i, words := range p {
		negated := words[0] == "!"
		if words[0] != "*" && slices.Contains(words, parts[i]) == negated {
			return false
		}
	}
	return true
}

// readMatrix parses the file; a malformed line fails the test.
func readMatrix(t *testing.T) []*rule {
	t.Helper()
	raw, err := os.ReadFile("testdata/matrix.txt")
	if err != nil {
		t.Fatal(err)
	}
	var rules []*rule
	for i, line := range strings.Split(string(raw), "\n") {
		text, _, _ := strings.Cut(line, "#")
		f := strings.Fields(text)
		if len(f) == 0 {
			continue
		}
		if len(f) != 14 || f[7] != "->" {
			t.Fatalf("matrix.txt:%d: %d columns, want 7, an arrow and 6", i+1, len(f))
		}
		r := &rule{line: i + 1, text: strings.Join(f, " "), input: parsePattern(f[0], false), policy: parsePattern(f[6], false), verdict: f[8], effects: effectsOf(f[13])}
		for n := range r.state {
			r.state[n] = parsePattern(f[1+n], true)
		}
		copy(r.after[:], f[9:13])
		rules = append(rules, r)
	}
	return rules
}

// effectsOf reads the last column.
func effectsOf(text string) []string {
	if text == "-" {
		return nil
	}
	var all []string
	for e := range strings.SplitSeq(text, ",") {
		if e == "-waits" {
			all = append(all, "-submit_unknown", "-lost", "-overdue")
			continue
		}
		all = append(all, e)
	}
	return all
}

func (r *rule) matches(columns [5]string) bool {
	for i := range columns {
		if !r.state[i].match(columns[i]) {
			return false
		}
	}
	return true
}

// want fills in what the line leaves as it is.
func (r *rule) want(in matrixInput, s state) string {
	before := s.columns()
	after := r.after
	for i := range after {
		if after[i] == "=" {
			after[i] = before[i+1]
		}
	}
	effects := r.effects
	if in.answers {
		effects = append(slices.Clone(effects), "-lost")
	}
	return outcome(r.verdict, after, effects)
}

func outcome(verdict string, after [4]string, effects []string) string {
	effects = slices.Clone(effects)
	slices.Sort(effects)
	return fmt.Sprintf("%s | phase %s, cancel %s, unknown %s, attempt %s | %s", verdict, after[0], after[1], after[2], after[3], strings.Join(slices.Compact(effects), " "))
}

// errorNames are the words of the verdict column for refused commands.
var errorNames = []struct {
	err  error
	name string
}{
	{domain.ErrTaskTerminal, "task_terminal"},
	{domain.ErrNotRetryable, "not_retryable"},
	{domain.ErrPossibleDuplicate, "possible_duplicate"},
	{domain.ErrInvalidTransition, "invalid_transition"},
	{domain.ErrInvalidInput, "invalid_input"},
}

// got writes a decision in the words of the matrix.
func got(s state, d domain.Decision, err error) string {
	if err != nil {
		for _, e := range errorNames {
			if errors.Is(err, e.err) {
				columns := s.columns()
				return outcome("error:"+e.name, [4]string(columns[1:]), nil)
			}
		}
		return "error: " + err.Error()
	}
	verdict := string(d.Verdict.Kind)
	if d.Verdict.Reason != "" {
		verdict += "(" + string(d.Verdict.Reason) + ")"
	}
	var effects []string
	for _, l := range d.Ledger {
		effects = append(effects, string(l.Type))
	}
	for _, o := range d.Operations {
		effects = append(effects, operationWord(o))
	}
	if d.NewAttempt != nil {
		effects = append(effects, "new")
	}
	for _, k := range d.OpenCases {
		effects = append(effects, "+"+string(k))
	}
	for _, k := range d.CloseCases {
		effects = append(effects, "-"+string(k))
	}
	return outcome(verdict, [4]string{string(d.Task.Phase), string(d.Task.Cancel), yesNo(d.Task.UnknownSince != nil), string(d.Attempt.Status)}, effects)
}

func operationWord(o domain.Operation) string {
	switch {
	case o.Type == domain.OperationCancelProvider && o.Restart:
		return "recancel_call"
	case o.Type == domain.OperationCancelProvider:
		return "cancel_call"
	case o.Restart:
		return "refetch"
	default:
		return "fetch"
	}
}

// TestMatrix holds every cell of the state machine against the hand-written
// table.
func TestMatrix(t *testing.T) {
	t.Parallel()
	rules := readMatrix(t)
	all, bad, cells := states(), map[string]int{}, 0
	var columns [][5]string
	var byState [][]bool // [rule][state]
	for _, s := range all {
		columns = append(columns, s.columns())
	}
	for _, r := range rules {
		row := make([]bool, len(all))
		for i := range all {
			row[i] = r.matches(columns[i])
		}
		byState = append(byState, row)
	}
	for _, in := range matrixInputs() {
		for _, p := range policies {
			var candidates []int
			for i, r := range rules {
				if r.input.match(in.name) && r.policy.match(p.String()) {
					candidates = append(candidates, i)
				}
			}
			for si, s := range all {
				cells++
				at := slices.IndexFunc(candidates, func(i int) bool { return byState[i][si] })
				name := fmt.Sprintf("%s  %s  %s", in.name, strings.Join(columns[si][:], " "), p)
				if at < 0 {
					bad["no line"]++
					report(t, bad, "no line", "%s\n   no line of matrix.txt decides this cell", name)
					continue
				}
				r := rules[candidates[at]]
				r.used = true
				task, attempt, input := fixture(s, p, in)
				d, err := domain.Apply(task, attempt, input, now)
				if have, want := got(s, d, err), r.want(in, s); have != want {
					key := fmt.Sprint(r.line)
					bad[key]++
					report(t, bad, key, "%s\n   line %d  %s\n   want  %s\n   have  %s", name, r.line, r.text, want, have)
				}
				if err == nil {
					checkCell(t, name, task, d)
				}
			}
		}
	}
	for _, r := range rules {
		if !r.used {
			t.Errorf("matrix.txt:%d decides no cell: %s", r.line, r.text)
		}
	}
	t.Logf("%d cells by %d lines", cells, len(rules))
	for line, n := range bad {
		if n > shownPerLine {
			t.Errorf("line %s: %d more cells differ", line, n-shownPerLine)
		}
	}
}

// shownPerLine bounds the report: one wrong line may be a thousand cells.
const shownPerLine = 3

func report(t *testing.T, bad map[string]int, key, format string, args ...any) {
	t.Helper()
	if bad[key] <= shownPerLine {
		t.Errorf(format, args...)
	}
}

// checkCell holds what is the same for every cell.
func checkCell(t *testing.T, name string, task domain.Task, d domain.Decision) {
	t.Helper()
	if applied := d.Verdict.Kind == domain.VerdictApplied; applied != d.TaskChanged || applied != (d.Event != nil) || (applied && d.Task.Version != task.Version+1) || (!applied && d.Task != task) {
		t.Errorf("%s: I4: %v with version %d → %d, event %v", name, d.Verdict, task.Version, d.Task.Version, d.Event != nil)
	}
	if !domain.LegalFacts(d.Task.Phase, d.Task.Cancel, d.Task.UnknownSince != nil) {
		t.Errorf("%s: illegal facts %s %s", name, d.Task.Phase, d.Task.Cancel)
	}
	if (d.Conflict != nil) != (d.Verdict.Kind == domain.VerdictConflict) {
		t.Errorf("%s: conflict %v with verdict %v", name, d.Conflict, d.Verdict)
	}
}

var now = epoch.Add(time.Hour)

// ago is a moment before now.
func ago(d time.Duration) *time.Time {
	at := now.Add(-d)
	return &at
}
