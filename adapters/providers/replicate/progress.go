package replicate

import "strings"

// maxLog is how much of the end of a log is read; the newest bar stands there.
const maxLog = 64 << 10

// progress reads how far a prediction is from its log: the vendor has no field
// for it, and its own clients look for lines such as
//
//	45%|####5     | 9/20 [00:04<00:05,  2.1it/s]
//
// The last bar counts, and of that bar the highest value, since a log may hold
// several bars of which each starts again at nothing. Nil when there is none. The
// value is for display; it never says that a job is done.
func progress(log string) *int {
	if len(log) > maxLog {
		log = log[len(log)-maxLog:]
	}
	var best *int
	last := -1
	for line := range strings.FieldsFuncSeq(log, func(r rune) bool { return r == '\n' || r == '\r' }) {
		percent, ok := bar(line)
		if !ok {
			continue
		}
		if best == nil || percent < last {
			best = new(int) // another bar began
		}
		last = percent
		*best = max(*best, percent)
	}
	return best
}

// bar reads one line: "<percent>%|…| <current>/<total>".
func bar(line string) (percent int, ok bool) {
	head, tail, found := strings.Cut(line, "%|")
	if !found {
		return 0, false
	}
	_, counts, found := strings.Cut(tail, "|")
	if !found {
		return 0, false
	}
	current, total, found := strings.Cut(strings.TrimSpace(counts), "/")
	if !found || !digit(current, 0) || !digit(total, 0) {
		return 0, false
	}
	start := len(head)
	for start > 0 && digit(head, start-1) {
		start--
	}
	digits := head[start:]
	if digits == "" || len(digits) > 3 {
		return 0, false
	}
	for i := range len(digits) {
		percent = percent*10 + int(digits[i]-'0')
	}
	return percent, percent <= 100
}

func digit(s string, at int) bool { return at < len(s) && s[at] >= '0' && s[at] <= '9' }
