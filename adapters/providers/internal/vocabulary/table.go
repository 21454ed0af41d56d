// Package vocabulary translates vendors' status words into the platform's. Every
// table is data; a word that no table knows is no news, never a verdict.
package vocabulary

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/aivedio/aivedio/domain"
)

// Table holds a vendor's words. Read-only after [New].
type Table struct {
	words map[string]domain.Observed
	terms map[string]bool
}

// Words lists a vendor's words by what they mean. Expired holds words for a job
// that the vendor lost or let lapse: failed, with a class of its own.
type Words struct {
	Queued    []string
	Running   []string
	Succeeded []string
	Failed    []string
	Canceled  []string
	Expired   []string
}

// New makes a table. It panics on a word that is listed under two meanings: a
// fault of the program.
func New(w Words) Table {
	t := Table{words: map[string]domain.Observed{}, terms: map[string]bool{}}
	for _, group := range []struct {
		observed domain.Observed
		words    []string
	}{
		{domain.ObservedQueued, w.Queued}, {domain.ObservedRunning, w.Running},
		{domain.ObservedSucceeded, w.Succeeded}, {domain.ObservedFailed, w.Failed},
		{domain.ObservedCanceled, w.Canceled}, {domain.ObservedFailed, w.Expired},
	} {
		for _, word := range group.words {
			key := normal(word)
			if have, known := t.words[key]; known && have != group.observed {
				panic(fmt.Sprintf("vocabulary: %q means %s and %s", word, have, group.observed))
			}
			t.words[key] = group.observed
		}
	}
	for _, word := range w.Expired {
		t.terms[normal(word)] = true
	}
	return t
}

// Observe translates a word, whatever its case, spaces, hyphens and underscores.
// [domain.ObservedNone] for a word that is not in the table.
func (t Table) Observe(word string) domain.Observed { return t.words[normal(word)] }

// Expired reports whether the word says that the vendor no longer has the job.
func (t Table) Expired(word string) bool { return t.terms[normal(word)] }

func normal(word string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || r == '_' || r == '-' {
			return -1
		}
		return unicode.ToLower(r)
	}, word)
}
