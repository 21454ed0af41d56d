package simulator

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// JobInfo is a job as the control routes show it.
type JobInfo struct {
	ID     string `json:"id"`
	Vendor string `json:"vendor"` // replicate or openai
	Key    string `json:"key"`    // see Stats.CreatesByKey
	Model  string `json:"model"`
	// Status is in Replicate's words for both shapes.
	Status string `json:"status"`
	// Progress is a percentage.
	Progress int `json:"progress"`
	// Seed makes the output: Video(Seed) are the bytes that were served.
	Seed        uint64     `json:"seed"`
	HasOutput   bool       `json:"has_output"`
	Queries     uint64     `json:"queries"`
	Messages    uint64     `json:"messages"`
	Webhook     string     `json:"webhook,omitempty"`
	CreatedAt   time.Time  `json:"created_at"`
	CompletedAt *time.Time `json:"completed_at"`
}

// Jobs returns up to limit jobs, the newest first; 0 means all.
func (s *Simulator) Jobs(limit int) []JobInfo {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := []JobInfo{}
	for i := len(s.order) - 1; i >= 0 && (limit == 0 || len(out) < limit); i-- {
		out = append(out, s.order[i].info())
	}
	return out
}

// Job returns one job and whether it is known.
func (s *Simulator) Job(id string) (JobInfo, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	j, ok := s.jobs[id]
	if !ok {
		return JobInfo{}, false
	}
	return j.info(), true
}

func (j *job) info() JobInfo {
	out := JobInfo{
		ID: j.id, Vendor: string(j.dialect), Key: j.key(), Model: j.model, Status: string(j.phase),
		Progress: j.progress, Seed: j.video, HasOutput: j.hasOutput, Queries: j.queries,
		Messages: j.messages, Webhook: j.webhook, CreatedAt: j.created,
	}
	if !j.completed.IsZero() {
		at := j.completed
		out.CompletedAt = &at
	}
	return out
}

func (s *Simulator) controlRoutes(mux *http.ServeMux) {
	mux.Handle("GET /_sim/stats", s.guard(replicate, func(c call) { writeJSON(c, s.Stats()) }))
	mux.Handle("GET /_sim/faults", s.guard(replicate, func(c call) { writeJSON(c, s.Faults()) }))
	mux.Handle("POST /_sim/faults", s.guard(replicate, s.changeFaults))
	mux.Handle("GET /_sim/quota", s.guard(replicate, s.tellQuota))
	mux.Handle("POST /_sim/quota", s.guard(replicate, s.changeQuota))
	mux.Handle("GET /_sim/queries", s.guard(replicate, s.listQueries))
	mux.Handle("GET /_sim/jobs", s.guard(replicate, s.listJobs))
	mux.Handle("POST /_sim/jobs/{id}/finish", s.guard(replicate, s.finishJob))
}

func writeJSON(c call, v any) {
	body, err := json.MarshalIndent(v, "", "  ")
	if err != nil { // only plain data is passed here
		panic(err)
	}
	writeBody(c.w, http.StatusOK, "application/json", append(body, '\n'))
}

// changeFaults merges the given keys into the faults in force; ?reset=true
// starts from none.
func (s *Simulator) changeFaults(c call) {
	body, p := readBody(c, maxReplicateBody)
	if p != nil {
		c.fail(p)
		return
	}
	s.mu.Lock()
	next := s.faults
	if c.r.URL.Query().Get("reset") == "true" {
		next = Faults{}
	}
	err := json.Unmarshal(body, &next)
	var unwritten error
	if err == nil {
		unwritten = s.setFaults(next)
	}
	s.mu.Unlock()
	if unwritten != nil {
		s.unwritten(c, unwritten)
		return
	}
	if err != nil {
		c.fail(&problem{status: http.StatusBadRequest, title: "Bad faults", detail: err.Error()})
		return
	}
	writeJSON(c, next)
}

func (s *Simulator) listJobs(c call) {
	limit := 100
	if text := c.r.URL.Query().Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			c.fail(&problem{status: http.StatusBadRequest, title: "Bad limit", detail: "limit: want 0 (all) or more."})
			return
		}
		limit = n
	}
	writeJSON(c, map[string]any{"jobs": s.Jobs(limit)})
}

// finishJob ends a job of either dialect at once, by default in success; on a
// terminal job it makes the vendor change its mind.
func (s *Simulator) finishJob(c call) {
	body, p := readBody(c, maxReplicateBody)
	in := struct {
		Status phase  `json:"status"`
		Kind   string `json:"fail_kind"`
	}{Status: succeeded}
	if p == nil && len(body) > 0 && json.Unmarshal(body, &in) != nil {
		p = &problem{status: http.StatusBadRequest, detail: "Want an object with status and fail_kind."}
	}
	if p == nil {
		if !slices.Contains(endings, in.Status) {
			p = invalid("status", "want succeeded, failed, canceled or aborted")
		}
	}
	if p == nil && (Faults{FailKind: in.Kind}).Validate() != nil {
		p = invalid("fail_kind", "want moderation, unavailable or text")
	}
	if p != nil {
		c.fail(p)
		return
	}
	s.mu.Lock()
	j := s.jobs[c.r.PathValue("id")]
	var info JobInfo
	var err error
	if j != nil {
		now := s.now()
		s.catchUp(now)
		err = s.command(j, finishRecord{Status: in.Status, Kind: in.Kind}, now)
		info = j.info()
	}
	s.mu.Unlock()
	switch {
	case j == nil:
		c.fail(notFound())
	case err != nil:
		s.unwritten(c, err)
	default:
		writeJSON(c, info)
	}
}
