package e2e

import (
	"context"
	"testing"
	"time"
)

// brokerFigures are the metrics of specification 12.11.6 that tell of an outage of
// RocketMQ: what waits for the bus, how far consumers are behind, and what browsers
// get without it.
var brokerFigures = []figure{
	{"relay", "aivedio_outbox_publish_errors_total", "", rises},
	{"relay", "aivedio_outbox_published_total", "", resumes},
	{"relay", "aivedio_outbox_lag_seconds_sum", "", resumes},
	{"relay", "aivedio_outbox_backlog_rows", "", bulges},
	{"relay", "aivedio_outbox_oldest_seconds", "", bulges},
	{"dispatch", "aivedio_dispatch_events_total", `outcome="notified"`, resumes},
	{"dispatch", "aivedio_dispatch_lag_seconds_count", "", resumes},
	{"process", "aivedio_verdicts_total", `verdict="applied"`, rises},
	{"gateway", "aivedio_stream_found_total", "", rises},
	{"gateway", "aivedio_stream_events_written_total", "", rises},
	{"gateway", "aivedio_stream_hints_total", "", resumes},
}

// nameServerFigures: clients keep the routes they have.
var nameServerFigures = []figure{
	{"relay", "aivedio_outbox_published_total", "", rises},
	{"dispatch", "aivedio_dispatch_events_total", `outcome="notified"`, rises},
	{"gateway", "aivedio_stream_hints_total", "", rises},
}

// Row "RocketMQ is away" of specification 12.12: transitions are committed all the
// same, the outbox keeps what the bus does not take, and browsers hear of it by the
// delta query. It uses the broker that tests share, so it runs alone.
func TestOutageRocketMQ(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), drillTimeout)
	defer cancel()
	d := newDrill(ctx, t, fleetSpec{})
	rocket := d.fleet.rocket
	if !rocket.Own() {
		t.Skip("SKIPPED, NOT TESTED: the given broker cannot be stopped")
	}
	stop := d.feed(ctx, 200*time.Millisecond)
	d.flow(ctx, 8)

	names := d.outage(ctx, nameServerFigures, rocket.StopNameServer, func() {}, d.ends(ctx, 8))
	d.recovered(ctx, names)

	// Now the broker, too: this is the whole of RocketMQ.
	both := d.outage(ctx, brokerFigures, rocket.StopBroker, func() {
		stop() // a broker takes long enough to start without a load beside it
		rocket.StartNameServer()
		rocket.StartBroker()
	}, d.ends(ctx, 12))
	d.submitMore(ctx, 4)
	d.end(ctx)
	d.recovered(ctx, both)
	d.fresh(ctx, both)
	d.audit(ctx)
	d.auditTopic(ctx, t)
	d.auditHints(ctx, t)
}

// ends reports whether n tasks ended since it was made.
func (d *drill) ends(ctx context.Context, n int) func() bool {
	const ended = "SELECT count(*) FROM generation_tasks WHERE terminal_at IS NOT NULL"
	from := d.count(ctx, ended)
	return func() bool { return d.count(ctx, ended) >= from+n }
}

// fresh: the ends of tasks reached the browsers in time without help.
func (d *drill) fresh(ctx context.Context, o held) {
	d.t.Helper()
	if late := d.lateness(ctx, o.from, o.to); late > freshness {
		d.t.Errorf("a browser heard of a task's end after %v, more than %v", late, freshness)
	}
}
