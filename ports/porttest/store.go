package porttest

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// StoreFixture is one empty store with what the suite needs to drive it.
type StoreFixture struct {
	Store ports.Store
	// Clock is where the store takes its time from.
	Clock *Clock

	// Reopen returns the store as another process would open it, on the same data;
	// nil when nothing outlives the process.
	Reopen func(t *testing.T) ports.Store
	// Decode reads the Message of an outbox row; nil when rows have none.
	Decode func(message []byte) (ports.StoredEvent, error)
	// InjectRollback has each later transaction fail with the probability, after
	// its last write and before its commit, as ports.ErrUnavailable; 0 ends it.
	// nil when that cannot be had.
	InjectRollback func(rate float64)
	// ExpireEvents removes the events of the project up to the number, as
	// retention does; nil when that cannot be had.
	ExpireEvents func(t *testing.T, project domain.ProjectID, upTo int64)
	// SetHead overwrites the stream's counter, as a bad repair would; nil when that
	// cannot be had.
	SetHead func(t *testing.T, project domain.ProjectID, last int64)
}

// Clock is a time that moves only when it is told to. Safe for concurrent use.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// NewClock starts at the present, so that a store that keeps days apart has the
// day ready, in whole milliseconds, which every store can hold.
func NewClock() *Clock { return &Clock{now: time.Now().UTC().Truncate(time.Millisecond)} }

// Now is the clock's time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Advance moves the clock, back when d is negative, and returns the new time.
func (c *Clock) Advance(d time.Duration) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	return c.now
}

// storeTest is one promise of the store.
type storeTest struct {
	name string
	run  func(t *testing.T, b *storeBench)
}

// storeGroup is a number of promises about one part of the store.
type storeGroup struct {
	name  string
	tests []storeTest
	// shared tests look at nothing beyond their own tenant, and take turns on one
	// store: opening one may cost more than the test.
	shared bool
}

func storeGroups() []storeGroup {
	const shared = true
	return []storeGroup{
		{"Create", createTests(), shared},
		{"Apply", applyTests(), shared},
		{"Ref", refTests(), shared},
		{"Order", orderTests(), shared},
		{"Events", eventsTests(), shared},
		{"Reader", readerTests(), shared},
		{"Timeline", timelineTests(), shared},
		{"Ledger", ledgerTests(), shared},
		{"Operations", operationTests(), false},
		{"Work", workTests(), false},
		{"Queue", queueTests(), false},
		{"Receive", receiveTests(), false},
		{"Process", processTests(), false},
		{"Revive", reviveTests(), false},
		{"DeadLetters", deadLetterTests(), false},
		{"Outbox", outboxTests(), false},
		{"Shards", shardTests(), false},
		{"BusRetries", busRetryTests(), false},
		{"Access", accessTests(), false},
		{"Desk", deskTests(), false},
		{"Health", healthTests(), false},
		{"Webhooks", webhookTests(), false},
		{"Sweep", sweepTests(), false},
	}
}

// Store runs the conformance suite of ports.Store. open is called many times,
// from several goroutines, and returns an empty store that is cleaned up with
// its test.
func Store(t *testing.T, open func(t *testing.T) StoreFixture) {
	t.Helper()
	for _, group := range storeGroups() {
		t.Run(group.name, func(t *testing.T) {
			t.Parallel()
			if group.shared {
				fixture := open(t)
				for _, test := range group.tests {
					t.Run(test.name, func(t *testing.T) { test.run(t, newStoreBench(t, fixture)) })
				}
				return
			}
			for _, test := range group.tests {
				t.Run(test.name, func(t *testing.T) {
					t.Parallel()
					test.run(t, newStoreBench(t, open(t)))
				})
			}
		})
	}
}

// newStoreBench gives a test its tenant and project.
func newStoreBench(t *testing.T, fixture StoreFixture) *storeBench {
	t.Helper()
	b := &storeBench{StoreFixture: fixture, t: t, ctx: context.WithoutCancel(t.Context())}
	if b.InjectRollback != nil {
		t.Cleanup(func() { b.InjectRollback(0) })
	}
	b.tenant = b.newTenant("tenant", 1_000_000)
	b.project = b.newProject(b.tenant, "project")
	return b
}
