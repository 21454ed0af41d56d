package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// A calm run leaves no line at the level of errors, and every role ends in order:
// at rest, with jobs and a stream under way, and while a vendor does not answer.
func TestStopsInOrder(t *testing.T) {
	f := newFleet(t, 1, []string{"--seed", "7", "--queue", "200ms", "--run", "1s"}, "AIVEDIO_LOG_LEVEL=info",
		"AIVEDIO_SUBMIT_TIMEOUT=60s", "AIVEDIO_SUBMIT_LEASE=90s", "AIVEDIO_MEDIA_TIMEOUT=60s", "AIVEDIO_MEDIA_LEASE=90s")
	ctx, cancel := context.WithTimeout(t.Context(), runTimeout)
	defer cancel()
	r := newRun(ctx, t, f, 0, 1, rand.New(rand.NewPCG(1, 1)))
	stopFollowing := r.follow(ctx, t)

	r.mustSubmit(ctx, t, 0, 20)
	if err := await(ctx, "the first tasks to be ready", func() (bool, error) {
		var open int
		err := r.db.QueryRow(ctx, "SELECT count(*) FROM generation_tasks WHERE status <> 'ready'").Scan(&open)
		return open == 0, err
	}); err != nil {
		t.Fatalf("%v\n%s", err, r.open())
	}
	r.mustSubmit(ctx, t, 20, 30) // these are still at the vendor when the roles stop
	f.gate.hold(2)
	r.mustSubmit(ctx, t, 30, 32)
	holding, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if !f.gate.until(holding, func(c gateCounts) bool { return c.Held == 2 }) {
		t.Error("the last creates did not reach the vendor")
	}
	f.stopAll()
	stopFollowing()
	if r.follower.said["move"] == 0 {
		t.Errorf("the stream was not told to move: %v", r.follower.said)
	}
	var unknown, submitting int
	if err := r.db.QueryRow(ctx, `SELECT count(*) FILTER (WHERE status = 'submit_unknown'), count(*) FILTER (WHERE status = 'submitting') FROM task_attempts`).Scan(&unknown, &submitting); err != nil {
		t.Fatal(err)
	}
	if unknown != 2 || submitting != 0 {
		t.Errorf("%d attempts are unknown and %d are left in submitting; the two creates that were cut off should be known as unknown", unknown, submitting)
	}
	f.noErrorLogged()
}

// mustSubmit submits the tasks from, …, to−1.
func (r *run) mustSubmit(ctx context.Context, t *testing.T, from, to int) {
	t.Helper()
	for n := from; n < to; n++ {
		if err := r.submit(ctx, n); err != nil {
			t.Fatal(fmt.Errorf("task %d: %w", n, err))
		}
	}
}
