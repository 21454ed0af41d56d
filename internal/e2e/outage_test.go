package e2e

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/aivedio/aivedio/internal/e2e/launch"
	"github.com/aivedio/aivedio/internal/e2e/load"
)

// drillTimeout bounds one drill; none takes half of it on a quiet machine.
const drillTimeout = 240 * time.Second

// drillBrowsers is how many clients follow a drill.
const drillBrowsers = 3

// freshness is how late an event may reach a browser whose hint was lost.
const freshness = 16 * time.Second

// drill is a fleet under load from which a part of the world is taken for a while.
// Whatever it was: afterwards every task has its end, the browsers hold the events
// of the database, and the database its invariants.
type drill struct {
	*run
	t        *testing.T
	browsers []*follower
	next     int // number of the next task
	// nudge, when set, is called while figures are waited for.
	nudge func()
}

// newDrill starts a fleet with one process of each role, behind a tap.
func newDrill(ctx context.Context, t *testing.T, spec fleetSpec) *drill {
	t.Helper()
	spec.each, spec.tapped = 1, true
	spec.vendor = append([]string{"--seed", "5", "--queue", "300ms", "--run", "2s"}, spec.vendor...)
	f := newFleetOf(t, spec)
	rng := rand.New(rand.NewPCG(5, 12))
	d := &drill{run: newRun(ctx, t, f, 0, 1, rng), t: t}
	d.browsers = []*follower{d.follower}
	for len(d.browsers) < drillBrowsers {
		d.browsers = append(d.browsers, newFollower(f.gateway.URL(), f.project, f.key, 0, 1, rng))
	}
	d.watch(ctx)
	return d
}

// watch has the browsers follow until the test ends.
func (d *drill) watch(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	for _, b := range d.browsers {
		wg.Go(func() {
			if err := b.run(ctx); err != nil {
				d.t.Error(err)
			}
		})
	}
	d.t.Cleanup(func() { cancel(); wg.Wait() })
}

// feed submits a task every so often until stop, which waits until all are
// accepted.
func (d *drill) feed(ctx context.Context, every time.Duration) (stop func()) {
	feeding, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() {
		g, ctx := errgroup.WithContext(ctx)
		g.SetLimit(16) // while nothing is accepted the others wait
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				n := d.next
				d.next++
				g.Go(func() error {
					err := d.submit(ctx, n)
					if err != nil && ctx.Err() == nil {
						d.t.Error(err) // at once: others wait for tasks that do not come
					}
					return err
				})
			case <-feeding.Done():
				done <- g.Wait()
				return
			}
		}
	}()
	return func() {
		d.t.Helper()
		cancel()
		if err := <-done; err != nil {
			d.t.Fatal(err)
		}
	}
}

// submitMore submits n tasks, each at once.
func (d *drill) submitMore(ctx context.Context, n int) {
	d.t.Helper()
	d.mustSubmit(ctx, d.t, d.next, d.next+n)
	d.next += n
}

// flow waits for n more tasks to be accepted and ended: the system works.
func (d *drill) flow(ctx context.Context, n int) {
	d.t.Helper()
	have := d.accepted.now()
	d.must(d.accepted.reach(ctx, have+n))
	ended := d.count(ctx, "SELECT count(*) FROM generation_tasks WHERE terminal_at IS NOT NULL")
	d.await(ctx, "tasks to end", func() (bool, error) {
		return d.count(ctx, "SELECT count(*) FROM generation_tasks WHERE terminal_at IS NOT NULL") >= ended+n, nil
	})
}

// end waits until every task has its end and every browser the last event.
func (d *drill) end(ctx context.Context) {
	d.t.Helper()
	d.must(d.settle(ctx))
	head := int64(d.count(ctx, "SELECT coalesce(max(event_id), 0) FROM task_events"))
	for i, b := range d.browsers {
		d.await(ctx, fmt.Sprintf("browser %d to have event %d", i+1, head), func() (bool, error) {
			have, _ := b.head()
			return have >= head, nil
		})
	}
}

// audit compares what everybody holds.
func (d *drill) audit(ctx context.Context) {
	d.t.Helper()
	d.auditEnds(ctx, d.t)
	d.auditCreates(ctx, d.t)
	d.auditAcknowledged(ctx)
	d.auditLedger(ctx)
	stored := d.storedEvents(ctx, d.t)
	for _, b := range d.browsers {
		d.auditFollower(d.t, stored, b)
	}
	d.auditDoctor(d.t)
	d.auditLogs()
}

// auditAcknowledged: whatever a vendor was told to be stored, is (I1).
func (d *drill) auditAcknowledged(ctx context.Context) {
	d.t.Helper()
	rows, err := d.db.Query(ctx, "SELECT payload_hash FROM provider_callback_inbox")
	d.must(err)
	hashes, err := pgx.CollectRows(rows, pgx.RowTo[[]byte])
	d.must(err)
	stored := map[[sha256.Size]byte]bool{}
	for _, h := range hashes {
		stored[[sha256.Size]byte(h)] = true
	}
	acknowledged, refused := 0, 0
	for _, e := range d.fleet.tap.exchanges() {
		switch {
		case !e.acknowledged():
			refused++
		case !stored[e.hash]:
			d.t.Errorf("delivery %s was answered %d and is not in the inbox", e.id, e.status)
		default:
			acknowledged++
		}
	}
	d.t.Logf("%d deliveries acknowledged, %d not", acknowledged, refused)
	if acknowledged == 0 {
		d.t.Error("no delivery was acknowledged: the comparison proves nothing")
	}
}

