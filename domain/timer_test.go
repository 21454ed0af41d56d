package domain_test

import (
	"testing"
	"time"

	"github.com/aivedio/aivedio/domain"
)

// TestDeliveriesPutQueriesOff: news by webhook moves the next query out when it
// would come within half of the delay, and leaves it alone otherwise; it never
// brings one forward.
func TestDeliveriesPutQueriesOff(t *testing.T) {
	t.Parallel()
	const delay = 5 * time.Second // of a job whose progress is news
	for name, tt := range map[string]struct{ due, want time.Duration }{
		"long overdue":         {-time.Hour, delay},
		"due now":              {0, delay},
		"soon":                 {delay/2 - time.Millisecond, delay},
		"not so soon":          {delay / 2, delay / 2},
		"as the table says":    {delay, delay},
		"later than the table": {10 * time.Minute, 10 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := running(t, domain.LateSuccessKeep)
			at := s.now.Add(tt.due)
			s.attempts[0].NextPollAt = &at
			s.webhook(domain.ObservedRunning, percent(40))
			s.due(tt.want)
		})
	}
}

// TestNewStatusHasItsOwnTimer: a job that begins to run is asked about as one that
// runs, however far away its next query was while it waited.
func TestNewStatusHasItsOwnTimer(t *testing.T) {
	t.Parallel()
	s := submitted(t, domain.LateSuccessKeep)
	s.tick(time.Minute)
	s.webhook(domain.ObservedQueued)
	s.due(10 * time.Second)
	s.webhook(domain.ObservedRunning)
	s.due(5 * time.Second)
}

// TestHintBeforeNewsStillAsks: a query that somebody asked for is not put off by
// news, and not left where it was either.
func TestHintBeforeNewsStillAsks(t *testing.T) {
	t.Parallel()
	s := running(t, domain.LateSuccessKeep)
	at := s.now.Add(time.Minute)
	s.attempts[0].NextPollAt = &at
	s.hint(domain.ObservedSucceeded)
	s.webhook(domain.ObservedRunning, percent(40))
	s.due(0)
}

// TestDeliveryGivesMissingTimer: no attempt at the vendor is left without one (I16).
func TestDeliveryGivesMissingTimer(t *testing.T) {
	t.Parallel()
	s := running(t, domain.LateSuccessKeep)
	s.attempts[0].NextPollAt = nil
	s.webhook(domain.ObservedRunning, percent(40))
	s.due(5 * time.Second)
}

// TestChattyVendor is specification 12.11.1: a job of 120 s whose vendor tells of
// its progress ten times a second makes an event for every five percent, never two
// within a second, and none of its stages and ends is lost. What else is written
// is bounded as well: the job's timer moves once in half of its delay.
func TestChattyVendor(t *testing.T) {
	t.Parallel()
	const (
		duration = 120 * time.Second
		every    = 100 * time.Millisecond
	)
	s := submitted(t, domain.LateSuccessKeep)
	var events []domain.Event
	var last time.Time
	deliveries, writes := 0, 0
	digest := func(d domain.Decision) {
		deliveries++
		if d.AttemptChanged || d.TaskChanged {
			writes++
		}
		if d.Event == nil {
			return
		}
		if n := len(events); n > 0 && events[n-1].Stage == d.Event.Stage && s.now.Sub(last) < time.Second {
			t.Errorf("an event %v after another of its stage", s.now.Sub(last))
		}
		events, last = append(events, *d.Event), s.now
	}
	for at := time.Duration(0); at < duration; at += every {
		digest(s.webhook(domain.ObservedRunning, percent(int(100*at/duration))))
		s.tick(every)
	}
	digest(s.webhook(domain.ObservedSucceeded, clip))

	stages := map[domain.Stage]int{}
	for _, e := range events {
		stages[e.Stage]++
	}
	if progress := stages[domain.StageGenerating]; progress < 15 || progress > 100/5 {
		t.Errorf("%d events of progress for %d deliveries, want one for every five percent", progress, deliveries)
	}
	if stages[domain.StageFetching] != 1 {
		t.Errorf("the end made %d events", stages[domain.StageFetching])
	}
	// A move a second in the half minute after the submit, one in 2.5 s after it.
	if limit := 100/5 + 30 + 90*2/5; writes > limit {
		t.Errorf("%d of %d deliveries were written, want at most %d", writes, deliveries, limit)
	}
}
