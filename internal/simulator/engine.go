package simulator

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Run moves jobs and sends webhooks until ctx ends. It then stops moving jobs,
// lets the messages that are due go out for at most two webhook time-outs, ends
// every hanging call and returns nil. It may be called once.
func (s *Simulator) Run(ctx context.Context) error {
	s.mu.Lock()
	if s.started {
		s.mu.Unlock()
		return errors.New("simulator: Run was called before")
	}
	s.started = true
	s.mu.Unlock()

	sending, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	var workers sync.WaitGroup
	for range s.cfg.Workers {
		workers.Go(func() { s.work(sending) })
	}
	s.loop(ctx)
	drain := time.AfterFunc(2*s.cfg.WebhookTimeout, cancel)
	defer drain.Stop()
	close(s.stop)
	s.mu.Lock()
	s.closing = true
	s.ready.Broadcast()
	s.mu.Unlock()
	workers.Wait()
	s.client.CloseIdleConnections()
	return nil
}

// loop runs what is due and sleeps until the next event.
func (s *Simulator) loop(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		timer.Reset(s.runDue())
		select {
		case <-ctx.Done():
		case <-s.wake:
		case <-timer.C:
		}
	}
}

// dueBatch bounds how long one pass keeps the API waiting for the lock.
const dueBatch = 256

// runDue runs events that are due and tells how long to sleep.
func (s *Simulator) runDue() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	for range dueBatch {
		if len(s.events) == 0 {
			return time.Hour
		}
		if wait := s.events[0].at.Sub(s.now()); wait > 0 {
			return wait
		}
		s.runNext()
	}
	return 0
}

// catchUp runs everything that was due by now, so that a change from outside
// meets the state of its moment. Needs mu.
func (s *Simulator) catchUp(now time.Time) {
	for len(s.events) > 0 && !s.events[0].at.After(now) {
		s.runNext()
	}
}

// runNext runs the earliest event. Needs mu.
func (s *Simulator) runNext() {
	e := heap.Pop(&s.events).(timedEvent)
	e.do(e.at)
}

// take writes an order down and makes a job out of it. Needs mu.
func (s *Simulator) take(o *order, base string) (*job, error) {
	now := s.now()
	b := birthRecord{Seq: s.nextJob, Boot: s.boot, Call: s.stats.CreateCalls, Base: base}
	id := token(26, s.cfg.Seed, b.Boot, b.Seq)
	if o.dialect == openai {
		id = "video_" + id
	}
	if err := s.journal.append(o.record(id, now, b)); err != nil {
		return nil, err
	}
	s.nextJob++
	return s.accept(o, id, now, b), nil
}

// accept makes a job out of an order. Needs mu.
func (s *Simulator) accept(o *order, id string, now time.Time, b birthRecord) *job {
	seq := b.Seq
	j := &job{
		order: *o, id: id, seq: seq, salt: b.Boot, base: b.Base, phase: starting, created: now,
		ttl: s.cfg.OutputTTL, done: make(chan struct{}),
		video: mix(s.cfg.Seed, mixName("video"), seq),
	}
	j.rebase(s.cfg.PublicURL)
	if o.seed != nil {
		j.video = *o.seed
	}
	if o.sim.ttl != nil {
		j.ttl = *o.sim.ttl
	}
	s.drawQuirks(j, now)
	s.drawOutcome(j)
	j.run = s.span("run", seq, s.cfg.Run, o.sim.run)
	s.jobs[j.id] = j
	s.order = append(s.order, j)
	s.forget()
	s.stats.Creates++
	s.stats.CreatesByKey[o.key()]++
	s.at(now.Add(s.span("queue", seq, s.cfg.Queue, o.sim.queue)), j, func(at time.Time) { s.begin(j, at) })
	if s.hit(&j.sim, "instant_result", seq, 0) {
		s.begin(j, now)
		s.end(j, now)
	}
	return j
}

// hurry lets an early_callback strike: it starts a job, and ends it too if its
// client would hear nothing of the start. Needs mu.
func (s *Simulator) hurry(j *job, now time.Time) (struck bool) {
	if !s.hit(&j.sim, "early_callback", j.seq, 0) {
		return false
	}
	s.begin(j, now)
	if s.target(j, eventStart) == "" {
		s.end(j, now)
	}
	return true
}

// span is a duration with the job's jitter; what a job asks for is taken as it is.
func (s *Simulator) span(what string, seq uint64, base time.Duration, own *time.Duration) time.Duration {
	if own != nil {
		return *own
	}
	spread := 1 + s.cfg.Jitter*(2*s.draw(what, seq, 0)-1)
	return time.Duration(float64(base) * spread)
}

