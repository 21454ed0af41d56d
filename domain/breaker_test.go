package domain_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/aivedio/aivedio/domain"
)

var (
	healthPolicy = domain.HealthPolicy{}.WithDefaults()
	noon         = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
)

func TestBreakerOpensAndCloses(t *testing.T) {
	t.Parallel()
	p, now := healthPolicy, noon
	var h domain.Health
	if !h.Admit(now, false, p).Free || !h.Admit(now, true, p).Free {
		t.Fatal("nothing is known and the account is shut")
	}
	h, changed := h.Open(domain.BreakerTransport, false, now, p)
	if !changed || h.Breaker != domain.BreakerOpen || !h.Until.Equal(now.Add(15*time.Second)) {
		t.Fatalf("opened: %+v", h)
	}
	if again, changed := h.Open(domain.BreakerTransport, false, now.Add(time.Second), p); changed || again != h {
		t.Error("answers to earlier calls moved an open breaker")
	}
	if a := h.Admit(now, false, p); a.Free || a.Probe || !a.Until.Equal(h.Until) {
		t.Errorf("open: %+v", a)
	}
	if _, taken := h.TakeProbe(now, false, time.Minute, p); taken {
		t.Error("a probe before its time")
	}
	now = h.Until
	if !h.Admit(now, false, p).Probe || h.Admit(now, true, p).Probe || !h.Admit(now.Add(p.SubmitLag), true, p).Probe {
		t.Error("a query probes first, a create later")
	}
	h, _ = h.TakeProbe(now, false, time.Minute, p)
	if _, taken := h.TakeProbe(now, false, time.Minute, p); taken || h.Breaker != domain.BreakerHalfOpen {
		t.Errorf("two probes at once: %+v", h)
	}
	if stale, changed := h.Open(domain.BreakerTransport, false, now, p); changed || stale != h {
		t.Error("an answer to an earlier call decided the probe")
	}
	failed, _ := h.ProbeFailed(now, p)
	if failed.Breaker != domain.BreakerOpen || !failed.Until.Equal(now.Add(30*time.Second)) || failed.Reason != domain.BreakerTransport {
		t.Errorf("after a failed probe: %+v", failed)
	}
	closed, _ := h.Answered(true, now, p)
	if !closed.Admit(now, true, p).Free || closed != (domain.Health{Breaker: domain.BreakerClosed}) {
		t.Errorf("after an answered probe: %+v", closed)
	}
	if lost := h.Admit(now.Add(time.Minute), false, p); !lost.Probe {
		t.Errorf("the prober died and nobody may follow: %+v", lost)
	}
	if back, dropped := h.DropProbe(); !dropped || !back.Admit(now, false, p).Probe {
		t.Error("a probe given back is not free")
	}
}

func TestBreakerReasons(t *testing.T) {
	t.Parallel()
	p, now := healthPolicy, noon
	h, _ := domain.Health{}.Open(domain.BreakerTransport, false, now, p)
	h, changed := h.Open(domain.BreakerAuth, false, now, p)
	if !changed || h.Reason != domain.BreakerAuth || !h.Until.Equal(now.Add(2*time.Minute)) {
		t.Errorf("a refused credential: %+v", h)
	}
	h, _ = h.TakeProbe(h.Until, false, time.Minute, p)
	h, _ = h.ProbeFailed(h.Until, p)
	if h.Reason != domain.BreakerAuth {
		t.Errorf("a time-out told nothing of the credential, and %+v", h)
	}
	hand := h.OpenByHand()
	if again, changed := hand.Open(domain.BreakerAuth, false, now, p); changed || again != hand {
		t.Error("an answer moved what a person opened")
	}
	if a := hand.Admit(now.AddDate(1, 0, 0), false, p); a.Free || a.Probe || !a.Until.IsZero() {
		t.Errorf("opened by hand: %+v", a)
	}
	if got := hand.CloseByHand(); !got.Admit(now, true, p).Free {
		t.Errorf("closed by hand: %+v", got)
	}
	for range 20 {
		h, _ = h.TakeProbe(h.Until, false, time.Minute, p)
		at := h.Until
		if h, _ = h.ProbeFailed(at, p); h.Until.Sub(at) > time.Hour {
			t.Fatalf("%v to the next probe", h.Until.Sub(at))
		}
	}
}

