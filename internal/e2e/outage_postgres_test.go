package e2e

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/aivedio/aivedio/internal/testenv"
)

// postgresFigures are the metrics of specification 12.11.6 that tell of an outage of
// PostgreSQL: the vendors' deliveries and how long their commit takes, the queries of
// the poller, and what reaches the bus and the browsers.
var postgresFigures = []figure{
	{"callback", "aivedio_callback_deliveries_total", `outcome="unavailable"`, rises},
	{"callback", "aivedio_callback_deliveries_total", `outcome="stored"`, resumes},
	{"callback", "aivedio_callback_commit_seconds_count", "", resumes},
	{"process", "aivedio_loop_errors_total", "", rises},
	{"process", "aivedio_verdicts_total", `source="webhook"`, resumes},
	{"poll", "aivedio_provider_queries_total", "", resumes},
	{"relay", "aivedio_outbox_published_total", "", resumes},
	{"gateway", "aivedio_stream_read_errors_total", "", rises},
	{"gateway", "aivedio_stream_events_written_total", "", resumes},
}

// refusedFigures are what roles that are refused at once show in addition; one that
// waits for a frozen server has nothing to tell.
var refusedFigures = append([]figure{
	{"poll", "aivedio_loop_errors_total", "", rises},
	{"relay", "aivedio_loop_errors_total", "", rises},
}, postgresFigures...)

// Row "PostgreSQL is away" of specification 12.12: callbacks say 503 and nothing
// else, so that the vendor comes again; when it is back everything goes on by itself
// and nothing that was acknowledged is missing.
func TestOutagePostgres(t *testing.T) {
	t.Parallel()
	Binary(t)
	server := testenv.PostgresServer(t, testenv.PGOptions{Fsync: true})
	for _, way := range []struct {
		name       string
		away, back func()
		// refusals is how many deliveries must be refused, each within patience.
		refusals int
		patience time.Duration
		figures  []figure
	}{
		{"shut down", server.Stop, server.Start, 40, 3 * time.Second, refusedFigures},
		{"killed", server.Kill, server.Start, 40, 3 * time.Second, refusedFigures},
		{"frozen", server.Pause, server.Resume, 12, 6 * time.Second, postgresFigures},
	} {
		t.Run(way.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), drillTimeout)
			defer cancel()
			d := newDrill(ctx, t, fleetSpec{database: server.Database("aivedio_" + way.name[:4])})
			stop := d.feed(ctx, 150*time.Millisecond)
			probe := d.startProbe(ctx, 20)
			d.flow(ctx, 8)
			o := d.outage(ctx, way.figures, way.away, func() {
				d.notReady(ctx, "api", "gateway")
				way.back()
			}, func() bool { return d.fleet.tap.refused() >= way.refusals })
			d.refused(o, way.patience)
			d.flow(ctx, 8)
			stop()
			sent := probe.finish(ctx, t)
			d.end(ctx)
			d.recovered(ctx, o)
			t.Logf("%d tasks, %d probes", d.next, sent)
			d.audit(ctx)
			d.repeated(o)
		})
	}
}

// notReady: while the database is away a load balancer is told so.
func (d *drill) notReady(ctx context.Context, roles ...string) {
	d.t.Helper()
	for _, role := range roles {
		for _, p := range d.fleet.processes[role] {
			if status, err := readiness(ctx, p); err != nil || status != http.StatusServiceUnavailable {
				d.t.Errorf("%s says %d at /readyz without a database, %v; want 503", p.Name(), status, err)
			}
		}
	}
}

// refused: whatever was sent and answered while the database was away got a 503 with
// a time to come again, soon.
func (d *drill) refused(o held, patience time.Duration) {
	d.t.Helper()
	exchanges := d.fleet.tap.between(o.from, o.to)
	for _, e := range exchanges {
		if e.status != http.StatusServiceUnavailable || e.retryAfter == "" {
			d.t.Errorf("without a database delivery %s was answered %d, Retry-After %q", e.id, e.status, e.retryAfter)
		}
	}
	slow := slowest(exchanges)
	d.t.Logf("%d deliveries refused, the slowest after %v", len(exchanges), slow.Round(time.Millisecond))
	if slow > patience {
		d.t.Errorf("a refusal took %v, more than %v", slow, patience)
	}
}

// repeated: the vendor sent some of the refused deliveries again, and they were
// taken.
func (d *drill) repeated(o held) {
	d.t.Helper()
	missing := map[string]bool{}
	for _, e := range d.fleet.tap.between(o.from, o.to) {
		missing[e.id] = true
	}
	all, again := len(missing), 0
	for _, e := range d.fleet.tap.exchanges() {
		if missing[e.id] && e.acknowledged() {
			delete(missing, e.id)
			again++
		}
	}
	d.t.Logf("%d of %d refused deliveries were taken later", again, all)
	if again == 0 {
		d.t.Error("no refused delivery came again")
	}
}
