package simulator

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"
)

// QueryEntry is one status query as the vendor saw it.
type QueryEntry struct {
	// Job is the id that was asked for, known or not.
	Job string `json:"job"`
	// At is when it arrived, in nanoseconds since 1970.
	At int64 `json:"at"`
	// Answer is empty for the job's true state, else the fault that struck,
	// "not_found" or "over_quota".
	Answer string `json:"answer,omitempty"`
}

// The answers that are no faults.
const (
	answerNotFound  = "not_found"
	answerOverQuota = "over_quota"
)

// The log holds at most queryChunks × queryChunk entries, about 50 bytes each.
const (
	queryChunk  = 8192
	queryChunks = 128
)

// maxLoggedID bounds what a caller can have stored by asking for long ids.
const maxLoggedID = 64

// queryLog keeps the newest queries in the order of their arrival. Entries are
// numbered from 0 on.
type queryLog struct {
	chunks [][]QueryEntry
	first  int // number of the oldest entry that is kept
	next   int // number of the next one
}

func (l *queryLog) add(job string, at time.Time, answer string) {
	last := len(l.chunks) - 1
	if last < 0 || len(l.chunks[last]) == queryChunk {
		if len(l.chunks) == queryChunks {
			l.first += len(l.chunks[0])
			l.chunks[0] = nil
			l.chunks = l.chunks[1:]
		}
		l.chunks = append(l.chunks, make([]QueryEntry, 0, queryChunk))
		last = len(l.chunks) - 1
	}
	l.chunks[last] = append(l.chunks[last], QueryEntry{Job: job[:min(len(job), maxLoggedID)], At: at.UnixNano(), Answer: answer})
	l.next++
}

// page copies up to limit entries from number from on, and tells the number to go
// on from. Entries that were dropped meanwhile are left out.
func (l *queryLog) page(from, limit int) (entries []QueryEntry, next int) {
	from = max(from, l.first)
	entries = []QueryEntry{}
	for len(entries) < limit && from < l.next {
		chunk := l.chunks[(from-l.first)/queryChunk]
		rest := chunk[(from-l.first)%queryChunk:]
		rest = rest[:min(len(rest), limit-len(entries))]
		entries = append(entries, rest...)
		from += len(rest)
	}
	return entries, from
}

// Queries returns up to limit queries from number from on, in the order of their
// arrival, and the number to go on from. The oldest are forgotten after a million;
// forgotten tells how many. Safe for concurrent use.
func (s *Simulator) Queries(from, limit int) (entries []QueryEntry, next, forgotten int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	entries, next = s.queried.page(max(from, 0), limit)
	return entries, next, s.queried.first
}

// maxQueriesPage bounds one answer of the route.
const maxQueriesPage = 50_000

func (s *Simulator) listQueries(c call) {
	numbers := map[string]int{"after": 0, "limit": maxQueriesPage}
	for name := range numbers {
		text := c.r.URL.Query().Get(name)
		if text == "" {
			continue
		}
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			c.fail(&problem{status: http.StatusBadRequest, title: "Bad " + name, detail: name + ": want a number, 0 or more."})
			return
		}
		numbers[name] = n
	}
	entries, next, forgotten := s.Queries(numbers["after"], min(numbers["limit"], maxQueriesPage))
	body, err := json.Marshal(map[string]any{"queries": entries, "next": next, "forgotten": forgotten})
	if err != nil { // strings and numbers always marshal
		panic(err)
	}
	writeBody(c.w, http.StatusOK, "application/json", body)
}