func TestThrottleHalvesAndGrows(t *testing.T) {
	t.Parallel()
	p, now := healthPolicy, noon
	h, _ := domain.Health{}.Throttle(0, 32, now, p)
	if h.Limit != 16 || !h.ThrottledUntil.IsZero() || !h.Admit(now, false, p).Free {
		t.Fatalf("halved: %+v", h)
	}
	if again, changed := h.Throttle(0, 32, now.Add(9*time.Second), p); changed || again != h {
		t.Error("halved twice within a window")
	}
	if h, _ = h.Throttle(time.Minute, 8, now.Add(time.Second), p); h.Limit != 16 || !h.ThrottledUntil.Equal(now.Add(61*time.Second)) {
		t.Errorf("with a wish: %+v", h)
	}
	if a := h.Admit(now.Add(time.Minute), true, p); a.Free || a.Probe || !a.Until.Equal(h.ThrottledUntil) {
		t.Errorf("before the vendor's wish: %+v", a)
	}
	if shorter, changed := h.Throttle(time.Second, 8, now.Add(2*time.Second), p); changed || shorter != h {
		t.Error("a shorter wish took the longer one back")
	}
	if h, _ = h.Throttle(0, 6, now.Add(10*time.Second), p); h.Limit != 3 {
		t.Errorf("with 6 under way the limit of 16 is %d, want 3", h.Limit)
	}
	h.Limit, now = 1, now.Add(time.Hour)
	if h, _ = h.Throttle(0, 5, now, p); h.Limit != 1 || !h.ThrottledUntil.Equal(now.Add(p.Window)) {
		t.Errorf("at the floor: %+v", h)
	}
	if _, grown := h.Grow(now.Add(9*time.Second), p); grown {
		t.Error("grown within the window of a halving")
	}
	now = now.Add(p.Window)
	h, _ = h.Grow(now, p)
	if _, grown := h.Grow(now.Add(time.Second), p); grown || h.Limit != 2 {
		t.Errorf("grown faster than one per %v: %+v", p.GrowEvery, h)
	}
	for h.Limit > 0 {
		now = now.Add(p.GrowEvery)
		before := h.Limit
		if h, _ = h.Grow(now, p); h.Limit != before+1 && before+1 != p.Ceiling {
			t.Fatalf("from %d to %d", before, h.Limit)
		}
	}
	if _, grown := h.Grow(now.Add(time.Hour), p); grown {
		t.Error("grown without a limit")
	}
}

func TestQuarantine(t *testing.T) {
	t.Parallel()
	p, now := healthPolicy, noon
	h, _ := domain.Health{}.Quarantine(5, `{"a":text}`, now, p)
	if a := h.Admit(now, false, p); a.Free || a.Probe || !a.Until.Equal(now.Add(p.Quarantine)) {
		t.Fatalf("in quarantine: %+v", a)
	}
	now = h.QuarantineUntil
	h, taken := h.TakeProbe(now, false, time.Minute, p)
	if !taken || h.State() != domain.BreakerClosed {
		t.Fatalf("probe: %+v", h)
	}
	still, _ := h.Answered(false, now, p)
	still, _ = still.Quarantine(6, `{"b":text}`, now, p)
	if !still.Quarantined() || !still.QuarantineUntil.Equal(now.Add(p.Quarantine)) || still.Sample != `{"b":text}` || still.Malformed != 5 {
		t.Errorf("after another malformed answer: %+v", still)
	}
	if failed, _ := h.ProbeFailed(now, p); !failed.Quarantined() || failed.State() != domain.BreakerClosed || failed.Admit(now, false, p).Probe {
		t.Errorf("after no answer: %+v", failed)
	}
	if free, _ := h.Answered(true, now, p); !free.Admit(now, true, p).Free || free.Sample != "" {
		t.Errorf("after a good answer: %+v", free)
	}
	if free := still.ReleaseByHand(); !free.Admit(now, true, p).Free {
		t.Errorf("released by hand: %+v", free)
	}
	both, _ := still.Open(domain.BreakerAuth, false, now, p)
	if left := both.CloseByHand(); !left.Quarantined() {
		t.Error("closing the breaker released the quarantine")
	}
	if left := both.ReleaseByHand(); left.Breaker != domain.BreakerOpen {
		t.Error("releasing the quarantine closed the breaker")
	}
}

