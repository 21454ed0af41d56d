package domain_test

import (
	"math"
	"testing"
	"time"

	"github.com/aivedio/aivedio/domain"
)

func TestPaced(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name        string
		pace        float64
		delay, want time.Duration
	}{
		{"unknown", 0, 15 * time.Second, 15 * time.Second},
		{"as the table says", 1, 15 * time.Second, 15 * time.Second},
		{"webhooks arrive", 2, 15 * time.Second, 30 * time.Second},
		{"webhooks are silent", 0.5, 15 * time.Second, 7500 * time.Millisecond},
		{"never more than the bound", 1000, 10 * time.Second, 30 * time.Second},
		{"never less than the bound", 0.001, 30 * time.Second, 10 * time.Second},
		{"never below the least gap", 0.5, 3 * time.Second, 2 * time.Second},
		{"a delay below the gap is not raised", 0.5, time.Second, time.Second},
		{"a negative pace", -1, 30 * time.Second, 30 * time.Second},
		{"no number", math.NaN(), 30 * time.Second, 30 * time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := domain.DefaultPolicy()
			p.Pace = tt.pace
			if got := p.Paced(tt.delay); got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
		})
	}
}

// TestPollDelayPaced: the pace stretches the regular rows of the table, and
// neither those of overdue jobs nor those of attempts that nobody waits for.
func TestPollDelayPaced(t *testing.T) {
	t.Parallel()
	a := domain.Attempt{Status: domain.AttemptRunning, SubmittedAt: ago(time.Minute)}
	late := a
	late.Overdue = true
	p := domain.DefaultPolicy()
	for _, tt := range []struct {
		name    string
		attempt domain.Attempt
		current bool
		want    time.Duration
	}{
		{"running", a, true, 15 * time.Second},
		{"overdue", late, true, 2 * time.Minute},
		{"superseded", a, false, 10 * time.Minute},
	} {
		p.Pace = domain.MaxPace
		if got := domain.PollDelay(tt.attempt, tt.current, p, now); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}
