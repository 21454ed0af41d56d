package simulator

import "time"

// The windows that a meter slides over its calls.
const (
	meterSecond = time.Second
	meterBurst  = 100 * time.Millisecond
)

// Traffic is what a meter has seen. Worst figures are over every window of that
// length, wherever it begins, and count accepted calls only.
type Traffic struct {
	// Accepted calls were let through; Refused were answered 429 because of the
	// quota.
	Accepted int `json:"accepted"`
	Refused  int `json:"refused"`
	// Over counts calls above the quota, whether it was enforced or not.
	Over int `json:"over"`
	// WorstSecond is the most calls within one second, WorstBurst within 100 ms;
	// the times are when those windows ended.
	WorstSecond   int       `json:"worst_second"`
	WorstSecondAt time.Time `json:"worst_second_at,omitzero"`
	WorstBurst    int       `json:"worst_burst"`
	WorstBurstAt  time.Time `json:"worst_burst_at,omitzero"`
}

// meter counts calls in sliding windows. Its clock may not be monotone: a step
// back counts as standing still.
type meter struct {
	second, burst window
	last          time.Time
	traffic       Traffic
}

// admit counts a call at now and tells whether it is let through. Limits of 0
// are none; calls above them are refused if enforce is set.
func (m *meter) admit(now time.Time, perSecond, perBurst int, enforce bool) bool {
	if now.Before(m.last) {
		now = m.last
	}
	m.last = now
	inSecond, inBurst := m.second.advance(now, meterSecond), m.burst.advance(now, meterBurst)
	if perSecond > 0 && inSecond >= perSecond || perBurst > 0 && inBurst >= perBurst {
		m.traffic.Over++
		if enforce {
			m.traffic.Refused++
			return false
		}
	}
	m.second.push(now)
	m.burst.push(now)
	m.traffic.Accepted++
	if n := inSecond + 1; n > m.traffic.WorstSecond {
		m.traffic.WorstSecond, m.traffic.WorstSecondAt = n, now
	}
	if n := inBurst + 1; n > m.traffic.WorstBurst {
		m.traffic.WorstBurst, m.traffic.WorstBurstAt = n, now
	}
	return true
}

// window is the moments of the calls that are not older than its length, in a
// ring that grows with the traffic.
type window struct {
	ring  []int64
	first int
	n     int
}

// advance forgets what is as old as the length or older, and returns how many
// are left.
func (w *window) advance(now time.Time, length time.Duration) int {
	oldest := now.Add(-length).UnixNano()
	for w.n > 0 && w.ring[w.first] <= oldest {
		w.first, w.n = (w.first+1)%len(w.ring), w.n-1
	}
	return w.n
}

func (w *window) push(now time.Time) {
	if w.n == len(w.ring) {
		larger := make([]int64, max(64, 2*w.n))
		for i := range w.n {
			larger[i] = w.ring[(w.first+i)%len(w.ring)]
		}
		w.ring, w.first = larger, 0
	}
	w.ring[(w.first+w.n)%len(w.ring)] = now.UnixNano()
	w.n++
}