// TestHealthProperties drives an account with any calls and answers in any order:
// at most one probe is out at a time, a shut account always says when to look
// again unless a person opened it, the limit stays at least 1, and a good answer
// to a probe frees everything that was not shut while it was out and that no vendor throttled.
func TestHealthProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p, now := healthPolicy, noon
		var h domain.Health
		probing := false
		steps := rapid.IntRange(1, 60).Draw(t, "steps")
		for range steps {
			now = now.Add(time.Duration(rapid.IntRange(0, 400).Draw(t, "seconds")) * time.Second)
			create := rapid.Bool().Draw(t, "create")
			probing = probing && now.Before(h.ProbeUntil)
			a := h.Admit(now, create, p)
			switch {
			case a.Free && a.Probe, (a.Free || a.Probe) && !a.Until.IsZero():
				t.Fatalf("contradiction %+v", a)
			case !a.Free && !a.Probe && a.Until.IsZero() != (h.Reason == domain.BreakerOperator):
				t.Fatalf("%+v of %+v", a, h)
			case !a.Until.IsZero() && !a.Until.After(now):
				t.Fatalf("shut until %v at %v", a.Until, now)
			case a.Probe && probing:
				t.Fatalf("two probes: %+v", h)
			}
			if next, taken := h.TakeProbe(now, create, time.Minute, p); taken {
				h, probing = next, true
			}
			switch rapid.SampledFrom([]string{"good", "bad", "lost", "refused", "failed", "throttled", "tripped", "grow", "open", "close", "release", "none"}).Draw(t, "what") {
			case "good":
				if probing {
					opened := h.Breaker == domain.BreakerOpen // while the probe of a quarantine was out
					h, _ = h.Answered(true, now, p)
					if probing = false; !opened && !now.Before(h.ThrottledUntil) && !h.Admit(now, create, p).Free {
						t.Fatalf("a good answer left it shut: %+v", h)
					}
				}
			case "bad":
				if probing {
					h, _ = h.Answered(false, now, p)
					probing = false
				}
				h, _ = h.Quarantine(5, "x", now, p)
			case "lost":
				if probing {
					h, _ = h.DropProbe()
					probing = false
				}
			case "refused":
				h, _ = h.Open(domain.BreakerAuth, probing, now, p)
				probing = false
			case "failed":
				if probing {
					h, _ = h.ProbeFailed(now, p)
					probing = false
				}
			case "throttled":
				h, _ = h.Throttle(time.Duration(rapid.IntRange(0, 60).Draw(t, "wish"))*time.Second, rapid.IntRange(1, 100).Draw(t, "underway"), now, p)
				if h.Limit < 1 {
					t.Fatalf("limit %d", h.Limit)
				}
			case "tripped":
				h, _ = h.Open(domain.BreakerTransport, false, now, p)
			case "grow":
				h, _ = h.Grow(now, p)
			case "open":
				h, probing = h.OpenByHand(), false
			case "close":
				h, probing = h.CloseByHand(), false
			case "release":
				h = h.ReleaseByHand()
				probing = probing && !h.ProbeUntil.IsZero()
			}
			if h.Limit < 0 || (h.State() == domain.BreakerClosed) != (h.Reason == "") {
				t.Fatalf("%+v", h)
			}
		}
	})
}
