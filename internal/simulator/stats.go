package simulator

import "maps"

// Stats counts what happened since Open. It is a copy: nobody changes it later.
// With a journal the creates and webhooks of the jobs it remembers are counted
// again at each Open, so that a job paid for twice shows across restarts.
type Stats struct {
	// Creates is how many jobs were accepted, answered or not.
	Creates int `json:"creates"`
	// CreatesByKey splits them by the client's own name for the job: sim.key,
	// else the Idempotency-Key header, else the webhook URL, else the prompt. A
	// value above 1 is a job the client paid for twice.
	CreatesByKey map[string]int `json:"creates_by_key"`
	// CreateCalls counts well-formed creates, refused by a fault or accepted.
	CreateCalls int `json:"create_calls"`
	// CreateInvalid counts creates refused for their content.
	CreateInvalid int `json:"create_invalid"`
	// Unauthorized counts calls with a wrong key.
	Unauthorized int `json:"unauthorized"`
	// Queries, Cancels, Deletes and Downloads count calls for existing or unknown jobs.
	Queries   int `json:"queries"`
	Cancels   int `json:"cancels"`
	Deletes   int `json:"deletes"`
	Downloads int `json:"downloads"`
	// Jobs counts the jobs still remembered, by status in Replicate's words.
	Jobs map[string]int `json:"jobs"`
	// Webhooks is what happened to messages.
	Webhooks WebhookStats `json:"webhooks"`
	// Injected counts each fault that struck, by its JSON name.
	Injected map[string]int `json:"injected"`
}

// WebhookStats counts messages, except for Attempts and Failed, which count
// single HTTP calls.
type WebhookStats struct {
	// Emitted is every message a job gave rise to and its client subscribed to.
	Emitted int `json:"emitted"`
	// Attempts counts HTTP calls, Delivered those answered 2xx, Failed the rest.
	Attempts  int `json:"attempts"`
	Delivered int `json:"delivered"`
	Failed    int `json:"failed"`
	// GivenUp counts messages that no further attempt will be made for.
	GivenUp int `json:"given_up"`
	// Muted were not sent because the job has its webhooks off.
	Muted int `json:"muted"`
	// Dropped, Delayed, Duplicated (either kind) and Reordered met that fault.
	Dropped    int `json:"dropped"`
	Delayed    int `json:"delayed"`
	Duplicated int `json:"duplicated"`
	Reordered  int `json:"reordered"`
}

// Stats returns the counts so far. Safe for concurrent use.
func (s *Simulator) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.stats
	out.CreatesByKey = maps.Clone(s.stats.CreatesByKey)
	out.Injected = maps.Clone(s.stats.Injected)
	out.Jobs = map[string]int{}
	for _, j := range s.jobs {
		out.Jobs[string(j.phase)]++
	}
	return out
}
