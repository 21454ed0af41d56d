package capacity

import (
	"errors"
	"fmt"
	"math"
)

// Load is what a deployment is planned for. All fields are needed; Example has
// the specification's. The JSON names carry the units.
type Load struct {
	// ArrivalRate is the mean number of new tasks per second (λ).
	ArrivalRate float64 `json:"arrival_rate_per_s"`
	// MeanDuration is how long a vendor works on a task, in seconds (W).
	MeanDuration float64 `json:"mean_duration_s"`
	// EventsPerTask is the mean number of stored events of a task: changes of
	// state and stage, and the progress that throttling lets through.
	EventsPerTask float64 `json:"events_per_task"`
	// PeakFactor is the busiest time against the mean, 1 or more.
	PeakFactor float64 `json:"peak_factor"`
	// PollInterval is the mean time between two queries for a task, in seconds.
	PollInterval float64 `json:"poll_interval_s"`
	// VendorQuota is how many queries per second the vendors allow together.
	VendorQuota float64 `json:"vendor_quota_per_s"`
	// Connections is the number of streams open at the same time (C).
	Connections int `json:"connections"`
	// HeartbeatInterval is the time between two heartbeats of a stream, in seconds (H).
	HeartbeatInterval float64 `json:"heartbeat_interval_s"`
	// EventBytes is the mean size of an event on the wire.
	EventBytes float64 `json:"event_bytes"`
	// FanOut is how many streams an event reaches on average.
	FanOut float64 `json:"fan_out"`
	// Nodes is the number of machines with a gateway.
	Nodes int `json:"nodes"`
	// KiBPerConnection is the memory to plan for one stream.
	KiBPerConnection float64 `json:"kib_per_connection"`
}

// Example is the load of specification 12.11.
func Example() Load {
	return Load{
		ArrivalRate: 60, MeanDuration: 120, EventsPerTask: 6, PeakFactor: 3,
		PollInterval: 15, VendorQuota: 200,
		Connections: 100_000, HeartbeatInterval: 25, EventBytes: 500, FanOut: 1.3,
		Nodes: 8, KiBPerConnection: 30,
	}
}

// maxNodes bounds a plan: above it the input is a slip of the keyboard, or the
// system needs another shape than more of the same.
const maxNodes = 2_000

// Validate reports every value that no deployment can have, in one error. Each
// line names the flag of `aivedio plan` and what it takes.
func (l Load) Validate() error {
	const day = 86_400
	limits := []struct {
		flag      string
		value     float64
		low, high float64
		give      string
	}{
		{"arrival-rate", l.ArrivalRate, 0, 1e6, "the mean number of new tasks per second"},
		{"mean-duration", l.MeanDuration, 0, 30 * day, "how long a vendor works on a task, such as 120s"},
		{"events-per-task", l.EventsPerTask, 0, 1e4, "the mean number of stored events of a task"},
		{"peak-factor", l.PeakFactor, 1, 1e3, "the busiest time as a multiple of the mean"},
		{"poll-interval", l.PollInterval, 0, day, "the mean time between two queries for a task, such as 15s"},
		{"vendor-quota", l.VendorQuota, 0, 1e6, "the queries per second that the vendors allow; without a quota, what you are willing to send"},
		{"connections", float64(l.Connections), 1, 1e8, "the number of streams open at the same time"},
		{"heartbeat-interval", l.HeartbeatInterval, 1, 3600, "the time between two heartbeats of a stream, such as 25s"},
		{"event-bytes", l.EventBytes, 1, 1 << 20, "the mean size of an event on the wire in bytes"},
		{"fan-out", l.FanOut, 0, 1e6, "how many streams an event reaches on average"},
		{"nodes", float64(l.Nodes), 1, maxNodes, "the number of machines with a gateway"},
		{"kib-per-connection", l.KiBPerConnection, 0, 1 << 20, "the memory of one stream in KiB"},
	}
	var faults []error
	for _, f := range limits {
		if why := outside(f.value, f.low, f.high); why != "" {
			faults = append(faults, fmt.Errorf("--%s: %s; give %s", f.flag, why, f.give))
		}
	}
	return errors.Join(faults...)
}

// outside says why v is not a usable number between low and high, or "". A low
// of 0 is itself not usable: nothing can be divided by it.
func outside(v, low, high float64) string {
	over := fmt.Sprintf("at least %s", number(low))
	if low == 0 {
		over = "more than 0"
	}
	if math.IsNaN(v) {
		return fmt.Sprintf("not a number, must be %s and at most %s", over, number(high))
	}
	if v < low || v <= 0 || v > high {
		return fmt.Sprintf("%s must be %s and at most %s", number(v), over, number(high))
	}
	return ""
}
