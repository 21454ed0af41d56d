package simulator

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"
)

// event is a kind of webhook, in the words of Replicate's filter.
type event string

const (
	eventStart     event = "start"
	eventOutput    event = "output"
	eventLogs      event = "logs"
	eventCompleted event = "completed"
)

// message is one webhook on its way. It is guarded by Simulator.mu, except
// that the worker that took it reads it freely.
type message struct {
	job      *job
	n        uint64 // number within the job
	part     part
	id       string
	url      string
	body     []byte
	retry    bool // only terminal events are sent again
	wrongKey bool
	stale    bool
	first    time.Time // of the first attempt
	attempts int
}

// part tells apart the messages that one event can give rise to.
type part uint8

const (
	partMain    part = iota
	partTwin         // duplicate_webhook
	partNewID        // duplicate_webhook_new_id
	partOlder        // reorder_webhook, after a terminal
	partForeign      // foreign_event
)

// emit gives rise to the webhook for an event, and to what faults make of it.
// The body is the job as it is now, however late it is sent. Needs mu.
func (s *Simulator) emit(j *job, ev event, now time.Time) {
	target := s.target(j, ev)
	if target == "" {
		return
	}
	n := j.messages
	j.messages++
	if j.quirks.muted {
		s.stats.Webhooks.Muted++
		return
	}
	s.stats.Webhooks.Emitted++
	hit := func(key string) bool { return s.hit(&j.sim, key, j.seq, n) }
	if j.dialect == openai && hit("foreign_event") {
		s.enqueue(s.foreign(j, n, target, now))
	}
	dropped := hit("drop_webhook")
	reorder := !dropped && hit("reorder_webhook")
	switch {
	case dropped:
		s.stats.Webhooks.Dropped++
	case reorder && j.dialect == replicate && ev != eventCompleted:
		s.stats.Webhooks.Reordered++
		j.held = append(j.held, s.compose(j, ev, n, target, now)...)
		return
	default:
		if reorder {
			s.stats.Webhooks.Reordered++
		}
		out := s.compose(j, ev, n, target, now)
		if late := hit("delay_webhook"); late || reorder && j.dialect == openai {
			s.postpone(j, out, n, now)
		} else {
			s.enqueue(out...)
		}
		if reorder && j.dialect == replicate {
			s.enqueue(s.older(j, n, target, now))
		}
	}
	s.enqueue(j.held...)
	j.held = nil
}

// target is the address an event goes to; empty when nobody asked for it.
func (s *Simulator) target(j *job, ev event) string {
	if j.dialect == openai {
		if ev != eventCompleted {
			return ""
		}
		return s.cfg.OpenAIWebhookURL
	}
	for _, want := range j.events {
		if want == ev {
			return j.webhook
		}
	}
	return ""
}

// compose writes a message and its duplicates.
func (s *Simulator) compose(j *job, ev event, n uint64, target string, now time.Time) []*message {
	hit := func(key string) bool { return s.hit(&j.sim, key, j.seq, n) }
	m := message{job: j, n: n, part: partMain, id: s.messageID(j, n, 0), url: target, retry: ev == eventCompleted}
	m.body = s.webhookBody(j, n, now)
	if hit("malformed_webhook") {
		m.body = m.body[:len(m.body)/2]
	}
	m.wrongKey, m.stale = hit("bad_signature"), hit("stale_webhook")
	out := []*message{&m}
	if hit("duplicate_webhook") {
		s.stats.Webhooks.Duplicated++
		twin := m
		twin.part = partTwin
		out = append(out, &twin)
	}
	if hit("duplicate_webhook_new_id") {
		s.stats.Webhooks.Duplicated++
		twin := m
		twin.part, twin.id = partNewID, s.messageID(j, n, 1)
		out = append(out, &twin)
	}
	return out
}

// older is a message that tells of a terminal job what it was before.
func (s *Simulator) older(j *job, n uint64, target string, now time.Time) *message {
	past := j.view()
	past.phase, past.completed, past.hasOutput = processing, time.Time{}, false
	return &message{job: j, n: n, part: partOlder, id: s.messageID(j, n, 2), url: target, body: past.prediction(now)}
}

func (s *Simulator) messageID(j *job, n, copy uint64) string {
	prefix := "msg_"
	if j.dialect == openai {
		prefix = "wh_"
	}
	return prefix + token(24, s.cfg.Seed, j.salt, j.seq, n, copy)
}

// webhookBody is the whole prediction for Replicate, a thin event for OpenAI.
func (s *Simulator) webhookBody(j *job, n uint64, now time.Time) []byte {
	if j.dialect == replicate {
		return j.view().prediction(now)
	}
	kind := "video.failed"
	if j.phase == succeeded {
		kind = "video.completed"
	}
	return thinEvent(token(24, s.cfg.Seed, j.salt, j.seq, n, 3), kind, j.id, now)
}

func thinEvent(token, kind, subject string, now time.Time) []byte {
	body, _ := json.Marshal(struct { // strings and integers always marshal
		Object    string            `json:"object"`
		ID        string            `json:"id"`
		Type      string            `json:"type"`
		CreatedAt int64             `json:"created_at"`
		Data      map[string]string `json:"data"`
	}{"event", "evt_" + token, kind, now.Unix(), map[string]string{"id": subject}})
	return body
}

