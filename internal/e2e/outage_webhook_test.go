package e2e

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/aivedio/aivedio/internal/simulator"
)

// silenceFigures are the metrics of specification 12.11.6 that tell of a vendor whose
// webhooks do not come: queries bring what they would have brought.
var silenceFigures = []figure{
	{"poll", "aivedio_provider_queries_total", `outcome="ok"`, rises},
	{"poll", "aivedio_verdicts_total", `source="poll",verdict="applied"`, rises},
	{"callback", "aivedio_callback_deliveries_total", `outcome="stored"`, resumes},
	{"process", "aivedio_verdicts_total", `source="webhook"`, resumes},
	{"process", "aivedio_webhook_silence", `provider="replicate"`, bulges}, // the alarm
}

// Row "a vendor's webhooks are away" of specification 12.12: queries find every end;
// what arrives later changes nothing.
func TestOutageWebhooks(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), drillTimeout)
	defer cancel()
	d := newDrill(ctx, t, fleetSpec{})
	stop := d.feed(ctx, 300*time.Millisecond)
	d.flow(ctx, 8)

	// The vendor does not send at all.
	silent := func() { d.must(d.fleet.setFaults(ctx, `{"webhooks_off":1}`)) }
	loud := func() { d.must(d.fleet.setFaults(ctx, `{"webhooks_off":0}`)) }
	o := d.outage(ctx, silenceFigures, silent, loud, d.ends(ctx, 12))
	d.recovered(ctx, o)
	stop()
	d.end(ctx)

	// What it sends lies somewhere, and comes in one heap when all is over.
	d.fleet.tap.keepBack()
	d.submitMore(ctx, 12)
	d.await(ctx, "tasks to end without their deliveries", func() (bool, error) {
		return d.count(ctx, "SELECT count(*) FROM generation_tasks WHERE terminal_at IS NULL") == 0, nil
	})
	before := d.versions(ctx)
	d.heap(ctx, d.fleet.tap.letGo())
	if diff := cmp.Diff(before, d.versions(ctx)); diff != "" {
		t.Errorf("deliveries that came late changed tasks: %s", diff)
	}

	// Each comes some seconds late.
	d.must(d.fleet.setFaults(ctx, `{"delay_webhook":1,"delay_for":"4s"}`))
	d.submitMore(ctx, 8)
	d.end(ctx)
	d.await(ctx, "the last delivery", func() (bool, error) {
		var stats simulator.Stats
		err := d.fleet.ask(ctx, "/_sim/stats", &stats)
		w := stats.Webhooks
		return w.Delayed > 0 && w.Delivered+w.GivenUp >= w.Emitted, err
	})
	d.digested(ctx)
	d.end(ctx)
	d.audit(ctx)
}

// heap sends deliveries all at once; each is acknowledged and digested.
func (d *drill) heap(ctx context.Context, kept []delivery) {
	d.t.Helper()
	d.t.Logf("%d deliveries come in one heap", len(kept))
	if len(kept) == 0 {
		d.t.Error("no delivery was kept back")
	}
	var wg sync.WaitGroup
	for _, k := range kept {
		wg.Go(func() {
			if e := d.fleet.tap.send(k); e.status != http.StatusNoContent {
				d.t.Errorf("delivery %s was answered %d, want 204", e.id, e.status)
			}
		})
	}
	wg.Wait()
	d.digested(ctx)
}

// digested waits until no delivery waits to be read.
func (d *drill) digested(ctx context.Context) {
	d.t.Helper()
	d.await(ctx, "the inbox to be empty", func() (bool, error) {
		return d.count(ctx, "SELECT count(*) FROM inbox_queue") == 0, nil
	})
}

// versions are those of all tasks.
func (d *drill) versions(ctx context.Context) map[[16]byte]int {
	d.t.Helper()
	rows, err := d.db.Query(ctx, "SELECT id, version FROM generation_tasks")
	d.must(err)
	out := map[[16]byte]int{}
	var id [16]byte
	var version int
	_, err = pgx.ForEachRow(rows, []any{&id, &version}, func() error { out[id] = version; return nil })
	d.must(err)
	return out
}
