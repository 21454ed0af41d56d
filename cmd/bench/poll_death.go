package main

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/internal/e2e/leasewatch"
)

// The worker is killed in the middle of a flood. Queries that the others
// had under way then are answered soon afterwards, so what is still leased since
// before the death is the dead one's. The others are watched until those leases
// have ended and their attempts have been taken over.
const (
	afterDeath = 4 * time.Second
	pollLease  = 30 * time.Second
	takeOver   = pollLease + 4*time.Second - afterDeath
)

// killing is the death of one worker.
type killing struct {
	at time.Time
	// held are the attempts that it had leased, with the ends of the leases.
	held map[domain.ID]time.Time
}

// death is what became of the work of the one that was killed.
type death struct {
	// Held is how many attempts it had leased, TakenOver how many of them the others
	// have leased since, Early how many of those before their lease had ended: must
	// be 0.
	Held      int `json:"held"`
	TakenOver int `json:"taken_over"`
	Early     int `json:"early"`
	// Last is when the last of them was taken over, in s after the death.
	Last figure `json:"last_after_s"`
}

// killOne kills the first worker when a quarter of the tasks has been asked for, and waits for the others to take its work over.
func (p *poll) killOne(ctx context.Context) error {
	if err := p.awaitQueries(ctx, p.cmd.Tasks/4); err != nil {
		return err
	}
	if err := p.workers.current[0].Kill(); err != nil {
		return err
	}
	k := &killing{at: time.Now(), held: map[domain.ID]time.Time{}}
	if err := pause(ctx, afterDeath); err != nil {
		return err
	}
	rows, err := p.observer.conn.Query(ctx, "SELECT id, poll_lease_until FROM task_attempts WHERE poll_lease IS NOT NULL AND poll_lease_until <= $1", k.at.Add(pollLease))
	if err != nil {
		return err
	}
	var id domain.ID
	var until time.Time
	if _, err := pgx.ForEachRow(rows, []any{(*[16]byte)(&id), &until}, func() error { k.held[id] = until; return nil }); err != nil {
		return fmt.Errorf("what the dead worker held: %w", err)
	}
	p.killed = k
	return pause(ctx, takeOver)
}

// end tells what became of it, by the claims of the whole part.
func (k *killing) end(claims func(domain.ID) []*leasewatch.Claim) *death {
	d := &death{Held: len(k.held)}
	for id, until := range k.held {
		for _, c := range claims(id) {
			if !c.At.After(k.at) {
				continue
			}
			d.TakenOver++
			if c.At.Before(until) {
				d.Early++
			}
			d.Last = max(d.Last, figure(c.At.Sub(k.at).Seconds()))
			break
		}
	}
	return d
}
