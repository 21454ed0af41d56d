package porttest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

func timelineTests() []storeTest {
	return []storeTest{
		{"EveryInput", timelineEveryInput},
		{"CountsTheRest", timelineCountsTheRest},
		{"OtherProject", timelineOtherProject},
		{"SaysWhy", timelineSaysWhy},
		{"FailuresOfQueries", timelineFailuresOfQueries},
	}
}

// timelineEveryInput: what changed something or was refused stands there with
// its verdict and the versions before and after.
func timelineEveryInput(t *testing.T, b *storeBench) {
	m := b.submitted()
	b.Clock.Advance(time.Second)
	b.must(b.progressed(m, 10))
	b.Clock.Advance(time.Second)
	b.must(b.saw(m, domain.ObservedQueued))
	thin := b.saw(m, domain.ObservedSucceeded)
	thin.Input.Observation.Source, thin.Input.Observation.Trust = domain.SourceWebhook, domain.TrustBearer
	b.Clock.Advance(time.Second)
	b.must(thin)

	var got []ports.TimelineEntry
	for _, e := range entries(b.timeline(m), "observation") {
		if e.Source == domain.SourcePoll || e.Source == domain.SourceWebhook {
			got = append(got, e)
		}
	}
	want := []ports.TimelineEntry{
		{Source: domain.SourcePoll, Status: "running", Verdict: domain.Verdict{Kind: domain.VerdictApplied}, VersionBefore: 2, VersionAfter: 3},
		{Source: domain.SourcePoll, Status: "queued", Verdict: domain.Verdict{Kind: domain.VerdictIgnored, Reason: domain.ReasonRegressiveStatus}, VersionBefore: 3, VersionAfter: 3},
		{Source: domain.SourceWebhook, Status: "succeeded", Verdict: domain.Verdict{Kind: domain.VerdictNeedsQuery, Reason: domain.ReasonNotTrusted}, VersionBefore: 3, VersionAfter: 3},
	}
	if len(got) != len(want) {
		t.Fatalf("%d observations, want %d: %+v", len(got), len(want), got)
	}
	for i, w := range want {
		g := got[i]
		if g.Source != w.Source || g.Status != w.Status || g.Verdict != w.Verdict || g.VersionBefore != w.VersionBefore || g.VersionAfter != w.VersionAfter || g.AttemptNo != 1 {
			t.Errorf("observation %d: %+v, want %+v", i, g, w)
		}
	}
	if p := got[0].Progress; p == nil || *p != 10 {
		t.Errorf("progress %v, want 10", p)
	}
	b.checkTimelineEvents(m, 3)
}

// checkTimelineEvents: the task's events stand on its timeline, and everything
// is sorted by time.
func (b *storeBench) checkTimelineEvents(m made, want int) {
	b.t.Helper()
	timeline := b.timeline(m)
	events := entries(timeline, "event")
	if len(events) != want {
		b.t.Fatalf("%d events on the timeline, want %d", len(events), want)
	}
	for i, e := range events {
		if e.VersionAfter != int64(i)+1 || e.EventID == 0 {
			b.t.Errorf("event %d on the timeline: %+v", i, e)
		}
	}
	for i := range timeline.Entries {
		if i > 0 && timeline.Entries[i].At.Before(timeline.Entries[i-1].At) {
			b.t.Errorf("entry %d is older than the one before: %+v", i, timeline.Entries[i])
		}
	}
}

func timelineCountsTheRest(t *testing.T, b *storeBench) {
	m := b.submitted()
	b.must(b.progressed(m, 10))
	before := len(entries(b.timeline(m), "observation"))
	for range 3 {
		b.must(b.progressed(m, 10)) // unchanged
	}
	b.must(b.progressed(m, 12), b.progressed(m, 13)) // too small a step
	timeline := b.timeline(m)
	if n := len(entries(timeline, "observation")); n != before {
		t.Errorf("%d observations, want %d", n, before)
	}
	if n := timeline.Counters["unchanged"]; n < 3 {
		t.Errorf("counted %d unchanged, want at least 3: %v", n, timeline.Counters)
	}
	if n := timeline.Counters["ignored/"+string(domain.ReasonThrottledProgress)]; n != 2 {
		t.Errorf("counted %d throttled, want 2: %v", n, timeline.Counters)
	}
}

