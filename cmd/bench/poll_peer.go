package main

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"time"
)

// peerClaim leases a row that is due, and releases it with its next timer, one by
// one and without asking anybody in between: the floor of what a query costs the
// database.
const peerClaim = "claim"

//go:embed claim.pgbench
var claimScript string

// claimClients is the number of connections of the peer.
const claimClients = 32

// claimTime is how long it runs each time.
const claimTime = 5 * time.Second

// script writes a script that needs no row to copy.
func (b *pgbench) script(name, text string) error {
	if err := os.WriteFile(b.file(name), []byte(text), 0o644); err != nil {
		return fmt.Errorf("script of %s: %w", name, err)
	}
	return nil
}

// claim measures the peer once, on as many rows as we have, all of them due all
// the time.
func (p *poll) claim(ctx context.Context) error {
	if !p.has(peerClaim) {
		return nil
	}
	p.std.say("pgbench: claim and release one by one")
	err := p.cluster.exec(ctx, peerDatabase, "UPDATE task_attempts a SET next_poll_at = now() FROM bench.task b WHERE a.id = b.attempt_id", "VACUUM ANALYZE task_attempts", "CHECKPOINT")
	if err != nil {
		return err
	}
	perSecond, _, err := p.peer.run(ctx, peerClaim, claimClients, claimTime)
	p.claims = append(p.claims, perSecond)
	return err
}
