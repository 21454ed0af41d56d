package statedoc

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aivedio/aivedio/domain"
)

// transitionTable is one line for each row of the machine.
func transitionTable() (string, error) {
	var rows [][]string
	for _, t := range domain.Transitions() {
		said, ok := triggers[t.On]
		if !ok {
			return "", fmt.Errorf("nothing says what trigger %q means", t.On)
		}
		rows = append(rows, []string{
			"`" + string(t.On) + "`<br>" + said,
			arrow(code(t.From), string(t.To)),
			arrow(code(t.FromPhase), string(t.Phase)),
			cmp.Or(code(present(t.Stage)), "–"),
			cmp.Or(t.Why, "–"),
		})
	}
	return table([]string{"Trigger", "Attempt", "Task's phase", "Stage", "Why"}, rows), nil
}

// present is the list of a word that is there, and no list for one that is not.
func present[T ~string](word T) []T {
	if word == "" {
		return nil
	}
	return []T{word}
}

// arrow writes "from → to"; what is not asked and what stays are left out.
func arrow(from, to string) string {
	switch {
	case from == "" && to == "":
		return "any, stays"
	case to == "":
		return from + ", stays"
	default:
		return cmp.Or(from, "any") + " → `" + to + "`"
	}
}

// factTable is one line for each phase: which facts go with it, and what the
// public sees of them.
func factTable() string {
	var rows [][]string
	since := time.Unix(0, 0)
	for _, p := range domain.Phases() {
		var cancels []domain.Cancel
		unknown := false
		for _, c := range domain.Cancels() {
			if domain.LegalFacts(p, c, false) {
				cancels = append(cancels, c)
			}
			unknown = unknown || domain.LegalFacts(p, c, true)
		}
		var seen []domain.Status
		for _, c := range cancels {
			for _, at := range []*time.Time{nil, &since} {
				if s := domain.Public(p, c, at); (at == nil || unknown) && !slices.Contains(seen, s) {
					seen = append(seen, s)
				}
			}
		}
		may := "never"
		if unknown {
			may = "may be set"
		}
		rows = append(rows, []string{"`" + string(p) + "`", code(cancels), may, code(seen)})
	}
	return table([]string{"`phase`", "`cancel`", "`unknown_since`", "Public `status`"}, rows)
}

func inputTable() (string, error) {
	rows, err := described(domain.Kinds(), inputs)
	return table([]string{"Input", "What happened"}, rows), err
}

func verdictTable() (string, error) {
	rows, err := described(domain.VerdictKinds(), verdicts)
	return table([]string{"Verdict", "Meaning"}, rows), err
}

// isConflict sorts the closed list of reasons: kinds of conflict are part of it.
func isConflict(r domain.Reason) bool {
	return slices.Contains([]domain.Reason{domain.ConflictTerminal, domain.ConflictLate, domain.ConflictPayload}, r)
}

func reasonTable() (string, error) {
	rows, err := described(slices.DeleteFunc(domain.Reasons(), isConflict), reasons)
	return table([]string{"Reason", "Meaning"}, rows), err
}

func conflictTable() (string, error) {
	only := slices.DeleteFunc(domain.Reasons(), func(r domain.Reason) bool { return !isConflict(r) })
	rows, err := described(only, conflicts)
	return table([]string{"Kind", "Meaning"}, rows), err
}

func caseTable() (string, error) {
	rows, err := described(domain.CaseKinds(), cases)
	return table([]string{"Case", "Opened when"}, rows), err
}

func failureTable() (string, error) {
	rows, err := described(domain.ErrorClasses(), failures)
	if err != nil {
		return "", err
	}
	for i, c := range domain.ErrorClasses() {
		retry := "no"
		if c.Retryable() {
			retry = "yes"
		}
		rows[i] = append(rows[i], retry)
	}
	return table([]string{"Code", "Meaning", "Retryable"}, rows), nil
}

// guardList numbers the guards of news in their order.
func guardList() string {
	var b strings.Builder
	for i, g := range guards {
		fmt.Fprintf(&b, "%d. **%s** %s", i+1, g.asks, g.then)
		if g.gives != (domain.Verdict{}) {
			fmt.Fprintf(&b, " → `%s(%s)`", g.gives.Kind, g.gives.Reason)
		}
		b.WriteString("\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func stageList() string {
	var all []string
	for _, s := range domain.Stages() {
		all = append(all, "`"+string(s)+"`")
	}
	return strings.Join(all, " → ")
}

// pollTable is specification 12.8.3 with the default numbers.
func pollTable() string {
	p := domain.DefaultPolicy()
	var rows [][]string
	for _, r := range []struct {
		when string
		i    domain.Interval
		why  string
	}{
		{"within " + duration(p.SubmittedWindow) + " of the submit", p.Submitted, "learn quickly whether the job was taken"},
		{"waiting at the vendor", p.Queued, "queues move slowly"},
		{"running", p.Running, "people watch progress"},
		{"throttled (429)", p.Throttled, "the vendor's `Retry-After` wins when it is longer"},
		{"query fails", p.Failing, "do not make an outage worse"},
		{"longer than `MaxDuration` (" + duration(p.MaxDuration) + ")", p.Overdue, "slow is not failed; a person is told"},
		{"attempt superseded by a retry", p.Superseded, "only its cost is still of interest"},
		{"submit unknown, lookup possible", p.Lookup, "for " + duration(p.LookupRetention) + ", then a person"},
		{"submit provably not sent", p.SubmitRetry, "the create is called again"},
	} {
		rows = append(rows, []string{r.when, duration(r.i.Base), duration(r.i.Cap), r.why})
	}
	return table([]string{"Situation", "First interval", "Longest", "Why"}, rows)
}
