package app_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/internal/wire"
	"github.com/aivedio/aivedio/ports"
)

// vendorsWord is what no user may ever see.
const vendorsWord = "the vendor's own sentence"

// details are what the observations on a task's timeline say.
func (b *bundle) details(task domain.TaskID, kind string) []string {
	b.t.Helper()
	line, err := b.store.Timeline(b.ctx(), b.project.ID, task)
	b.must(err)
	var all []string
	for _, e := range line.Entries {
		if e.Kind == kind {
			all = append(all, e.Detail)
		}
	}
	return all
}

// wantDetail fails the test unless an entry begins with the words and ends with
// the others.
func (b *bundle) wantDetail(task domain.TaskID, kind, begins, ends string) {
	b.t.Helper()
	all := b.details(task, kind)
	if !slices.ContainsFunc(all, func(s string) bool { return strings.HasPrefix(s, begins) && strings.HasSuffix(s, ends) }) {
		b.t.Errorf("no %s begins %q and ends %q: %q", kind, begins, ends, all)
	}
}

// TestWhyIsForOperatorsOnly: each way in which a vendor can say no stands on the
// timeline with its class, code, next time and sentence; and no event, no snapshot
// and no log line has the sentence (I15).
func TestWhyIsForOperatorsOnly(t *testing.T) {
	t.Parallel()
	quoted := `"` + vendorsWord + `"`
	refusal := func(e ports.ProviderError) error {
		e.Message, e.Err = vendorsWord, fmt.Errorf("refused")
		return &e
	}
	onSubmit := func(e ports.ProviderError) func(*bundle) {
		return func(b *bundle) {
			b.vendor.onSubmit = func(ports.SubmitRequest) (ports.SubmitResult, error) { return ports.SubmitResult{}, refusal(e) }
		}
	}
	for name, tc := range map[string]struct {
		arrange      func(*bundle)
		begins, ends string
	}{
		"throttled": {onSubmit(ports.ProviderError{Class: ports.ClassThrottled, NotSent: true, RetryAfter: time.Minute, Code: "http_429"}),
			"submit_not_sent: throttled/http_429, again at 2026-01-02T03:05:05.000Z", quoted},
		"credential": {onSubmit(ports.ProviderError{Class: ports.ClassAuth, Code: "http_401"}), "submit_not_sent: auth/http_401, again at ", quoted},
		"not configured": {func(b *bundle) {
			b.vendor.onQuery = nil
			b.vendor.onSubmit = onlyOnce(b)
			b.vendor.accounts = b.vendor.accounts[1:]
		}, "submit_not_sent: not_configured, again at ", "Z"},
		"rejected": {onSubmit(ports.ProviderError{Class: ports.ClassRejected, ErrorClass: "invalid_input", Code: "bad_size"}),
			"submit_rejected: invalid_input/bad_size", quoted},
		"lost": {onSubmit(ports.ProviderError{Class: ports.ClassTransport, Code: "http_500"}), "submit_unknown: transport/http_500", quoted},
		"no lookup": {func(b *bundle) {
			b.vendor.caps.Policy.CanLookup = true
			b.vendor.onSubmit = func(ports.SubmitRequest) (ports.SubmitResult, error) { return ports.SubmitResult{}, lost() }
		}, "lookup_failed: not_found, again at ", "Z"},
		"query": {func(b *bundle) {
			b.vendor.onQuery = func(ports.QueryRequest) (ports.QueryResult, error) {
				return ports.QueryResult{}, refusal(ports.ProviderError{Class: ports.ClassTransport, Code: "http_503"})
			}
		}, "poll_failed: transport/http_503, again at ", quoted},
		"time-out": {func(b *bundle) {
			b.vendor.onQuery = func(ports.QueryRequest) (ports.QueryResult, error) {
				return ports.QueryResult{}, context.DeadlineExceeded
			}
		}, "poll_failed: transport/time_out, again at ", "Z"},
		"failed": {func(b *bundle) {
			b.vendor.onQuery = func(ports.QueryRequest) (ports.QueryResult, error) {
				return ports.QueryResult{Observation: domain.Observation{
					Status: domain.ObservedFailed, ErrorClass: domain.ClassProvider, ErrorCode: "E12", ErrorMessage: vendorsWord,
				}}, nil
			}
		}, "observation: provider_error/E12", quoted},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			var log bytes.Buffer
			b.env.Logger = slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
			b.build(b.store, b.store)
			view := b.create()
			tc.arrange(b)
			b.step(b.submitter)
			b.clock.Advance(time.Minute + time.Second)
			b.step(b.poll)
			b.wantDetail(view.Task.ID, "observation", tc.begins, tc.ends)
			b.wantPrivate(view.Task.ID, log.String())
		})
	}
}

