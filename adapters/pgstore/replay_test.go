package pgstore_test

import (
	"context"
	"testing"
	"time"

	"github.com/aivedio/aivedio/adapters/pgstore"
	"github.com/aivedio/aivedio/ports"
)

// TestReplayWaitsForNoTask repeats a creation while its task is locked: a
// transition holds a task and wants the account, so the repetition, which holds the
// account, must not want the task.
func TestReplayWaitsForNoTask(t *testing.T) {
	t.Parallel()
	db := database(t)
	s := openShop(t, pgstore.Config{URL: db.URL})
	p := s.params()
	p.Idempotency = &ports.Idempotency{TenantID: s.tenant, Scope: "create", Key: "k", BodyHash: []byte("body"), ExpiresAt: time.Now().Add(time.Hour)}
	if _, err := s.Create(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	tx, err := connect(t, db.URL).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.WithoutCancel(t.Context()))
	if _, err := tx.Exec(t.Context(), "SELECT id FROM generation_tasks FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	again := s.params()
	again.Idempotency = p.Idempotency
	result, err := s.Create(t.Context(), again)
	if err != nil || !result.Replayed || result.View.Task.ID != p.Task.ID {
		t.Errorf("%+v, %v; want the task of then", result, err)
	}
}