// auditLedger: what was reserved is spent or given back, and every ready task was
// paid once.
func (d *drill) auditLedger(ctx context.Context) {
	d.t.Helper()
	var ready, settled, reserved, sum int
	d.must(d.db.QueryRow(ctx, `SELECT (SELECT count(*) FROM generation_tasks WHERE status = 'ready'),
		(SELECT count(*) FROM credit_ledger WHERE ledger_type = 'settle'),
		(SELECT sum(reserved) FROM ledger_accounts), (SELECT sum(granted + available + reserved + spent) FROM ledger_accounts)`).Scan(&ready, &settled, &reserved, &sum))
	if settled != ready || reserved != 0 || sum != 0 {
		d.t.Errorf("%d tasks are ready, %d paid; %d credits are reserved, and the accounts add up to %d", ready, settled, reserved, sum)
	}
}

// auditLogs: an outage is no reason to panic.
func (d *drill) auditLogs() {
	d.t.Helper()
	for _, role := range fleetRoles {
		for _, p := range d.fleet.processes[role] {
			if !p.Alive() {
				d.t.Errorf("%s did not live through the drill", p.Name())
			}
			for line := range strings.Lines(p.Tail(1 << 20)) {
				if strings.Contains(line, "panic") {
					d.t.Errorf("%s logged %s", p.Name(), line)
				}
			}
		}
	}
}

// lateness compares when the browsers got the terminal events of a time with when
// they were committed, and returns the worst.
func (d *drill) lateness(ctx context.Context, from, to time.Time) time.Duration {
	d.t.Helper()
	rows, err := d.db.Query(ctx, `SELECT e.event_id, e.created_at FROM task_events e JOIN generation_tasks t ON t.last_event_id = e.event_id
		WHERE t.terminal_at IS NOT NULL AND e.created_at BETWEEN $1 AND $2`, from, to)
	d.must(err)
	committed := map[int64]time.Time{}
	var id int64
	var at time.Time
	_, err = pgx.ForEachRow(rows, []any{&id, &at}, func() error { committed[id] = at; return nil })
	d.must(err)
	if len(committed) == 0 {
		d.t.Error("no task ended in that time: there is nothing to compare")
	}
	var worst time.Duration
	for _, b := range d.browsers {
		b.mu.Lock()
		for i, e := range b.events {
			if at, ok := committed[e.EventID]; ok {
				worst = max(worst, b.arrived[i].Sub(at))
			}
		}
		b.mu.Unlock()
	}
	d.t.Logf("%d terminal events, the latest came after %v", len(committed), worst.Round(time.Millisecond))
	return worst
}

func (d *drill) must(err error) {
	d.t.Helper()
	if err != nil {
		d.t.Fatal(err)
	}
}

// await fails the test when the condition does not come true in time.
func (d *drill) await(ctx context.Context, what string, done func() (bool, error)) {
	d.t.Helper()
	if err := await(ctx, what, done); err != nil {
		d.t.Fatalf("%v\n%s", err, d.open())
	}
}

func (d *drill) count(ctx context.Context, sql string, args ...any) (n int) {
	d.t.Helper()
	d.must(d.db.QueryRow(ctx, sql, args...).Scan(&n))
	return n
}

// probe is a second sender of deliveries, of jobs that nobody knows: every one has
// an id of its own and is repeated until it is acknowledged.
type probe struct {
	source *crashSource
	run    load.Run
	stop   func()
}

// startProbe sends a few deliveries a second through the tap.
func (d *drill) startProbe(ctx context.Context, perSecond float64) *probe {
	host := strings.TrimPrefix(d.fleet.tap.URL(), "http://")
	s := &crashSource{
		sender:       load.Sender{Host: host, Secret: d.fleet.deployment.WebhookSecret},
		acknowledged: map[string]*load.Delivery{}, moments: make(chan struct{}, 1),
	}
	p := &probe{source: s, run: load.Run{Addr: host, Conns: 8, Rate: perSecond, Timeout: 20 * time.Second, Next: s.next, Done: s.done}}
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { p.run.Do(ctx) })
	p.stop = func() { cancel(); wg.Wait() }
	d.t.Cleanup(p.stop)
	return p
}

// finish stops, repeats what is left and reports how many were sent; all of them
// are acknowledged then.
func (p *probe) finish(ctx context.Context, t *testing.T) int {
	t.Helper()
	p.stop()
	p.source.stopNew()
	p.run.Rate = 0
	p.run.Do(ctx)
	if sent, stored := p.source.sent, len(p.source.acknowledged); sent != stored || sent == 0 {
		t.Errorf("%d deliveries sent, %d acknowledged in the end", sent, stored)
	}
	return p.source.sent
}

// slowest is the longest of some exchanges.
func slowest(exchanges []exchange) time.Duration {
	var longest time.Duration
	for _, e := range exchanges {
		longest = max(longest, e.ended.Sub(e.began))
	}
	return longest
}

// readiness is what a process answers at /readyz.
func readiness(ctx context.Context, p *launch.Process) (int, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.URL()+"/readyz", nil)
	if err != nil {
		return 0, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	return resp.StatusCode, resp.Body.Close()
}
