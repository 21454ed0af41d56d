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
}

var _ http.Handler = (*Simulator)(nil)

// New makes a simulator; it does nothing by itself until Run. It panics when
// cfg.Validate reports an error, so callers that read a configuration from
// outside validate it first.
func New(cfg Config) *Simulator {
	if err := cfg.Validate(); err != nil {
		panic(fmt.Errorf("simulator: %w", err))
	}
	cfg = cfg.WithDefaults()
	client := *cfg.Client
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	key, _ := decodeSecret(cfg.WebhookSecret) // validated above
	s := &Simulator{
		cfg: cfg, secret: key, client: &client,
		boot: uint64(cfg.Now().UnixNano()),
		stop: make(chan struct{}), wake: make(chan struct{}, 1),
		faults: cfg.Faults, jobs: map[string]*job{},
		stats: Stats{CreatesByKey: map[string]int{}, Injected: map[string]int{}},
	}
	s.ready = sync.NewCond(&s.mu)
	s.mux = s.routes()
	return s
}

// WebhookSecret is the secret in use, whether configured or drawn.
func (s *Simulator) WebhookSecret() string { return s.cfg.WebhookSecret }

// Faults returns the faults in force.
func (s *Simulator) Faults() Faults {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.faults
}

// SetFaults replaces the faults; what was drawn for a job at its acceptance
// stays. An invalid value is an error and changes nothing.
func (s *Simulator) SetFaults(f Faults) error {
	if err := f.Validate(); err != nil {
		return fmt.Errorf("simulator: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = f
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

// timedEvent is something the engine does at a time.
type timedEvent struct {
	at  time.Time
	seq uint64 // equal times keep the order in which they were asked for
	do  func(now time.Time)
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

// at schedules do, which will run under mu. Needs mu.
func (s *Simulator) at(when time.Time, do func(now time.Time)) {
	s.nextEv++
	heap.Push(&s.events, timedEvent{at: when, seq: s.nextEv, do: do})
	if s.events[0].seq == s.nextEv {
		select {
		case s.wake <- struct{}{}:
		default:
		}
	}
}
