package simulator

import (
	"container/heap"
	"fmt"
	"time"
)

// keepEnded is how long after its end a job stays in the journal.
const keepEnded = 24 * time.Hour

// open reads cfg.Journal, lives through what it tells and what time did since,
// and leaves a compacted file open for more. s.cfg has its defaults, except that
// a seed or a secret nobody configured comes from the journal.
func (s *Simulator) open(configured Config) error {
	records, cut, err := readJournal(s.cfg.Journal)
	if err != nil {
		return err
	}
	if cut {
		s.cfg.Logger.Warn("the journal's last line broke off and is left out", "file", s.cfg.Journal)
	}
	if len(records) > 0 {
		if err := s.adopt(records[0].Header, configured); err != nil {
			return fmt.Errorf("journal %s: %w", s.cfg.Journal, err)
		}
		s.replaying = true
		err := s.replay(records[1:])
		s.replaying = false
		if err != nil {
			return fmt.Errorf("journal %s: %w", s.cfg.Journal, err)
		}
	}
	now := s.now()
	s.catchUp(now)
	s.forgetEnded(now)
	s.resume()
	kept := append([]record{s.header()}, compact(records, s.jobs)...)
	s.journal, err = writeJournal(s.cfg.Journal, append(kept, s.settings(now)))
	return err
}

// adopt takes over what has to stay the same.
func (s *Simulator) adopt(h *headerRecord, configured Config) error {
	if configured.Seed != 0 && configured.Seed != h.Seed {
		return fmt.Errorf("its jobs were drawn with seed %d; give that seed or none, or name another file", h.Seed)
	}
	s.cfg.Seed, s.nextJob = h.Seed, h.Next
	if configured.WebhookSecret == "" {
		s.cfg.WebhookSecret = h.Secret
		s.secret, _ = decodeSecret(h.Secret) // checked when it was read
	}
	return nil
}

// replay lives through the records. What happens in between is derived: events
// run at the time they were planned for, so every job, message and draw comes out
// as it did before. It ends with the settings of this start in force.
func (s *Simulator) replay(records []record) error {
	today, faults := s.cfg, s.faults
	for i := range records {
		r := &records[i]
		s.catchUp(r.when())
		if err := s.relive(r); err != nil {
			return err
		}
	}
	s.catchUp(s.now())
	s.cfg.Queue, s.cfg.Run, s.cfg.Jitter = today.Queue, today.Run, today.Jitter
	s.cfg.OutputTTL, s.cfg.ProgressEvery, s.cfg.RetryBase = today.OutputTTL, today.ProgressEvery, today.RetryBase
	s.cfg.OpenAIWebhookURL, s.faults = today.OpenAIWebhookURL, faults
	return nil
}

// relive applies one record. A job that is not known was forgotten meanwhile.
func (s *Simulator) relive(r *record) error {
	j := s.jobs[r.Job]
	switch r.Kind {
	case recordSettings:
		s.apply(r.Settings)
	case recordCreate:
		o, err := r.Create.orderOf()
		if err != nil {
			return fmt.Errorf("job %s: %w", r.Job, err)
		}
		b := r.Create.birthRecord
		s.nextJob = max(s.nextJob, b.Seq+1)
		s.stats.CreateCalls = max(s.stats.CreateCalls, b.Call)
		s.hurry(s.accept(o, r.Job, r.when(), b), r.when())
	case recordFinish:
		if j != nil {
			s.finishAs(j, *r.Finish, r.when())
		}
	case recordDelete:
		if j != nil {
			j.deleted = true
		}
	case recordAttempt:
		if j != nil {
			s.reattempt(j, *r.Attempt, r.when())
		}
	}
	return nil
}

// apply puts recorded settings in force.
func (s *Simulator) apply(in *settingsRecord) {
	s.cfg.Queue, s.cfg.Run, s.cfg.Jitter = in.Queue, in.Run, in.Jitter
	s.cfg.OutputTTL, s.cfg.ProgressEvery, s.cfg.RetryBase = in.OutputTTL, in.ProgressEvery, in.RetryBase
	s.cfg.OpenAIWebhookURL, s.faults = in.OpenAIWebhook, in.Faults
}

// reattempt counts a recorded try of a message that is waiting to be sent.
func (s *Simulator) reattempt(j *job, a attemptRecord, at time.Time) {
	for i, m := range j.outbox {
		if m.n != a.Message || m.part != a.Part {
			continue
		}
		j.outbox = append(j.outbox[:i:i], j.outbox[i+1:]...)
		s.attempted(m, a.OK, at)
		return
	}
}

// forgetEnded drops the jobs that ended long ago.
func (s *Simulator) forgetEnded(now time.Time) {
	kept := s.order[:0:0]
	for _, j := range s.order {
		if j.phase.terminal() && now.Sub(j.completed) > keepEnded {
			delete(s.jobs, j.id)
			continue
		}
		kept = append(kept, j)
	}
	s.order = kept
	alive := s.events[:0:0]
	for _, e := range s.events {
		if s.jobs[e.job.id] == e.job {
			alive = append(alive, e)
		}
	}
	s.events = alive
	heap.Init(&s.events)
}

// resume lines up the messages that are due; nobody sends during a replay.
func (s *Simulator) resume() {
	s.sendq = nil
	for _, j := range s.order {
		j.early = nil
		if j.sending = len(j.outbox) > 0; j.sending {
			s.sendq = append(s.sendq, j)
		}
	}
}

// header is the journal's first line, now.
func (s *Simulator) header() record {
	return record{Kind: recordJournal, Header: &headerRecord{
		Version: journalVersion, Seed: s.cfg.Seed, Secret: s.cfg.WebhookSecret, Next: s.nextJob,
	}}
}

// settings is a line with what is in force. Needs mu.
func (s *Simulator) settings(now time.Time) record {
	return record{Kind: recordSettings, At: now.UnixNano(), Settings: &settingsRecord{
		Queue: s.cfg.Queue, Run: s.cfg.Run, Jitter: s.cfg.Jitter, OutputTTL: s.cfg.OutputTTL,
		ProgressEvery: s.cfg.ProgressEvery, RetryBase: s.cfg.RetryBase,
		OpenAIWebhook: s.cfg.OpenAIWebhookURL, Faults: s.faults,
	}}
}

// compact leaves out the jobs that are not in keep, and settings that were
// replaced before the first kept job came.
func compact(records []record, keep map[string]*job) []record {
	var out []record
	var settings *record
	for i := range records {
		r := &records[i]
		switch {
		case r.Kind == recordSettings && len(out) == 0:
			settings = r
		case r.Kind == recordSettings:
			out = append(out, *r)
		case keep[r.Job] != nil:
			if len(out) == 0 && settings != nil {
				out = append(out, *settings)
			}
			out = append(out, *r)
		}
	}
	return out
}
