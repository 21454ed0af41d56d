package e2e

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/aivedio/aivedio/internal/e2e/launch"
	"github.com/aivedio/aivedio/internal/simulator"
)

// What each account may be asked for, and what the vendor must never see more of in a
// second: the rate, the burst, and what was held up on its way. Ten times as much is
// wanted all the time.
const (
	outageRate  = 8
	outageBurst = 4
	outageQuota = 20
)

// redisFigures are the metrics of specification 12.11.6 that tell of an outage of
// Redis: hints that are lost, and events that are found without them.
var redisFigures = []figure{
	{"dispatch", "aivedio_dispatch_events_total", `outcome="lost"`, rises},
	{"dispatch", "aivedio_dispatch_events_total", `outcome="notified"`, resumes},
	{"dispatch", "aivedio_notify_seconds_count", "", rises},
	{"relay", "aivedio_outbox_published_total", "", rises}, // the bus has no backlog of it
	{"process", "aivedio_verdicts_total", `verdict="applied"`, rises},
	{"poll", "aivedio_quota_waits_total", `verb="query"`, rises},
	{"poll", "aivedio_provider_queries_total", `provider="replicate"`, rises}, // see conservative
	{"gateway", "aivedio_stream_deltas_total", "", rises},
	{"gateway", "aivedio_stream_found_total", "", rises},
	{"gateway", "aivedio_stream_events_written_total", "", rises},
	{"gateway", "aivedio_stream_delivery_seconds_count", "", rises},
	{"gateway", "aivedio_stream_hints_total", "", resumes},
	{"gateway", "aivedio_stream_connections", "", known},
	{"gateway", "process_resident_memory_bytes", "", known},
	{"gateway", "aivedio_stream_queued_events", "", known},
	{"gateway", "aivedio_stream_longest_queue_events", "", known},
	{"gateway", "aivedio_stream_slow_total", "", known},
	{"gateway", "aivedio_stream_write_errors_total", "", known},
}

// Row "Redis is away" of specification 12.12: facts are not touched, and streams live
// on delta queries; without the shared quota a process takes a fraction of it.
func TestOutageRedis(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), drillTimeout)
	defer cancel()
	d := newDrill(ctx, t, fleetSpec{
		queries: launch.Rate{PerSecond: outageRate, Burst: outageBurst},
		vendor:  []string{"--run", "4s", "--quota-queries", fmt.Sprint(outageQuota)},
	})
	d.nudge = func() { d.hurryQueries(ctx) }
	server := d.fleet.redis
	stop := d.feed(ctx, 200*time.Millisecond)
	d.flow(ctx, 6)
	for _, way := range []struct {
		name       string
		away, back func()
	}{
		{"stopped", server.Stop, server.Start},
		{"frozen", server.Pause, server.Resume},
	} {
		ended := d.ends(ctx, 8)
		o := d.outage(ctx, redisFigures, way.away, func() {
			d.asksOften(ctx)
			way.back()
		}, ended)
		t.Logf("Redis was %s", way.name)
		d.conservative(o)
		d.recovered(ctx, o)
		d.fresh(ctx, o)
	}
	d.flush(ctx)
	d.flow(ctx, 6)
	stop()
	d.end(ctx)
	d.audit(ctx)
	d.auditQuota(ctx)
}

// conservative: while Redis was away the one process that asks took a fraction of the
// rate.
func (d *drill) conservative(o held) {
	d.t.Helper()
	i := slices.IndexFunc(o.figures, func(g figure) bool { return g.name == "aivedio_provider_queries_total" })
	asked, away := o.during[i]-o.before[i], o.to.Sub(o.from)
	d.t.Logf("%g queries without Redis in %v", asked, away.Round(time.Millisecond))
	if most := outageRate*away.Seconds()/2 + outageBurst; asked > most {
		d.t.Errorf("%g queries without Redis in %v; at half of the rate it would be %.0f", asked, away, most)
	}
}

// auditQuota: the vendor never saw more than it allows, and what we allow was used.
func (d *drill) auditQuota(ctx context.Context) {
	d.t.Helper()
	var state struct{ Accounts map[string]simulator.Usage }
	d.must(d.fleet.ask(ctx, "/_sim/quota", &state))
	worst := 0
	for _, u := range state.Accounts {
		worst = max(worst, u.Queries.WorstSecond)
		if u.Queries.Over > 0 {
			d.t.Errorf("%d queries above a quota of %d a second: %+v", u.Queries.Over, outageQuota, u.Queries)
		}
	}
	d.t.Logf("the vendor saw %d queries in the worst second", worst)
	if worst < outageRate/2 {
		d.t.Errorf("at most %d queries a second: the quota held nobody back", worst)
	}
}

// asksOften: without Redis the gateway looks for events every second instead of every
// five.
func (d *drill) asksOften(ctx context.Context) {
	d.t.Helper()
	deltas := []figure{{"gateway", "aivedio_stream_deltas_total", "", rises}}
	from, began := d.fleet.mustRead(ctx, d.t, deltas)[0], time.Now()
	const rounds = 3
	d.settled(ctx, deltas, func(_ figure, _ int, now float64) bool { return now >= from+rounds })
	if took := time.Since(began); took > rounds*4*time.Second {
		d.t.Errorf("without Redis %d delta queries took %v", rounds, took)
	}
}

// flush empties Redis: there is nothing in it that is needed.
func (d *drill) flush(ctx context.Context) {
	d.t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: d.fleet.redis.Addr})
	defer rdb.Close() //nolint:errcheck // it did its one thing
	d.must(rdb.FlushAll(ctx).Err())
}
