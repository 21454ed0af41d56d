package domain

import "time"

// The bounds of [Policy.Pace]: whatever the platform believes of a vendor's
// webhooks, no job is asked about more than three times as often or as seldom as
// the polling table says (specification 12.12: "raise the polling ratio").
const (
	MinPace = 1.0 / 3
	MaxPace = 3.0
)

// Paced is a regular delay of the polling table at the policy's Pace, kept within
// [MinPace] and [MaxPace] and never below the least gap between two queries.
func (p Policy) Paced(d time.Duration) time.Duration {
	if !(p.Pace > 0) { // unknown, or no number
		return d
	}
	return max(time.Duration(float64(d)*min(max(p.Pace, MinPace), MaxPace)), min(d, p.MinPollGap))
}
