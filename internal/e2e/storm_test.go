package e2e

import (
	"context"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// stormTasks is the size of the storm.
const stormTasks = 120

// stormLines is within how many lines of the stream the client is cut.
const stormLines = stormTasks * 4 * 4

// stormFaults are all faults of the simulated vendor at once, but for two: a success
// that is taken back, and one without output where only the address says so. Their
// output is not found, which may also mean "not yet", and is tried for longer than
// this test lasts.
var stormFaults = []string{
	"--fault-drop-webhook", "0.2", "--fault-delay-webhook", "0.1", "--fault-duplicate-webhook", "0.2", "--fault-duplicate-webhook-new-id", "0.2",
	"--fault-reorder-webhook", "0.2", "--fault-malformed-webhook", "0.05", "--fault-bad-signature", "0.05", "--fault-stale-webhook", "0.05",
	"--fault-foreign-event", "0.1", "--fault-webhooks-off", "0.05", "--fault-early-callback", "0.1", "--fault-instant-result", "0.05",
	"--fault-fail", "0.1", "--fault-abort", "0.05", "--fault-unknown-status", "0.05",
	"--fault-synonym-status", "0.05", "--fault-fine-progress", "0.1", "--fault-many-bars", "0.1", "--fault-not-found", "0.05",
	"--fault-create-429", "0.05", "--fault-create-5xx", "0.03", "--fault-create-hang", "0.02", "--fault-lost-response", "0.05", "--fault-create-malformed", "0.03",
	"--fault-fail-query", "0.05", "--fault-query-hang", "0.01", "--fault-query-malformed", "0.02", "--fault-fail-download", "0.1", "--fault-hang-for", "8s",
}

// stormPrompt has some jobs succeed without an output, at the vendor that says so.
func stormPrompt(n int) string {
	if n%20 == 1 {
		return prompt(n) + " [sim:empty]"
	}
	return prompt(n)
}

// A vendor at its worst is no fault of ours: every task ends, with what the vendor
// said, every job is created once, and no role logs an error.
func TestStorm(t *testing.T) {
	seed := runSeed(t)
	rng := rand.New(rand.NewPCG(seed, 4))
	f := newFleet(t, 1, append([]string{"--seed", strconv.FormatUint(seed, 10), "--queue", "300ms", "--run", "2s"}, stormFaults...))
	ctx, cancel := context.WithTimeout(t.Context(), runTimeout)
	defer cancel()
	r := newRun(ctx, t, f, 10, stormLines, rng)
	r.prompt = stormPrompt
	stopFollowing := r.follow(ctx, t)
	began := time.Now()
	r.mustSubmit(ctx, t, 0, stormTasks)
	err := r.settle(ctx)
	stopFollowing()
	t.Logf("seed %d: %s", seed, r.summary(time.Since(began)))
	if err != nil {
		t.Fatal(err)
	}
	r.auditEnds(ctx, t)
	r.auditCreates(ctx, t)
	r.auditFaults(ctx, t)
	r.auditAssets(ctx, t)
	r.auditStream(ctx, t)
	r.auditDoctor(t)
	f.stopAll()
	f.noErrorLogged()
}

// auditEnds: tasks end with what the vendor or a person said, and never because a
// query, a delivery or a download failed.
func (r *run) auditEnds(ctx context.Context, t *testing.T) {
	t.Helper()
	rows, err := r.db.Query(ctx, "SELECT status, coalesce(error_code, ''), count(*) FROM generation_tasks GROUP BY 1, 2 ORDER BY 1, 2")
	if err != nil {
		t.Fatal(err)
	}
	var status, code string
	var n int
	if _, err := pgx.ForEachRow(rows, []any{&status, &code, &n}, func() error {
		t.Logf("%d tasks are %s %s", n, status, code)
		switch status + " " + code {
		case "ready ", "canceled ", // aborted at the vendor
			"failed moderation_output", "failed moderation_input", "failed provider_error", "failed provider_unavailable",
			"failed output_missing", "failed not_created":
		default:
			t.Errorf("%d tasks are %s with %q, which nobody said", n, status, code)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}