func timelineOtherProject(t *testing.T, b *storeBench) {
	m := b.submitted()
	_, err := b.Store.Timeline(b.ctx, b.newProject(b.tenant, "another"), m.task)
	wantErr(t, "the timeline from another project", err, ports.ErrNotFound)
}

// timelineSaysWhy: class, code, next try and the vendor's sentence are there for
// operators, and no event holds them (I15).
func timelineSaysWhy(t *testing.T, b *storeBench) {
	const secret = "the vendor's own sentence, ünd \"quoted\""
	m := b.create()
	start := b.started(m)
	b.must(start, item(m, domain.Input{
		Kind: domain.InputSubmitNotSent, Lease: start.Input.Lease, RetryAfter: 7 * time.Minute, ErrorCode: "throttled/http_429", ErrorMessage: secret,
	}))
	again := "again at " + stamp(*b.attempt(m).NextSubmitAt)
	b.Clock.Advance(10 * time.Minute)
	b.must(b.started(m), b.accepted(m))
	failed := b.saw(m, domain.ObservedFailed)
	failed.Input.Observation.ErrorClass, failed.Input.Observation.ErrorCode = domain.ClassProvider, "E123"
	failed.Input.Observation.ErrorMessage = secret
	b.must(failed)

	quoted := strconv.Quote(secret)
	b.wantDetail(m, "submit_not_sent: throttled/http_429, "+again+", "+quoted)
	b.wantDetail(m, "observation: provider_error/E123, "+quoted)
	b.wantDetail(m, "submit_accepted")
	page, err := b.Store.After(b.ctx, m.project, domain.Cursor{}, 1000)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range page.Events {
		if said := fmt.Sprintf("%+v %+v", e, e.Error); strings.Contains(said, "sentence") || strings.Contains(said, "E123") {
			t.Errorf("vendor's text in event %d: %s", e.EventID, said)
		}
	}
	if v := b.task(m); v.Task.Error == nil || v.Task.Error.Code != domain.ClassProvider {
		t.Errorf("public error %+v", v.Task.Error)
	}
}

// wantDetail fails the test unless an observation has exactly this detail.
func (b *storeBench) wantDetail(m made, want string) {
	b.t.Helper()
	all := entries(b.timeline(m), "observation")
	if !slices.ContainsFunc(all, func(e ports.TimelineEntry) bool { return e.Detail == want }) {
		b.t.Errorf("no observation says %q: %+v", want, all)
	}
}

// timelineFailuresOfQueries: of a streak of failures the first and the one that
// makes the status unknown are on the timeline; the others are counted. A vendor
// that does not know the job calls a person.
func timelineFailuresOfQueries(t *testing.T, b *storeBench) {
	m := b.submitted()
	b.Clock.Advance(5 * time.Minute)
	const unknownAfter = 4
	for i := range 6 {
		b.must(item(m, domain.Input{
			Kind: domain.InputPollFailed, Policy: domain.Policy{UnknownAfter: unknownAfter}, ErrorCode: "not_found/http_404",
			QueryError: &domain.QueryError{Class: domain.QueryNotFound},
		}))
		if open := len(b.cases(domain.CaseLost)); (i+1 >= unknownAfter) != (open > 0) {
			t.Errorf("%d open cases after %d failures", open, i+1)
		}
		b.Clock.Advance(time.Minute)
	}
	var failures []ports.TimelineEntry
	for _, e := range entries(b.timeline(m), "observation") {
		if strings.HasPrefix(e.Detail, string(domain.InputPollFailed)+": not_found/http_404, again at ") {
			failures = append(failures, e)
		}
	}
	if len(failures) != 2 || failures[0].Verdict.Kind != domain.VerdictUnchanged || failures[1].Verdict.Kind != domain.VerdictApplied {
		t.Errorf("failures on the timeline: %+v, want the first and the one that counts", failures)
	}
	for _, e := range failures {
		if e.Source != domain.SourcePoll {
			t.Errorf("source %q", e.Source)
		}
	}
	b.must(b.saw(m, domain.ObservedRunning)) // found after all
	if open := b.cases(domain.CaseLost); len(open) != 0 {
		t.Errorf("open cases: %+v", open)
	}
}
