package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/internal/wire"
)

// pastRetention is an age, in days, beyond that up to which events are kept.
const pastRetention = 92

// Row "events are past their retention" of specification 12.12: a client whose cursor
// lies in a partition that was dropped is told so, takes a snapshot, and has the same
// state as everybody else.
func TestOutageRetention(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), drillTimeout)
	defer cancel()
	d := newDrill(ctx, t, fleetSpec{})
	d.submitMore(ctx, 10)
	d.end(ctx)
	// Events of one transaction have one time, and so one partition.
	oldest := d.count(ctx, `SELECT max(e.event_id) FROM task_events e JOIN task_events n ON n.event_id = e.event_id + 1
		WHERE n.created_at > e.created_at AND e.event_id <= (SELECT max(event_id) * 2 / 3 FROM task_events)`)
	d.age(ctx, oldest)

	// A client that follows slowly is somewhere in what is old.
	var page eventPage
	d.get(ctx, d.fleet.gateway, fmt.Sprintf("/events?after=0&limit=%d", oldest/2), &page)
	cursor := page.Cursor
	d.get(ctx, d.fleet.gateway, "/events?limit=1&after="+url.QueryEscape(cursor), &page)
	if page.Reset || len(page.Events) != 1 {
		t.Fatalf("before the retention the cursor %s gave %+v", cursor, page)
	}

	d.expire(ctx)
	for _, behind := range []string{cursor, "0"} {
		d.get(ctx, d.fleet.gateway, "/events?after="+url.QueryEscape(behind), &page)
		if !page.Reset || page.Cursor == "" || len(page.Events) != 0 {
			t.Errorf("the long-poll after %s answered %+v, want a reset", behind, page)
		}
	}
	client := d.newViewer(ctx, cursor)
	client.reset(ctx)
	d.submitMore(ctx, 5)
	d.end(ctx)
	client.catchUp(ctx)

	d.auditEnds(ctx, t)
	d.auditCreates(ctx, t)
	d.auditAcknowledged(ctx)
	d.auditLedger(ctx)
	d.auditSuffix(ctx)
	d.auditDoctor(t)
	d.auditLogs()
}

// age moves the first events and observations of the project into partitions that
// are past their time.
func (d *drill) age(ctx context.Context, through int) {
	d.t.Helper()
	day := time.Now().UTC().AddDate(0, 0, -pastRetention)
	for _, table := range []string{"task_events", "observations"} {
		for n := range 2 { // what happened around midnight lies in two
			from := day.AddDate(0, 0, n-1)
			_, err := d.db.Exec(ctx, fmt.Sprintf("CREATE TABLE %[1]s_p%[2]s PARTITION OF %[1]s FOR VALUES FROM ('%[3]s+00') TO ('%[4]s+00')",
				table, from.Format("20060102"), from.Format(time.DateOnly), from.AddDate(0, 0, 1).Format(time.DateOnly)))
			d.must(err)
		}
	}
	old := fmt.Sprintf("created_at - interval '%d days'", pastRetention)
	_, err := d.db.Exec(ctx, "UPDATE task_events SET created_at = "+old+" WHERE event_id <= $1", through)
	d.must(err)
	_, err = d.db.Exec(ctx, "UPDATE observations SET created_at = "+old)
	d.must(err)
}

// expire lets the sweep drop what is past its time. It looks when it starts.
func (d *drill) expire(ctx context.Context) {
	d.t.Helper()
	sweep := d.fleet.processes["sweep"][0]
	d.must(sweep.Stop(stopGrace))
	d.must(sweep.Start(ctx))
	d.await(ctx, "the old partitions to be dropped", func() (bool, error) {
		return d.count(ctx, "SELECT count(*) FROM pg_inherits WHERE to_date(right(inhrelid::regclass::text, 8), 'YYYYMMDD') < current_date - 90") == 0, nil
	})
}

// auditSuffix: browsers that were there all the time hold the events that are left,
// behind those that are gone.
func (d *drill) auditSuffix(ctx context.Context) {
	d.t.Helper()
	stored := d.storedEvents(ctx, d.t)
	for _, b := range d.browsers {
		if len(b.events) <= len(stored) {
			d.t.Errorf("a browser has %d events, the database %d: nothing was dropped", len(b.events), len(stored))
			continue
		}
		if diff := cmp.Diff(stored, b.events[len(b.events)-len(stored):]); diff != "" {
			d.t.Errorf("a browser's last events are not those of the database: %s", diff)
		}
	}
}