// onlyOnce is a create that must not be called.
func onlyOnce(b *bundle) func(ports.SubmitRequest) (ports.SubmitResult, error) {
	return func(ports.SubmitRequest) (ports.SubmitResult, error) {
		b.t.Error("the vendor was called")
		return ports.SubmitResult{}, nil
	}
}

// wantPrivate looks for the vendor's sentence in all that users and logs get.
func (b *bundle) wantPrivate(task domain.TaskID, log string) {
	b.t.Helper()
	view, cursor, err := b.store.Task(b.ctx(), b.project.ID, task)
	b.must(err)
	page, err := b.store.After(b.ctx(), b.project.ID, domain.Cursor{}, 100)
	b.must(err)
	public := []any{wire.TaskOf(view), cursor.String()}
	for _, e := range page.Events {
		public = append(public, wire.EventOf(e), wire.MessageOf(e))
	}
	data, err := json.Marshal(public)
	b.must(err)
	for where, text := range map[string]string{"public": string(data), "logged": log} {
		if strings.Contains(text, vendorsWord) || strings.Contains(text, "sentence") {
			b.t.Errorf("%s: %s", where, text)
		}
	}
}

// TestVendorThatForgot: 404 for ever makes the status unknown and calls a person,
// and the timeline says why.
func TestVendorThatForgot(t *testing.T) {
	t.Parallel()
	b := setup(t)
	view := b.submitted()
	b.clock.Advance(2 * time.Minute) // past the time in which a 404 is normal
	away := &ports.ProviderError{Class: ports.ClassTransport, NotSent: true, Code: "no_answer"}
	gone := &ports.ProviderError{Class: ports.ClassNotFound, Code: "http_404"}
	answer := away // the vendor restarts, and has forgotten
	b.vendor.onQuery = func(ports.QueryRequest) (ports.QueryResult, error) { return ports.QueryResult{}, answer }
	for range 2 {
		b.step(b.poll)
		b.clock.Advance(time.Minute)
	}
	answer = gone
	began := b.clock.Now()
	for b.view(view.Task.ID).Task.UnknownSince == nil {
		if b.clock.Now().Sub(began) > 5*time.Minute {
			t.Fatal("the status is not unknown after five minutes")
		}
		b.clock.Advance(10 * time.Second)
		b.step(b.poll)
	}
	cases, err := b.store.Cases(b.ctx(), domain.CaseLost, 10)
	b.must(err)
	if len(cases) != 1 || cases[0].AttemptID != view.Attempt.ID {
		t.Errorf("cases %+v", cases)
	}
	b.wantDetail(view.Task.ID, "observation", "poll_failed: transport/no_answer, again at ", "Z")
	b.wantDetail(view.Task.ID, "observation", "poll_failed: not_found/http_404, again at ", "Z")
}

// TestVendorThatTakesNothing: 429 for ever is overdue in the end, and a person is
// called.
func TestVendorThatTakesNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.vendor.onSubmit = func(ports.SubmitRequest) (ports.SubmitResult, error) {
		return ports.SubmitResult{}, &ports.ProviderError{Class: ports.ClassThrottled, NotSent: true, Code: "http_429", Message: vendorsWord}
	}
	view := b.submitted()
	for range 40 {
		b.clock.Advance(time.Minute)
		b.step(b.submitter)
		b.step(b.sweep)
	}
	got := b.want(view.Task.ID, queued, domain.AttemptCreated)
	cases, err := b.store.Cases(b.ctx(), domain.CaseOverdue, 10)
	b.must(err)
	if len(cases) != 1 || !got.Attempt.Overdue || got.Attempt.NextSubmitAt == nil {
		t.Errorf("cases %+v, attempt %+v", cases, got.Attempt)
	}
	b.wantDetail(view.Task.ID, "observation", "overdue", "overdue")
	b.vendor.onSubmit = nil
	b.clock.Advance(10 * time.Minute)
	b.step(b.submitter)
	b.want(view.Task.ID, queued, domain.AttemptSubmitted)
	if cases, err = b.store.Cases(b.ctx(), domain.CaseOverdue, 10); err != nil || len(cases) != 0 {
		t.Errorf("once it was taken: cases %+v, %v", cases, err)
	}
}

// TestFailedDownloadsAreSeen: each failed try says its number, its reason and when
// the next one is due.
func TestFailedDownloadsAreSeen(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.mediaTries = 9
	view := finishedAtVendor(b)
	m := newMedia(b, download(func(*http.Request) (ports.Download, error) {
		return ports.Download{}, &ports.ProviderError{Class: ports.ClassTransport, Code: "http_503", Message: vendorsWord}
	}), &shelf{})
	for n := 1; n <= 3; n++ {
		b.step(m)
		begins := fmt.Sprintf("try %d: download_transport/http_503, again at %s", n, wire.FormatTime(b.clock.Now())[:14])
		b.wantDetail(view.Task.ID, "operation", begins, "Z")
		b.clock.Advance(3 * time.Minute)
	}
	b.wantPrivate(view.Task.ID, "")
}
