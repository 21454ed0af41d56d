package simulator

import (
	"container/heap"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// Simulator is the vendor: an http.Handler for its API and an engine, Run, that
// moves jobs and sends webhooks. All methods are safe for concurrent use.
type Simulator struct {
	cfg    Config
	secret []byte
	client *http.Client
	mux    *http.ServeMux
	boot   uint64        // start time, keeps ids apart across restarts
	stop   chan struct{} // closed when Run ends: nothing hangs longer than that
	wake   chan struct{} // the earliest event changed

	mu      sync.Mutex
	started bool
	closing bool
	ready   *sync.Cond // jobs with something to send, or closing
	sendq   []*job
	events  eventHeap
	nextEv  uint64
	faults  Faults
	jobs    map[string]*job
	order   []*job // by acceptance, for forgetting the oldest
	nextJob uint64
	stats   Stats
	journal *journal // nil without Config.Journal
	quota   Quota
	// accounts are those that called, by name; only keys that the configuration
	// accepts make one.
	accounts map[string]*account
	queried  queryLog

	replaying bool // Open lives through the journal
}

var _ http.Handler = (*Simulator)(nil)

// New is Open for configurations that are known to be good: it panics where
// Open reports an error.
func New(cfg Config) *Simulator {
	s, err := Open(cfg)
	if err != nil {
		panic(err)
	}
	return s
}

// Open makes a simulator; it does nothing by itself until Run. With a
// Config.Journal it knows every job of the runs before, as far as time and the
// journal have brought them; the caller then ends it with Close. The error tells
// what Validate found, or why the journal cannot be used and what to do.
func Open(cfg Config) (*Simulator, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("simulator: %w", err)
	}
	configured := cfg
	cfg = cfg.WithDefaults()
	client := *cfg.Client
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	key, _ := decodeSecret(cfg.WebhookSecret) // validated above
	s := &Simulator{
		cfg: cfg, secret: key, client: &client,
		boot: uint64(cfg.Now().UnixNano()),
		stop: make(chan struct{}), wake: make(chan struct{}, 1),
		faults: cfg.Faults, jobs: map[string]*job{}, quota: cfg.Quota, accounts: map[string]*account{},
		stats: Stats{CreatesByKey: map[string]int{}, Injected: map[string]int{}},
	}
	s.ready = sync.NewCond(&s.mu)
	s.mux = s.routes()
	if cfg.Journal == "" {
		return s, nil
	}
	if err := s.open(configured); err != nil {
		return nil, fmt.Errorf("simulator: %w", err)
	}
	return s, nil
}

// Close lets go of the journal. Call it when Run has returned and no request is
// being answered; a create after it is refused. Without a journal it does nothing.
func (s *Simulator) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.journal.close()
}

// now is the wall clock without its monotonic part: a journal cannot keep that,
// and a job has to look the same before and after a restart.
func (s *Simulator) now() time.Time { return time.Unix(0, s.cfg.Now().UnixNano()) }

// WebhookSecret is the secret in use, whether configured or drawn.
func (s *Simulator) WebhookSecret() string { return s.cfg.WebhookSecret }

// Faults returns the faults in force.
func (s *Simulator) Faults() Faults {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.faults
}

// SetFaults replaces the faults; what was drawn for a job at its acceptance
// stays. An invalid value is an error and changes nothing, as does a journal that
// cannot be written.
func (s *Simulator) SetFaults(f Faults) error {
	if err := f.Validate(); err != nil {
		return fmt.Errorf("simulator: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.setFaults(f)
}

// setFaults puts valid faults in force. Needs mu.
func (s *Simulator) setFaults(f Faults) error {
	now, before := s.now(), s.faults
	s.catchUp(now)
	s.faults = f
	if err := s.journal.append(s.settings(now)); err != nil {
		s.faults = before
		return err
	}
	return nil
}

// faultsFor is the source of one fault's values for a job. Needs mu.
func (s *Simulator) faultsFor(sim *directive, key string) *Faults {
	if sim.set[key] {
		return &sim.own
	}
	return &s.faults
}

// hit draws one fault and counts it when it strikes. Needs mu.
func (s *Simulator) hit(sim *directive, key string, seq, n uint64) bool {
	rate := s.faultsFor(sim, key).rate(key)
	if rate <= 0 || s.draw(key, seq, n) >= rate {
		return false
	}
	s.stats.Injected[key]++
	return true
}

func (s *Simulator) draw(what string, seq, n uint64) float64 {
	return unit(mix(s.cfg.Seed, mixName(what), seq, n))
}

// timedEvent is something the engine does for a job at a time.
type timedEvent struct {
	at  time.Time
	seq uint64 // equal times keep the order in which they were asked for
	job *job
	do  func(at time.Time)
}

type eventHeap []timedEvent

func (h eventHeap) Len() int { return len(h) }
func (h eventHeap) Less(i, k int) bool {
	if c := h[i].at.Compare(h[k].at); c != 0 {
		return c < 0
	}
	return h[i].seq < h[k].seq
}
func (h eventHeap) Swap(i, k int) { h[i], h[k] = h[k], h[i] }
func (h *eventHeap) Push(x any)   { *h = append(*h, x.(timedEvent)) }
func (h *eventHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	old[len(old)-1] = timedEvent{}
	*h = old[:len(old)-1]
	return last
}

// at schedules do, which will run under mu and is told the time it was asked
// for, however late it runs: what happens to a job is then a function of its
// order and the time alone, and comes out the same after a restart. Needs mu.
func (s *Simulator) at(when time.Time, j *job, do func(at time.Time)) {
	s.nextEv++
	heap.Push(&s.events, timedEvent{at: when, seq: s.nextEv, job: j, do: do})
	if s.events[0].seq == s.nextEv {
		select {
		case s.wake <- struct{}{}:
		default:
		}
	}
}