func (s *Simulator) drawQuirks(j *job, now time.Time) {
	hit := func(key string) bool { return s.hit(&j.sim, key, j.seq, 0) }
	j.quirks = quirks{
		muted: hit("webhooks_off"), contradict: hit("contradict"), emptyOutput: hit("empty_output"),
		unknownStatus: hit("unknown_status"), fineProgress: hit("fine_progress"),
		manyBars: hit("many_bars"), ignoreCancel: hit("ignore_cancel"),
	}
	if j.dialect == openai && hit("synonym_status") {
		j.quirks.synonyms = 1 + int(mix(s.cfg.Seed, j.seq)%uint64(len(gatewayWords)))
	}
	if hit("not_found") {
		j.quirks.hiddenUntil = now.Add(s.faultsFor(&j.sim, "not_found_for").duration("not_found_for"))
	}
}

func (s *Simulator) drawOutcome(j *job) {
	j.outcome = succeeded
	j.failKind = s.faultsFor(&j.sim, "fail_kind").FailKind
	if j.failKind == "" {
		j.failKind = failKinds[mix(s.cfg.Seed, mixName("fail_kind"), j.seq)%uint64(len(failKinds))]
	}
	switch {
	case s.hit(&j.sim, "fail", j.seq, 0):
		j.outcome = failed
	case s.hit(&j.sim, "abort", j.seq, 0):
		j.outcome = aborted
		if j.dialect == openai {
			j.outcome = failed
		}
	}
}

// forget drops the oldest finished jobs beyond the bound. A running job in
// front stops it: nothing the vendor still works on is lost. Needs mu.
func (s *Simulator) forget() {
	for len(s.jobs) > s.cfg.MaxJobs && s.order[0].phase.terminal() {
		delete(s.jobs, s.order[0].id)
		s.order[0] = nil
		s.order = s.order[1:]
	}
}

// begin takes a job out of the queue. Needs mu.
func (s *Simulator) begin(j *job, now time.Time) {
	if j.phase != starting {
		return
	}
	j.phase, j.started, j.endAt = processing, now, now.Add(j.run)
	if j.quirks.manyBars {
		j.logs.WriteString("Loading weights\n")
	}
	fmt.Fprintf(&j.logs, "Using seed: %d\n", j.video)
	j.advance(0, now)
	s.emit(j, eventStart, now)
	s.step(j, 1)
}

// step schedules the k-th look at a running job. Needs mu.
func (s *Simulator) step(j *job, k int) {
	every := max(s.cfg.ProgressEvery, j.run/20)
	if j.quirks.fineProgress {
		every = j.run / 100
	}
	when := j.started.Add(time.Duration(k) * every)
	if every == 0 || !when.Before(j.endAt) {
		s.at(j.endAt, j, func(at time.Time) { s.end(j, at) })
		return
	}
	percent := min(99, max(0, int(100*when.Sub(j.started)/j.run)))
	s.at(when, j, func(now time.Time) {
		if j.phase != processing {
			return
		}
		j.advance(percent, now)
		s.emit(j, eventLogs, now)
		s.step(j, k+1)
	})
}

// end brings a job to the outcome that was drawn for it. Needs mu.
func (s *Simulator) end(j *job, now time.Time) {
	if j.phase.terminal() {
		return
	}
	if !j.quirks.contradict {
		s.finish(j, j.outcome, now)
		return
	}
	truth, lie := j.outcome, failed
	if truth != succeeded {
		lie = succeeded
	}
	s.finish(j, lie, now)
	pause := s.faultsFor(&j.sim, "contradict_after").duration("contradict_after")
	s.at(now.Add(pause), j, func(at time.Time) { s.finish(j, truth, at) })
}

// finish makes a job terminal, or gives a terminal one another end. Needs mu.
func (s *Simulator) finish(j *job, p phase, now time.Time) {
	j.hasOutput = p == succeeded && !j.quirks.emptyOutput
	if j.hasOutput && !j.phase.terminal() {
		if j.started.IsZero() {
			j.started = now
		}
		j.phase = processing
		j.advance(100, now)
		s.emit(j, eventOutput, now)
	}
	first := !j.phase.terminal()
	j.phase, j.completed = p, now
	s.emit(j, eventCompleted, now)
	if first {
		close(j.done)
	}
}

// finishAs ends a job as somebody asked. Needs mu.
func (s *Simulator) finishAs(j *job, how finishRecord, now time.Time) {
	if how.Kind != "" {
		j.failKind = how.Kind
	}
	s.finish(j, how.Status, now)
}

// command writes down that somebody ends a job, and ends it. Needs mu, and that
// the engine has caught up with now.
func (s *Simulator) command(j *job, how finishRecord, now time.Time) error {
	if err := s.journal.append(record{Kind: recordFinish, At: now.UnixNano(), Job: j.id, Finish: &how}); err != nil {
		return err
	}
	s.finishAs(j, how, now)
	return nil
}
