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

// queryFaults are the ways in which a vendor's queries fail, with the outcome under
// which they are counted (specification 12.11.6: queries per second and the share of
// refused ones).
var queryFaults = []struct{ name, on, off, outcome string }{
	{"time-outs", `{"query_hang":1,"hang_for":"60s"}`, `{"query_hang":0}`, "transport"},
	{"5xx", `{"query_5xx":1}`, `{"query_5xx":0}`, "transport"},
	{"429", `{"query_429":1,"retry_after":"1s"}`, `{"query_429":0}`, "throttled"},
	{"half a body", `{"query_malformed":1}`, `{"query_malformed":0}`, "malformed"},
	{"404", `{"query_404":1}`, `{"query_404":0}`, "not_found"},
	{"401", `{"query_401":1}`, `{"query_401":0}`, "auth"},
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
	lost := -1
	d.prompt = func(n int) string {
		if n == lost {
			return prompt(n) + unseen
		}
		return prompt(n)
	}
	var stop func()
	for _, fault := range queryFaults {
		figures := []figure{
			{"poll", "aivedio_provider_queries_total", fmt.Sprintf(`outcome=%q`, fault.outcome), rises},
			{"process", "aivedio_verdicts_total", `source="webhook"`, rises},
			{"poll", "aivedio_provider_queries_total", `outcome="ok"`, resumes},
			{"poll", "aivedio_provider_query_seconds_count", "", resumes},
		}
		if fault.name == "5xx" {
			lost = d.next
			d.submitMore(ctx, 1)
		}
		stop = d.feed(ctx, 300*time.Millisecond)
		o := d.outage(ctx, figures,
			func() { d.must(d.fleet.setFaults(ctx, fault.on)) },
			func() { d.must(d.fleet.setFaults(ctx, fault.off)) },
			func() bool { return d.hurry(ctx) && (fault.name != "5xx" || d.shownUnknown(ctx, lost)) })
		t.Logf("%s", fault.name)
		d.await(ctx, "queries to be answered again", func() (bool, error) { return d.hurry(ctx) && d.resumed(ctx, o), nil })
		d.recovered(ctx, o)
		stop()
	}
	d.await(ctx, "every task to end", func() (bool, error) {
		return d.hurry(ctx) && d.count(ctx, "SELECT count(*) FROM generation_tasks WHERE terminal_at IS NULL") == 0, nil
	})
	d.end(ctx)
	d.cleared(ctx, lost)
	d.audit(ctx)
}

// hurry makes every query due, so that the test need not wait for growing distances;
// it is always true.
func (d *drill) hurry(ctx context.Context) bool {
	d.t.Helper()
	_, err := d.db.Exec(ctx, "UPDATE task_attempts SET next_poll_at = now() WHERE next_poll_at > now() AND provider_task_id IS NOT NULL AND poll_lease_until IS NULL")
	d.must(err)
	return true
}

// resumed reports whether every figure of an outage has come back.
func (d *drill) resumed(ctx context.Context, o held) bool {
	d.t.Helper()
	now := d.fleet.mustRead(ctx, d.t, o.figures)
	for i, g := range o.figures {
		if !g.ok(o.before[i], o.during[i], now[i]) {
			return false
		}
	}
	return true
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
