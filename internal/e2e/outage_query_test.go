package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/internal/wire"
)

// queryFault is a way in which a vendor's queries fail.
type queryFault struct {
	name, on, off string
	// figures are the metrics of specification 12.11.6 that tell of it, beside the
	// rate of queries and the webhooks that carry on.
	figures []figure
}

// failed is the figure of queries with an outcome, shut that of an account's
// breaker.
func failed(outcome string) figure {
	return figure{"poll", "aivedio_provider_queries_total", fmt.Sprintf("outcome=%q", outcome), rises}
}

var shut = figure{"poll", "aivedio_provider_breaker_state", `provider="replicate"`, bulges}

var queryFaults = []queryFault{
	{"time-outs", `{"query_hang":1,"hang_for":"60s"}`, `{"query_hang":0}`, []figure{failed("transport")}},
	{"5xx", `{"query_5xx":1}`, `{"query_5xx":0}`, []figure{failed("transport"), shut}},
	{"429", `{"query_429":1,"retry_after":"1s"}`, `{"query_429":0}`, []figure{
		failed("throttled"), {"poll", "aivedio_provider_throttles_total", "", rises},
	}},
	{"half a body", `{"query_malformed":1}`, `{"query_malformed":0}`, []figure{
		failed("malformed"), {"poll", "aivedio_provider_quarantined", `provider="replicate"`, bulges},
	}},
	{"404", `{"query_404":1}`, `{"query_404":0}`, []figure{failed("not_found")}},
	{"401", `{"query_401":1}`, `{"query_401":0}`, []figure{failed("auth"), shut}},
}

// unseen is what is appended to the prompt of a job that sends no webhook.
const unseen = " [sim:off] [sim:run=6s]"

// Row "a vendor's queries are away" of specification 12.12: whatever they answer, no
// task fails of it and nothing is generated again; webhooks carry on, a job that has
// none is shown as unknown, and the first good answer clears it.
func TestOutageQueries(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), drillTimeout)
	defer cancel()
	d := newDrill(ctx, t, fleetSpec{vendor: []string{"--run", "5s"}})
	d.nudge = func() { d.hurry(ctx) }
	lost := -1
	d.prompt = func(n int) string {
		if n == lost {
			return prompt(n) + unseen
		}
		return prompt(n)
	}
	for _, fault := range queryFaults {
		t.Logf("%s", fault.name)
		var stop func()
		more := func() bool { return true }
		if fault.name == "5xx" { // an account that is shut is asked seldom: few jobs share the probes
			for d.next%5 != 1 { // what follows is all at one account
				d.submitMore(ctx, 1)
			}
			lost = d.next
			d.submitMore(ctx, 4)
			d.begun(ctx)
			more = func() bool { d.hurry(ctx); return d.shownUnknown(ctx, lost) }
		} else {
			stop = d.feed(ctx, 300*time.Millisecond)
		}
		o := d.outage(ctx, append(fault.figures, []figure{
			{"process", "aivedio_verdicts_total", `source="webhook"`, rises},
			{"poll", "aivedio_provider_queries_total", `outcome="ok"`, resumes},
			{"poll", "aivedio_provider_query_seconds_count", "", resumes},
			{"poll", "aivedio_provider_breaker_state", "", rests},
			{"poll", "aivedio_provider_quarantined", "", rests},
		}...), func() { d.must(d.fleet.setFaults(ctx, fault.on)) }, func() {
			d.must(d.fleet.setFaults(ctx, fault.off))
			if stop == nil { // probes need jobs to ask for
				stop = d.feed(ctx, 300*time.Millisecond)
			}
		}, more)
		d.recovered(ctx, o)
		stop()
	}
	d.await(ctx, "every task to end", func() (bool, error) {
		d.hurry(ctx)
		return d.count(ctx, "SELECT count(*) FROM generation_tasks WHERE terminal_at IS NULL") == 0, nil
	})
	d.end(ctx)
	d.cleared(ctx, lost)
	d.audit(ctx)
}

