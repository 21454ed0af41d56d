package simulator

import (
	"testing"
	"time"
)

func TestMeterSlides(t *testing.T) {
	t.Parallel()
	start := time.Unix(1000, 0)
	ms := func(n int) time.Time { return start.Add(time.Duration(n) * time.Millisecond) }
	tests := map[string]struct {
		calls            []int // ms
		perSecond, burst int
		enforce          bool
		want             Traffic
		worstAt, burstAt int
		refusedAtMoments []int
	}{
		// A fixed second would see two and two.
		"the worst second crosses a full one": {
			calls: []int{900, 950, 1050, 1850, 1899}, want: Traffic{Accepted: 5, WorstSecond: 5, WorstBurst: 2}, worstAt: 1899, burstAt: 950,
		},
		"a call one second old is out": {
			calls: []int{0, 1000}, want: Traffic{Accepted: 2, WorstSecond: 1, WorstBurst: 1}, worstAt: 0, burstAt: 0,
		},
		"over is counted without enforcing": {
			calls: []int{0, 1, 2, 3}, perSecond: 3, want: Traffic{Accepted: 4, Over: 1, WorstSecond: 4, WorstBurst: 4}, worstAt: 3, burstAt: 3,
		},
		"a refused call does not count towards the window": {
			calls: []int{0, 1, 2, 500, 1000}, perSecond: 2, enforce: true,
			want: Traffic{Accepted: 3, Refused: 2, Over: 2, WorstSecond: 2, WorstBurst: 2}, worstAt: 1, burstAt: 1, refusedAtMoments: []int{2, 500},
		},
		"a burst has a limit of its own": {
			calls: []int{0, 10, 20, 100, 110}, burst: 2, enforce: true,
			want: Traffic{Accepted: 4, Refused: 1, Over: 1, WorstSecond: 4, WorstBurst: 2}, worstAt: 110, burstAt: 10, refusedAtMoments: []int{20},
		},
		"a clock that steps back stands still": {
			calls: []int{500, 0, 1400}, want: Traffic{Accepted: 3, WorstSecond: 3, WorstBurst: 2}, worstAt: 1400, burstAt: 500,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var m meter
			var refused []int
			for _, at := range tc.calls {
				if !m.admit(ms(at), tc.perSecond, tc.burst, tc.enforce) {
					refused = append(refused, at)
				}
			}
			tc.want.WorstSecondAt, tc.want.WorstBurstAt = ms(tc.worstAt), ms(tc.burstAt)
			if m.traffic != tc.want {
				t.Errorf("got %+v\nwant %+v", m.traffic, tc.want)
			}
			if len(refused) != len(tc.refusedAtMoments) {
				t.Fatalf("refused at %v, want %v", refused, tc.refusedAtMoments)
			}
			for i, at := range refused {
				if at != tc.refusedAtMoments[i] {
					t.Errorf("refused at %v, want %v", refused, tc.refusedAtMoments)
				}
			}
		})
	}
}

// The ring grows while its oldest entry is in the middle.
func TestMeterWindowGrows(t *testing.T) {
	t.Parallel()
	var m meter
	at := time.Unix(1000, 0)
	for n := range 5000 {
		m.admit(at.Add(time.Duration(n)*time.Millisecond), 0, 0, false)
	}
	for n := range 3000 { // ten times as many per second
		m.admit(at.Add(5*time.Second+time.Duration(n)*100*time.Microsecond), 0, 0, false)
	}
	// The last window holds 3,000 of these and 700 of those from before.
	if got := m.traffic; got.Accepted != 8000 || got.WorstSecond != 3700 || got.WorstBurst != 1000 {
		t.Errorf("%+v", got)
	}
}

func BenchmarkMeter(b *testing.B) {
	var m meter
	at := time.Unix(1000, 0)
	b.ReportAllocs()
	for b.Loop() {
		at = at.Add(300 * time.Microsecond)
		m.admit(at, 0, 0, false)
	}
}
