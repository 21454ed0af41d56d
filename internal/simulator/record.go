package simulator

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// recordKind says what a line of the journal tells.
type recordKind string

const (
	recordJournal  recordKind = "journal"  // the first line: what the file is
	recordSettings recordKind = "settings" // a start, or new faults
	recordCreate   recordKind = "create"
	recordFinish   recordKind = "finish" // by a cancel or by the control route
	recordDelete   recordKind = "delete"
	recordAttempt  recordKind = "attempt" // a webhook was tried
)

// journalVersion is the form of the lines below.
const journalVersion = 1

// record is one line of the journal. Everything else about a job follows from
// these and from the time, see Simulator.replay.
type record struct {
	Kind recordKind `json:"kind"`
	// At is when it happened, in nanoseconds since 1970; zero in the first line.
	At  int64  `json:"at,omitempty"`
	Job string `json:"job,omitempty"`

	Header   *headerRecord   `json:"header,omitempty"`
	Settings *settingsRecord `json:"settings,omitempty"`
	Create   *createRecord   `json:"create,omitempty"`
	Finish   *finishRecord   `json:"finish,omitempty"`
	Attempt  *attemptRecord  `json:"attempt,omitempty"`

	raw []byte // the line as it was read, without its end
}

// headerRecord is what has to stay the same from start to start.
type headerRecord struct {
	Version int    `json:"version"`
	Seed    uint64 `json:"seed"`
	Secret  string `json:"secret"`
	// Next is the number of the next job, at the time of the last compaction.
	Next uint64 `json:"next"`
}

// settingsRecord is what jobs and messages depend on from its time on.
// Durations are nanoseconds.
type settingsRecord struct {
	Queue         time.Duration `json:"queue"`
	Run           time.Duration `json:"run"`
	Jitter        float64       `json:"jitter"`
	OutputTTL     time.Duration `json:"output_ttl"`
	ProgressEvery time.Duration `json:"progress_every"`
	RetryBase     time.Duration `json:"retry_base"`
	OpenAIWebhook string        `json:"openai_webhook"`
	Faults        Faults        `json:"faults"`
}

// createRecord is an accepted order.
type createRecord struct {
	birthRecord
	Dialect        dialect         `json:"dialect"`
	Model          string          `json:"model"`
	Version        string          `json:"version,omitempty"`
	Input          json.RawMessage `json:"input,omitempty"`
	Prompt         string          `json:"prompt,omitempty"`
	Seconds        string          `json:"seconds,omitempty"`
	Size           string          `json:"size,omitempty"`
	Seed           *uint64         `json:"video_seed,omitempty"`
	Webhook        string          `json:"webhook,omitempty"`
	Events         []event         `json:"events,omitempty"`
	IdempotencyKey string          `json:"idempotency_key,omitempty"`
	Sim            json.RawMessage `json:"sim,omitempty"`
}

// birthRecord is what a job gets from the simulator rather than from its order.
type birthRecord struct {
	Seq  uint64 `json:"seq"`  // number of acceptance
	Boot uint64 `json:"boot"` // the start it was accepted in
	Call int    `json:"call"` // number of the create call
	Base string `json:"base"` // public base URL
}

type finishRecord struct {
	Status phase  `json:"status"`
	Kind   string `json:"fail_kind,omitempty"`
}

// attemptRecord names a message by its number and part within the job.
type attemptRecord struct {
	Message uint64 `json:"message"`
	Part    part   `json:"part"`
	OK      bool   `json:"ok"`
}

// when is the record's time.
func (r *record) when() time.Time { return time.Unix(0, r.At) }

// orderOf reads the order back. What a job asked for itself is parsed again
// from the prompt and the object it came with.
func (c *createRecord) orderOf() (*order, error) {
	sim, err := parseDirective(c.Prompt, c.Sim)
	if err != nil {
		return nil, err
	}
	return &order{
		dialect: c.Dialect, model: c.Model, version: c.Version, input: c.Input, prompt: c.Prompt,
		seconds: c.Seconds, size: c.Size, seed: c.Seed, webhook: c.Webhook, events: c.Events,
		idempotencyKey: c.IdempotencyKey, own: c.Sim, sim: sim,
	}, nil
}

