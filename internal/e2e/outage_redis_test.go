package e2e

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// redisFigures are the metrics of specification 12.11.6 that tell of an outage of
// Redis: hints that are lost, and events that are found without them.
var redisFigures = []figure{
	{"dispatch", "aivedio_dispatch_events_total", `outcome="lost"`, rises},
	{"dispatch", "aivedio_dispatch_events_total", `outcome="notified"`, resumes},
	{"dispatch", "aivedio_notify_seconds_count", "", rises},
	{"relay", "aivedio_outbox_published_total", "", rises}, // the bus has no backlog of it
	{"process", "aivedio_verdicts_total", `verdict="applied"`, rises},
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
// on delta queries.
func TestOutageRedis(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), drillTimeout)
	defer cancel()
	d := newDrill(ctx, t, fleetSpec{})
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
		d.recovered(ctx, o)
		d.fresh(ctx, o)
	}
	d.flush(ctx)
	d.flow(ctx, 6)
	stop()
	d.end(ctx)
	d.audit(ctx)
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