// foreign is an event about something that is no video: one endpoint gets all
// that its project subscribed to.
func (s *Simulator) foreign(j *job, n uint64, target string, now time.Time) *message {
	name := token(24, s.cfg.Seed, j.salt, j.seq, n, 4)
	return &message{
		job: j, n: n, part: partForeign, id: s.messageID(j, n, 5), url: target,
		body: thinEvent(name, "response.completed", "resp_"+name, now),
	}
}

func (s *Simulator) postpone(j *job, out []*message, n uint64, now time.Time) {
	s.stats.Webhooks.Delayed++
	delay := s.faultsFor(&j.sim, "delay_for").duration("delay_for")
	spread := 0.5 + s.draw("delay_for", j.seq, n)
	s.at(now.Add(time.Duration(float64(delay)*spread)), j, func(time.Time) { s.enqueue(out...) })
}

// enqueue hands messages to the workers. Messages of one job go out one after
// the other, so without faults a client sees them in order. Needs mu.
func (s *Simulator) enqueue(out ...*message) {
	for _, m := range out {
		j := m.job
		j.outbox = append(j.outbox, m)
		if !j.sending {
			j.sending = true
			s.sendq = append(s.sendq, j)
			s.ready.Signal()
		}
	}
}

// work sends messages until the simulator closes and nothing is due.
func (s *Simulator) work(ctx context.Context) {
	for {
		s.mu.Lock()
		for len(s.sendq) == 0 && !s.closing {
			s.ready.Wait()
		}
		if len(s.sendq) == 0 || ctx.Err() != nil {
			s.mu.Unlock()
			return
		}
		j := s.sendq[0]
		s.sendq[0], s.sendq = nil, s.sendq[1:]
		m := j.outbox[0]
		j.outbox[0], j.outbox = nil, j.outbox[1:]
		s.mu.Unlock()

		err := s.send(ctx, m)
		s.mu.Lock()
		s.settle(m, err)
		s.mu.Unlock()
	}
}

// send makes one attempt. Any answer but 2xx is an error, redirects included.
func (s *Simulator) send(ctx context.Context, m *message) error {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.WebhookTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.address(m), bytes.NewReader(m.body))
	if err != nil {
		return fmt.Errorf("webhook: %w", err)
	}
	at, key := s.cfg.Now(), s.secret
	if m.stale {
		at = at.Add(-10 * time.Minute)
	}
	if m.wrongKey {
		key = append([]byte("wrong"), key...)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "aivedio-simulator")
	req.Header.Set("Webhook-Id", m.id)
	req.Header.Set("Webhook-Timestamp", strconv.FormatInt(at.Unix(), 10))
	req.Header.Set("Webhook-Signature", signWith(key, m.id, at, m.body))
	resp, err := s.client.Do(req)
	if err != nil {
		return fmt.Errorf("webhook: %w", err)
	}
	defer resp.Body.Close()
	// Reading a little lets the connection be used again.
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10))
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("webhook: status %d", resp.StatusCode)
	}
	return nil
}

// address is where a message goes. The account's endpoint is the one of today,
// even for a message that is older than this start.
func (s *Simulator) address(m *message) string {
	if m.job.dialect == openai {
		return s.cfg.OpenAIWebhookURL
	}
	return m.url
}

// settle counts an attempt, plans the next one and lets the job send on. Needs mu.
func (s *Simulator) settle(m *message, err error) {
	now, j := s.now(), m.job
	tried := attemptRecord{Message: m.n, Part: m.part, OK: err == nil}
	if err := s.journal.append(record{Kind: recordAttempt, At: now.UnixNano(), Job: j.id, Attempt: &tried}); err != nil {
		// After a restart the message is sent again, which vendors do, too.
		s.cfg.Logger.Warn("a webhook's attempt is not in the journal", "job", j.id, "message", m.id, "error", err)
	}
	s.attempted(m, err == nil, now)
	if j.early != nil {
		close(j.early)
		j.early = nil
	}
	j.sending = len(j.outbox) > 0
	if j.sending {
		s.sendq = append(s.sendq, j)
		s.ready.Signal()
	}
}

// attempted counts an attempt and plans the next one after a failure. Needs mu.
func (s *Simulator) attempted(m *message, ok bool, now time.Time) {
	s.stats.Webhooks.Attempts++
	m.attempts++
	if m.first.IsZero() {
		m.first = now
	}
	if ok {
		s.stats.Webhooks.Delivered++
		return
	}
	s.stats.Webhooks.Failed++
	s.again(m, now)
}

// again schedules another attempt while the vendor's patience lasts: for
// Replicate six, the last about 63 times the base after the first; for OpenAI
// until 72 hours have passed. Needs mu.
func (s *Simulator) again(m *message, now time.Time) {
	wait := s.cfg.RetryBase << min(m.attempts-1, 20)
	patience := m.attempts <= 6
	if m.job.dialect == openai {
		wait = min(wait, time.Hour)
		patience = now.Sub(m.first) < 72*time.Hour
	}
	if !m.retry || !patience {
		s.stats.Webhooks.GivenUp++
		if !s.replaying { // it was said when it happened
			s.cfg.Logger.Warn("webhook given up", "job", m.job.id, "message", m.id, "attempts", m.attempts)
		}
		return
	}
	s.at(now.Add(wait), m.job, func(time.Time) { s.enqueue(m) })
}