// record is the line that tells of an accepted order.
func (o *order) record(id string, at time.Time, b birthRecord) record {
	return record{Kind: recordCreate, At: at.UnixNano(), Job: id, Create: &createRecord{
		birthRecord: b, Dialect: o.dialect, Model: o.model, Version: o.version, Input: o.input, Prompt: o.prompt,
		Seconds: o.seconds, Size: o.size, Seed: o.seed, Webhook: o.webhook, Events: o.events,
		IdempotencyKey: o.idempotencyKey, Sim: o.own,
	}}
}

// parseJournal reads a whole journal. cut tells that the last line broke off,
// as a kill in the middle of a write leaves it; that line is left out. Any other
// damage is an error that names the line. Empty data is an empty journal.
func parseJournal(data []byte) (records []record, cut bool, err error) {
	known := map[string]bool{}
	for n := 1; len(data) > 0; n++ {
		line, rest, ended := bytes.Cut(data, []byte("\n"))
		data = rest
		r, err := parseRecord(line, n == 1, known)
		switch {
		case err != nil && !ended && len(rest) == 0:
			return records, true, nil
		case err != nil:
			return nil, false, fmt.Errorf("line %d: %w", n, err)
		}
		records = append(records, r)
	}
	return records, false, nil
}

// parseRecord reads and checks one line; known collects the jobs made so far.
func parseRecord(line []byte, first bool, known map[string]bool) (record, error) {
	var r record
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&r); err != nil {
		return r, fmt.Errorf("no record: %w", err)
	}
	if len(bytes.TrimSpace(line[dec.InputOffset():])) > 0 {
		return r, errors.New("more than one record")
	}
	if first != (r.Kind == recordJournal) {
		return r, fmt.Errorf("a record of kind %q is not expected here", r.Kind)
	}
	if err := r.check(known); err != nil {
		return r, fmt.Errorf("%s: %w", r.Kind, err)
	}
	r.raw = line
	return r, nil
}

// check refuses what no simulator writes.
func (r *record) check(known map[string]bool) error {
	switch r.Kind {
	case recordJournal:
		return r.Header.check()
	case recordSettings:
		return r.Settings.check()
	case recordCreate:
		if r.Create == nil || r.Job == "" {
			return errors.New("incomplete")
		}
		if known[r.Job] {
			return fmt.Errorf("job %s a second time", r.Job)
		}
		known[r.Job] = true
		return r.Create.check()
	case recordFinish:
		if r.Finish == nil || !slices.Contains(endings, r.Finish.Status) {
			return errors.New("no ending")
		}
		return Faults{FailKind: r.Finish.Kind}.Validate()
	case recordAttempt:
		if r.Attempt == nil {
			return errors.New("incomplete")
		}
	case recordDelete:
	default:
		return errors.New("unknown, perhaps a newer version's")
	}
	return nil
}

func (h *headerRecord) check() error {
	switch {
	case h == nil || h.Seed == 0:
		return errors.New("incomplete")
	case h.Version != journalVersion:
		return fmt.Errorf("version %d, this program reads %d", h.Version, journalVersion)
	}
	_, err := decodeSecret(h.Secret)
	return err
}

// longest bounds every duration somebody asks for, so that sums of them cannot
// overflow.
const longest = 366 * 24 * time.Hour

func (s *settingsRecord) check() error {
	if s == nil {
		return errors.New("incomplete")
	}
	if !(s.Jitter >= 0 && s.Jitter < 1) {
		return fmt.Errorf("jitter %v", s.Jitter)
	}
	durations := map[string]time.Duration{
		"queue": s.Queue, "run": s.Run, "output_ttl": s.OutputTTL, "progress_every": s.ProgressEvery, "retry_base": s.RetryBase,
	}
	for _, name := range slices.Sorted(maps.Keys(durations)) {
		if d := durations[name]; d < 0 || d > longest {
			return fmt.Errorf("%s: %v is not from 0 to %v", name, d, longest)
		}
	}
	return nil
}

func (c *createRecord) check() error {
	if c.Dialect != replicate && c.Dialect != openai {
		return fmt.Errorf("vendor %q", c.Dialect)
	}
	if c.Dialect == replicate && (len(c.Input) == 0 || c.Input[0] != '{') {
		return errors.New("no input")
	}
	for _, ev := range c.Events {
		if !slices.Contains(allEvents, ev) {
			return fmt.Errorf("event %q", ev)
		}
	}
	_, err := c.orderOf()
	return err
}