// begun waits until every job is at the vendor.
func (d *drill) begun(ctx context.Context) {
	d.t.Helper()
	d.await(ctx, "every job to be at the vendor", func() (bool, error) {
		d.hurry(ctx)
		return d.count(ctx, "SELECT count(*) FROM task_attempts WHERE provider_task_id IS NULL") == 0, nil
	})
}

// hurry makes every query and every probe of a shut account due, so that the test
// need not wait for distances that grow.
func (d *drill) hurry(ctx context.Context) {
	d.t.Helper()
	d.hurryQueries(ctx)
	_, err := d.db.Exec(ctx, `UPDATE provider_accounts SET breaker_until = least(breaker_until, now()), throttled_until = least(throttled_until, now()),
		quarantine_until = least(quarantine_until, now()), version = version + 1 WHERE greatest(breaker_until, throttled_until, quarantine_until) > now()`)
	d.must(err)
}

// hurryQueries makes every query due.
func (d *drill) hurryQueries(ctx context.Context) {
	d.t.Helper()
	_, err := d.db.Exec(ctx, "UPDATE task_attempts SET next_poll_at = now() WHERE next_poll_at > now() AND provider_task_id IS NOT NULL AND (poll_lease_until IS NULL OR poll_lease_until < now())")
	d.must(err)
}

// taskNumbered is the id of the n-th task of the drill.
func (d *drill) taskNumbered(ctx context.Context, n int) domain.TaskID {
	d.t.Helper()
	var id domain.TaskID
	d.must(d.db.QueryRow(ctx, "SELECT task_id FROM task_inputs WHERE prompt = $1", d.prompt(n)).Scan((*[16]byte)(&id.ID)))
	return id
}

// shownUnknown reports whether the API says of the n-th task that its status cannot
// be learned.
func (d *drill) shownUnknown(ctx context.Context, n int) bool {
	d.t.Helper()
	var answer struct {
		Task struct {
			Status       string
			UnknownSince *time.Time `json:"unknown_since"`
		}
	}
	d.get(ctx, d.fleet.api, "/tasks/"+wire.TaskID(d.taskNumbered(ctx, n)), &answer)
	return answer.Task.Status == string(domain.StatusProviderStatusUnknown) && answer.Task.UnknownSince != nil
}

// cleared: the task's status was unknown in between, and in the end it is ready.
func (d *drill) cleared(ctx context.Context, n int) {
	d.t.Helper()
	rows, err := d.db.Query(ctx, "SELECT public_payload->>'status' FROM task_events WHERE task_id = $1 ORDER BY event_id", [16]byte(d.taskNumbered(ctx, n).ID))
	d.must(err)
	statuses, err := pgx.CollectRows(rows, pgx.RowTo[string])
	d.must(err)
	d.t.Logf("the job without webhooks was %v", statuses)
	if !slices.Contains(statuses, string(domain.StatusProviderStatusUnknown)) || statuses[len(statuses)-1] != string(domain.PhaseReady) {
		d.t.Errorf("the job without webhooks was %v; want it unknown in between and ready in the end", statuses)
	}
}

// get reads an address of the project as an application would.
func (d *drill) get(ctx context.Context, from *balancer, path string, out any) {
	d.t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, from.URL()+"/projects/"+d.fleet.project+path, nil)
	d.must(err)
	req.Header.Set("Authorization", "Bearer "+d.fleet.key)
	req.Header.Set("Accept", "application/json")
	resp, err := http.DefaultClient.Do(req)
	d.must(err)
	defer resp.Body.Close() //nolint:errcheck // read only
	if resp.StatusCode != http.StatusOK {
		d.t.Fatalf("%s answered %s", path, resp.Status)
	}
	d.must(json.NewDecoder(resp.Body).Decode(out))
}
