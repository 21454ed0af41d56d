package domain_test

import (
	"testing"
	"time"

	"github.com/aivedio/aivedio/domain"
)

// TestProgress plays percentages at moments (milliseconds after the first) and
// checks which of them the public sees.
func TestProgress(t *testing.T) {
	t.Parallel()
	type step struct {
		at, percent int
		reason      domain.Reason // of a refusal
		shown       int           // afterwards
	}
	const throttled, regressive = domain.ReasonThrottledProgress, domain.ReasonRegressiveProgress
	tests := map[string][]step{
		"five points and a second": {
			{0, 10, "", 10}, {1000, 15, "", 15}, {2000, 19, throttled, 15}, {3000, 20, "", 20},
		},
		"too soon is deferred, not dropped": {
			{0, 10, "", 10}, {400, 40, throttled, 10}, {1000, 45, "", 45},
		},
		"never back": {
			{0, 50, "", 50}, {2000, 30, regressive, 50}, {4000, 50, "", 50}, {6000, 49, regressive, 50},
		},
		"out of range is cut": {
			{0, -20, throttled, -1}, {2000, 130, "", 100}, {4000, 100, "", 100},
		},
		"many small steps add up": {
			{0, 10, "", 10}, {1000, 12, throttled, 10}, {2000, 14, throttled, 10}, {3000, 15, "", 15},
		},
		"less than what waits is nothing new": {
			{0, 10, "", 10}, {300, 60, throttled, 10}, {600, 40, throttled, 10}, {700, 60, throttled, 10},
		},
		"every percent, every tenth of a second": {
			{0, 10, "", 10}, {100, 11, throttled, 10}, {200, 12, throttled, 10}, {300, 13, throttled, 10}, {400, 14, throttled, 10},
			{500, 15, throttled, 10}, {600, 16, throttled, 10}, {1000, 17, "", 17},
		},
	}
	for name, steps := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := running(t, domain.LateSuccessKeep)
			first := s.now
			for _, p := range steps {
				s.now = first.Add(time.Duration(p.at) * time.Millisecond)
				d := s.webhook(domain.ObservedRunning, percent(p.percent))
				if d.Verdict.Reason != p.reason || (p.reason == throttled && d.Recorded()) {
					t.Fatalf("%d %% at %d ms: %v", p.percent, p.at, d.Verdict)
				}
				shown := -1
				if d.Task.Progress != nil {
					shown = *d.Task.Progress
				}
				if shown != p.shown {
					t.Fatalf("%d %% at %d ms: %d %% is shown, want %d", p.percent, p.at, shown, p.shown)
				}
			}
		})
	}
}

// TestDeferredProgressLands: the newest of the deferred ones, when the second is
// over, by its own timer.
func TestDeferredProgressLands(t *testing.T) {
	t.Parallel()
	s := running(t, domain.LateSuccessKeep)
	due := domain.Input{Kind: domain.InputProgressDue}
	s.webhook(domain.ObservedRunning, percent(10))
	for _, p := range []int{30, 60, 55} {
		s.tick(200 * time.Millisecond)
		s.webhook(domain.ObservedRunning, percent(p))
	}
	if until := s.attempt().DeferredUntil; until == nil || until.Sub(s.now) != 400*time.Millisecond {
		t.Fatalf("deferred until %v", until)
	}
	if d := s.do(due); d.TaskChanged {
		t.Fatal("landed too early")
	}
	s.tick(400 * time.Millisecond)
	d := s.do(due)
	if *d.Task.Progress != 60 || d.Event == nil || *d.Event.Progress != 60 || d.Attempt.DeferredUntil != nil {
		t.Fatalf("landed %v", d.Task.Progress)
	}
	if d := s.do(due); d.TaskChanged || d.AttemptChanged {
		t.Fatal("landed twice")
	}
}

// TestProgressRides: with another change the event is written anyway, so nothing
// is throttled; a new status starts at its own percentage.
func TestProgressRides(t *testing.T) {
	t.Parallel()
	s := submitted(t, domain.LateSuccessKeep)
	d := s.webhook(domain.ObservedRunning, percent(2))
	if d.Event == nil || *d.Task.Progress != 2 || d.Task.Stage != domain.StageGenerating {
		t.Fatalf("progress %v in stage %s", d.Task.Progress, d.Task.Stage)
	}
	s.webhook(domain.ObservedRunning, percent(80))
	d = s.webhook(domain.ObservedSucceeded, clip)
	if d.Task.Progress != nil || d.Task.Stage != domain.StageFetching || d.Attempt.DeferredProgress != nil {
		t.Fatalf("progress %v of the old stage is shown in %s", d.Task.Progress, d.Task.Stage)
	}
}

// TestProgressPerStage: each stage of the media work counts from nothing.
func TestProgressPerStage(t *testing.T) {
	t.Parallel()
	s := running(t, domain.LateSuccessKeep)
	s.webhook(domain.ObservedSucceeded, clip)
	work := func(stage domain.Stage, p int) domain.Decision {
		return s.do(domain.Input{Kind: domain.InputMediaStage, Stage: stage, Progress: &p})
	}
	steps := []struct {
		stage  domain.Stage
		p      int
		reason domain.Reason
	}{
		{domain.StageFetching, 90, ""},
		{domain.StageFetching, 40, domain.ReasonRegressiveProgress},
		{domain.StageTranscoding, 3, ""}, // smaller than before, but of another stage; rides with it
		{domain.StageFetching, 95, domain.ReasonRegressiveStage},
		{domain.StageTranscoding, 30, domain.ReasonThrottledProgress},
	}
	for _, step := range steps {
		if d := work(step.stage, step.p); d.Verdict.Reason != step.reason {
			t.Fatalf("%s %d %%: %v", step.stage, step.p, d.Verdict)
		}
	}
	d := s.ready()
	if *d.Task.Progress != 100 || d.Task.Stage != domain.StageDone || d.Attempt.DeferredProgress != nil {
		t.Fatalf("ready at %d %% in %s", *d.Task.Progress, d.Task.Stage)
	}
}

// TestProgressOfOldAttempt stays with the attempt.
func TestProgressOfOldAttempt(t *testing.T) {
	t.Parallel()
	s := supersededRunning(t)
	d := s.on(1, observation(domain.SourceWebhook, domain.ObservedRunning, []detail{percent(50)}))
	verdict(t, d, domain.VerdictIgnored, domain.ReasonStaleAttempt)
	if d.Task.Progress != nil {
		t.Fatal("an old attempt's progress is shown")
	}
	d = s.on(1, domain.Input{Kind: domain.InputProgressDue})
	if d.TaskChanged {
		t.Fatal("an old attempt's deferred progress is shown")
	}
}
