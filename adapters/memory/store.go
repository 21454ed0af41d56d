package memory

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

var _ ports.Store = (*Store)(nil)

// Store is the whole ports.Store in maps under one mutex: a transaction is the
// time for which the mutex is held, so everything is serial and in commit order
// by construction. It refuses what PostgreSQL refuses (text with a NUL byte, a
// second attempt under one vendor id), so that use cases meet these faults in
// tests too.
type Store struct {
	mu    sync.Mutex
	now   func() time.Time
	fault func() error

	tenants  map[domain.TenantID]ports.Tenant
	projects map[domain.ProjectID]ports.Project
	keys     map[domain.ID]ports.APIKey
	balances map[domain.TenantID]int64
	grants   map[domain.ActionID]grant

	tasks    map[domain.TaskID]taskRow
	attempts map[domain.AttemptID]attemptRow
	// waiting holds the attempts that some timer may concern, first those of them
	// whose next query somebody waits for.
	waiting    map[domain.AttemptID]struct{}
	first      map[domain.AttemptID]struct{}
	watched    map[domain.ProjectID]time.Time
	durations  map[modelKey]ports.ModelDuration
	ofProject  map[domain.ProjectID][]domain.TaskID
	byToken    map[string]domain.AttemptID
	byProvider map[providerKey]domain.AttemptID
	byClient   map[clientKey]domain.AttemptID
	requests   map[requestKey]requestRow
	assets     map[domain.AssetID]ports.Asset

	streams  map[domain.ProjectID]stream
	ledger   map[ledgerKey]domain.LedgerEntry
	history  map[domain.TaskID][]ports.TimelineEntry
	counters map[counterKey]int64

	operations  map[domain.OperationID]operation
	operationOf map[operationKey]domain.OperationID

	serial     int64
	inbox      map[int64]ports.InboxRow
	deliveries map[deliveryKey]int64
	queue      []int64
	conflicts  map[int64]ports.ConflictRow
	cases      map[int64]ports.Case

	outbox  map[int64]ports.OutboxRow
	sent    map[int64]ports.OutboxRow
	holds   map[domain.ProjectID]hold
	shards  [ports.OutboxShards]shard
	relays  map[domain.ID]time.Time
	retries map[retryKey]retry

	health   map[ports.AccountRef]ports.AccountHealth
	callers  map[domain.ID]time.Time
	webhooks map[webhookKey]ports.WebhookCount
	silences map[ports.AccountRef]time.Time
	sweeps   map[string]ports.SweepRun
}

// NewStore returns an empty store that takes the time from now; nil means the
// system's clock.
func NewStore(now func() time.Time) *Store {
	if now == nil {
		now = time.Now
	}
	return &Store{
		now:         now,
		tenants:     map[domain.TenantID]ports.Tenant{},
		projects:    map[domain.ProjectID]ports.Project{},
		keys:        map[domain.ID]ports.APIKey{},
		balances:    map[domain.TenantID]int64{},
		grants:      map[domain.ActionID]grant{},
		tasks:       map[domain.TaskID]taskRow{},
		attempts:    map[domain.AttemptID]attemptRow{},
		waiting:     map[domain.AttemptID]struct{}{},
		first:       map[domain.AttemptID]struct{}{},
		watched:     map[domain.ProjectID]time.Time{},
		durations:   map[modelKey]ports.ModelDuration{},
		ofProject:   map[domain.ProjectID][]domain.TaskID{},
		byToken:     map[string]domain.AttemptID{},
		byProvider:  map[providerKey]domain.AttemptID{},
		byClient:    map[clientKey]domain.AttemptID{},
		requests:    map[requestKey]requestRow{},
		assets:      map[domain.AssetID]ports.Asset{},
		streams:     map[domain.ProjectID]stream{},
		ledger:      map[ledgerKey]domain.LedgerEntry{},
		history:     map[domain.TaskID][]ports.TimelineEntry{},
		counters:    map[counterKey]int64{},
		operations:  map[domain.OperationID]operation{},
		operationOf: map[operationKey]domain.OperationID{},
		inbox:       map[int64]ports.InboxRow{},
		deliveries:  map[deliveryKey]int64{},
		conflicts:   map[int64]ports.ConflictRow{},
		cases:       map[int64]ports.Case{},
		outbox:      map[int64]ports.OutboxRow{},
		sent:        map[int64]ports.OutboxRow{},
		holds:       map[domain.ProjectID]hold{},
		relays:      map[domain.ID]time.Time{},
		retries:     map[retryKey]retry{},
		health:      map[ports.AccountRef]ports.AccountHealth{},
		callers:     map[domain.ID]time.Time{},
		webhooks:    map[webhookKey]ports.WebhookCount{},
		silences:    map[ports.AccountRef]time.Time{},
		sweeps:      map[string]ports.SweepRun{},
	}
}

// FailBeforeCommit has every later transaction call f after its last write; an
// error takes all of it back, as a crash before the commit would, and the call
// returns that error. nil ends it.
func (s *Store) FailBeforeCommit(f func() error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = f
}

// Ping never fails: there is nothing that could be away.
func (s *Store) Ping(ctx context.Context) error { return ctx.Err() }

// write runs one transaction: all that f changed through x stays, or nothing.
func (s *Store) write(ctx context.Context, f func(x *tx) error) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("memory store: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	x := &tx{Store: s, at: s.now().UTC()}
	committed := false
	defer func() { // also when f panics
		if !committed {
			x.rollback(0)
		}
	}()
	if err := f(x); err != nil {
		return err
	}
	if s.fault != nil {
		if err := s.fault(); err != nil {
			return err
		}
	}
	committed = true
	return nil
}

// read runs f on a state that does not change meanwhile: one snapshot.
func (s *Store) read(ctx context.Context, f func() error) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("memory store: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return f()
}