// eventPage is the answer of a long-poll.
type eventPage struct {
	Events []struct {
		TaskID      string `json:"task_id"`
		TaskVersion int    `json:"task_version"`
		Status      string
	}
	Cursor string
	Reset  bool
}

// viewer is a client that does what a reset asks of it.
type viewer struct {
	d      *drill
	cursor string
	tasks  map[string]view
}

// view is what a client shows of a task.
type view struct {
	Version int
	Status  string
}

func (d *drill) newViewer(_ context.Context, cursor string) *viewer {
	return &viewer{d: d, cursor: cursor, tasks: map[string]view{}}
}

// reset follows the stream from the cursor, is told to start anew, and takes a
// snapshot.
func (v *viewer) reset(ctx context.Context) {
	v.d.t.Helper()
	notice := v.firstWord(ctx)
	if notice.kind != "reset" || notice.Cursor == "" || notice.Reason == "" {
		v.d.t.Fatalf("the stream after %s began with %+v, want a reset", v.cursor, notice)
	}
	v.snapshot(ctx)
}

// word is an event of the stream itself.
type word struct {
	kind   string
	Cursor string
	Reason string
}

// firstWord is the first event of a new stream.
func (v *viewer) firstWord(ctx context.Context) (w word) {
	v.d.t.Helper()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	f := v.d.fleet
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, f.gateway.URL()+"/projects/"+f.project+"/events", nil)
	v.d.must(err)
	req.Header.Set("Authorization", "Bearer "+f.key)
	req.Header.Set("Accept", "text/event-stream")
	req.Header.Set("Last-Event-ID", v.cursor)
	resp, err := http.DefaultClient.Do(req)
	v.d.must(err)
	defer resp.Body.Close() //nolint:errcheck // read only
	scanner := bufio.NewScanner(resp.Body)
	for scanner.Scan() {
		if kind, ok := strings.CutPrefix(scanner.Text(), "event: "); ok {
			w.kind = kind
		}
		if data, ok := strings.CutPrefix(scanner.Text(), "data: "); ok {
			v.d.must(json.Unmarshal([]byte(data), &w))
			return w
		}
	}
	v.d.t.Fatalf("the stream ended without a word: %v", scanner.Err())
	return w
}

// snapshot reads all tasks, page by page, and the position of the first page.
func (v *viewer) snapshot(ctx context.Context) {
	v.d.t.Helper()
	v.cursor, v.tasks = "", map[string]view{}
	for after := ""; ; {
		var list struct {
			Tasks []struct {
				ID, Status  string
				TaskVersion int `json:"task_version"`
			}
			Cursor, Next string
		}
		v.d.get(ctx, v.d.fleet.api, "/tasks?limit=4&after="+url.QueryEscape(after), &list)
		if v.cursor == "" {
			v.cursor = list.Cursor
		}
		for _, task := range list.Tasks {
			v.tasks[task.ID] = view{task.TaskVersion, task.Status}
		}
		if after = list.Next; after == "" {
			break
		}
	}
	v.compare(ctx)
}

// catchUp reads what has happened since, and compares.
func (v *viewer) catchUp(ctx context.Context) {
	v.d.t.Helper()
	for {
		var page eventPage
		v.d.get(ctx, v.d.fleet.gateway, "/events?wait=0s&after="+url.QueryEscape(v.cursor), &page)
		if page.Reset {
			v.d.t.Fatalf("the cursor of the snapshot, %s, was refused", v.cursor)
		}
		for _, e := range page.Events {
			if e.TaskVersion > v.tasks[e.TaskID].Version {
				v.tasks[e.TaskID] = view{e.TaskVersion, e.Status}
			}
		}
		v.cursor = page.Cursor
		if len(page.Events) == 0 {
			break
		}
	}
	v.compare(ctx)
}

// compare: the client shows what the database holds.
func (v *viewer) compare(ctx context.Context) {
	v.d.t.Helper()
	want := map[string]view{}
	rows, err := v.d.db.Query(ctx, "SELECT id, version, status FROM generation_tasks")
	v.d.must(err)
	for rows.Next() {
		var id domain.TaskID
		var w view
		v.d.must(rows.Scan((*[16]byte)(&id.ID), &w.Version, &w.Status))
		want[wire.TaskID(id)] = w
	}
	v.d.must(rows.Err())
	if diff := cmp.Diff(want, v.tasks); diff != "" {
		v.d.t.Errorf("the client shows something else than the database holds: %s", diff)
	}
}
