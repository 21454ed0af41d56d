package simulator

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"
)

// dialect is the wire shape a job was created in.
type dialect string

const (
	replicate dialect = "replicate"
	openai    dialect = "openai"
)

// phase is the life of a job, in Replicate's words.
type phase string

const (
	starting   phase = "starting"
	processing phase = "processing"
	succeeded  phase = "succeeded"
	failed     phase = "failed"
	canceled   phase = "canceled"
	aborted    phase = "aborted"
)

// endings are the terminal phases.
var endings = []phase{succeeded, failed, canceled, aborted}

func (p phase) terminal() bool { return p != starting && p != processing }

// order is a well-formed create in either dialect.
type order struct {
	dialect        dialect
	model, version string
	// input is Replicate's object, echoed as it came; nil in OpenAI's dialect.
	input                 json.RawMessage
	prompt, seconds, size string
	seed                  *uint64
	webhook               string
	events                []event
	idempotencyKey        string
	own                   json.RawMessage // the sim object as it came
	sim                   directive       // what it and the prompt ask for
}

// key is the client's own name for the job, see Stats.CreatesByKey.
func (o *order) key() string {
	for _, k := range []string{o.sim.key, o.idempotencyKey, o.webhook} {
		if k != "" {
			return k
		}
	}
	return "prompt:" + o.prompt
}

// job is one accepted order. All fields are guarded by Simulator.mu; order and
// what is above the blank line never change after the job was made.
type job struct {
	order
	id       string
	seq      uint64 // number of acceptance, the job's part of every draw
	salt     uint64 // keeps its message ids apart from those of other starts
	video    uint64 // seed of the output
	base     string // public base URL at the time of the create
	run      time.Duration
	ttl      time.Duration
	outcome  phase
	failKind string
	quirks   quirks

	phase     phase
	created   time.Time
	started   time.Time
	completed time.Time
	endAt     time.Time
	progress  int
	logs      strings.Builder
	hasOutput bool
	deleted   bool

	queries  uint64
	messages uint64
	outbox   []*message
	held     []*message
	sending  bool
	early    chan struct{} // closed after the first delivery attempt; nil if nobody waits
	done     chan struct{} // closed when the job is first terminal
}

// quirks are the faults drawn once, when a job is accepted.
type quirks struct {
	muted, contradict, emptyOutput bool
	unknownStatus, fineProgress    bool
	manyBars, ignoreCancel         bool
	synonyms                       int // 0 none, else one of the word lists
	hiddenUntil                    time.Time
}

// rebase moves the job's addresses to where the vendor is found now, unless
// base is empty. Its messages then say something else, so they get other ids.
func (j *job) rebase(base string) {
	base = strings.TrimSuffix(base, "/")
	if base == "" || base == j.base {
		return
	}
	j.base, j.salt = base, mix(j.salt, mixName(base))
}

// expired tells whether the output can no longer be had.
func (j *job) expired(now time.Time) bool {
	return !j.completed.IsZero() && !now.Before(j.completed.Add(j.ttl))
}

// outputURL is where Replicate's file lies.
func (j *job) outputURL() string { return j.base + "/files/" + j.id + "/out.mp4" }

// advance writes the log up to percent p, in the shape of tqdm's bars.
func (j *job) advance(p int, now time.Time) {
	if p <= j.progress && p > 0 {
		return
	}
	j.progress = p
	shown := p
	if j.quirks.manyBars {
		shown = p * 2
		if p > 50 {
			shown = (p - 50) * 2
		}
	}
	spent := max(now.Sub(j.started), time.Millisecond)
	j.logs.WriteString(bar(shown, spent))
}

const barSteps = 50

// bar draws one line as the tqdm library would.
func bar(percent int, spent time.Duration) string {
	step := percent * barSteps / 100
	left := time.Duration(0)
	if step > 0 {
		left = spent * time.Duration(barSteps-step) / time.Duration(step)
	}
	var b strings.Builder
	b.WriteString(strings.Repeat(" ", max(0, 3-len(strconv.Itoa(percent)))))
	b.WriteString(strconv.Itoa(percent))
	b.WriteString("%|")
	b.WriteString(strings.Repeat("█", percent/10))
	b.WriteString(strings.Repeat(" ", 10-percent/10))
	b.WriteString("| ")
	b.WriteString(strconv.Itoa(step) + "/" + strconv.Itoa(barSteps))
	b.WriteString(" [" + clock(spent) + "<" + clock(left) + ", ")
	b.WriteString(strconv.FormatFloat(float64(step)/spent.Seconds(), 'f', 2, 64))
	b.WriteString("it/s]\n")
	return b.String()
}

func clock(d time.Duration) string {
	n := int(d.Seconds())
	return pad(n/60) + ":" + pad(n%60)
}

func pad(n int) string {
	if n < 10 {
		return "0" + strconv.Itoa(n)
	}
	return strconv.Itoa(n)
}

// failure is the vendor's error for a failed job: a code for OpenAI's shape
// and the text of Replicate's error field.
func (j *job) failure() (code, text string) {
	switch j.failKind {
	case failModeration:
		return "moderation_blocked", "The prompt or the output was flagged as sensitive. Try another prompt. (E005)"
	case failUnavailable:
		return "server_error", "The service is unavailable at the moment. (E003)"
	default:
		return "video_generation_failed", "RuntimeError: sampler diverged at step 31"
	}
}
