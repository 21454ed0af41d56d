package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/aivedio/aivedio/internal/e2e/launch"
)

// The size of the distributed run.
const (
	runTasks = 200
	runCuts  = 50
	// runLines is within how many lines of the stream the cuts fall. A task has at
	// least seven events of four lines each.
	runLines = runTasks * 7 * 4
	// runEvery is the distance of submits: jobs of all ages are under way when a
	// process dies.
	runEvery   = 60 * time.Millisecond
	runTimeout = 140 * time.Second
)

// runSeed decides kills and faults; AIVEDIO_TEST_SEED sets another one.
func runSeed(t *testing.T) uint64 {
	t.Helper()
	text := os.Getenv("AIVEDIO_TEST_SEED")
	if text == "" {
		return 3
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil || seed == 0 {
		t.Fatalf("AIVEDIO_TEST_SEED must be a number above 0: %q", text)
	}
	return seed
}

// Two processes of each role, real services, a vendor that loses, repeats and
// reorders, a kill in every role and a client on a bad line: at the end every task
// is terminal, every job was created once, the database holds its invariants, and
// the client has exactly the events of the database.
func TestDistributed(t *testing.T) {
	seed := runSeed(t)
	rng := rand.New(rand.NewPCG(seed, 3))
	f := newFleet(t, 2, []string{
		"--seed", strconv.FormatUint(seed, 10), "--queue", "500ms", "--run", "2s",
		"--fault-drop-webhook", "0.2", "--fault-duplicate-webhook", "0.2", "--fault-reorder-webhook", "0.2", "--fault-fail-query", "0.1",
	})
	began := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), runTimeout)
	defer cancel()
	r := newRun(ctx, t, f, runCuts, runLines, rng)
	stopFollowing := r.follow(ctx, t)
	err := r.play(ctx, t)
	if err == nil {
		err = r.settle(ctx)
	}
	stopFollowing()
	t.Logf("seed %d: %s", seed, r.summary(time.Since(began)))
	if err != nil {
		t.Fatal(err)
	}
	r.audit(ctx, t)
	f.stopAll()
	t.Logf("the whole run took %v", time.Since(began).Round(time.Second))
}

// run is one distributed run.
type run struct {
	fleet    *fleet
	db       *pgxpool.Pool
	rng      *rand.Rand
	desk     *desk
	follower *follower
	// prompt is that of the n-th task; no two are the same.
	prompt   func(n int) string
	accepted progress
	retried  atomic.Int64 // submits that had to be sent again
}

func prompt(n int) string { return fmt.Sprintf("a red kite, number %d", n) }

func newRun(ctx context.Context, t *testing.T, f *fleet, cuts, within int, rng *rand.Rand) *run {
	t.Helper()
	db, err := pgxpool.New(ctx, f.deployment.Database)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	r := &run{
		fleet: f, db: db, rng: rng, desk: newDesk(t, f, db), prompt: prompt,
		follower: newFollower(f.gateway.URL(), f.project, f.key, cuts, within, rng),
	}
	r.accepted.changed = make(chan struct{})
	return r
}

// follow starts the client; stop ends it.
func (r *run) follow(ctx context.Context, t *testing.T) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- r.follower.run(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// progress counts accepted tasks and wakes those who wait for a number.
type progress struct {
	mu      sync.Mutex
	n       int
	changed chan struct{}
}

func (p *progress) add() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.n++
	close(p.changed)
	p.changed = make(chan struct{})
}

// now is the number so far.
func (p *progress) now() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.n
}

func (p *progress) reach(ctx context.Context, n int) error {
	for {
		p.mu.Lock()
		have, changed := p.n, p.changed
		p.mu.Unlock()
		if have >= n {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("only %d of %d tasks were accepted: %w", have, n, ctx.Err())
		}
	}
}

// play submits all tasks, kills one process of each role and freezes the broker
// meanwhile. A moment is a number of accepted tasks, so that it means the same on a
// slow machine.
func (r *run) play(ctx context.Context, t *testing.T) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return r.submitAll(ctx) })
	// A relay that is dead sends nothing twice: it dies after the freeze.
	freeze := 10 + r.rng.IntN(30)
	thaw := freeze + 80
	for _, role := range fleetRoles {
		moment := 10 + r.rng.IntN(runTasks-50)
		if role == "relay" {
			moment = max(moment, thaw+r.rng.IntN(30))
		}
		o := outage{process: r.fleet.processes[role][r.rng.IntN(2)], from: moment, to: moment + 5 + r.rng.IntN(25)}
		if role == "submit" {
			g.Go(func() error { return r.killCreating(ctx, o) })
		} else {
			g.Go(func() error { return r.kill(ctx, o) })
		}
	}
	// Sends time out meanwhile and are stored all the same: they are repeated.
	if r.fleet.rocket.Own() && r.accepted.reach(ctx, freeze) == nil {
		r.fleet.rocket.PauseBroker()
		err := r.accepted.reach(ctx, thaw)
		r.fleet.rocket.ResumeBroker()
		if err != nil {
			t.Error(err)
		}
	}
	return g.Wait()
}

// outage is the time without a process, in accepted tasks.
type outage struct {
	process  *launch.Process
	from, to int
}

// kill has a process die and come back later as another one.
func (r *run) kill(ctx context.Context, o outage) error {
	if err := r.accepted.reach(ctx, o.from); err != nil {
		return err
	}
	if err := o.process.Kill(); err != nil {
		return err
	}
	return r.revive(ctx, o)
}

func (r *run) revive(ctx context.Context, o outage) error {
	if err := r.accepted.reach(ctx, o.to); err != nil {
		return err
	}
	before := o.process.PIDs()
	if err := o.process.Start(ctx); err != nil {
		return err
	}
	if now := o.process.PID(); now == 0 || slices.Contains(before, now) {
		return fmt.Errorf("%s came back as pid %d of %v", o.process.Name(), now, before)
	}
	return nil
}

// killCreating has a submit process die while creates are under way on both sides
// of the vendor.
func (r *run) killCreating(ctx context.Context, o outage) error {
	if err := r.accepted.reach(ctx, o.from); err != nil {
		return err
	}
	// Half of the jobs that are accepted now never send a callback: of those whose
	// answer is lost, some are learned from one and some only by looking.
	if err := r.fleet.setFaults(ctx, `{"webhooks_off":0.5}`); err != nil {
		return err
	}
	const held = 16
	r.fleet.gate.hold(held)
	defer r.fleet.gate.release()
	// The creates must not run into their own time-out, so the wait is shorter.
	holding, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	r.fleet.gate.until(holding, func(c gateCounts) bool { return c.Held >= held })
	if err := o.process.Kill(); err != nil {
		return err
	}
	noticing, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	r.fleet.gate.until(noticing, func(c gateCounts) bool { return c.Unsent > 0 && c.Unheard > 0 })
	r.fleet.gate.release()
	if err := r.fleet.setFaults(ctx, `{"webhooks_off":0}`); err != nil {
		return err
	}
	return r.revive(ctx, o)
}

// submitAll sends the tasks in an even stream, each until it is accepted.
func (r *run) submitAll(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	tick := time.NewTicker(runEvery)
	defer tick.Stop()
	for n := range runTasks {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return g.Wait()
		}
		g.Go(func() error { return r.submit(ctx, n) })
	}
	return g.Wait()
}

// submit sends a task again until it is answered: the key makes that safe.
func (r *run) submit(ctx context.Context, n int) error {
	provider, model := "replicate", "sim/video"
	if n%5 == 0 { // its callbacks come to the account's one address and carry no state
		provider, model = "openaivideo", "sora-2"
	}
	body := fmt.Sprintf(`{"provider":%q,"model":%q,"input":{"prompt":%q,"seed":%d}}`, provider, model, r.prompt(n), n+1)
	key := fmt.Sprintf("shot-%d", n)
	return await(ctx, key+" to be accepted", func() (bool, error) {
		status, answer, err := r.fleet.post(ctx, "/projects/"+r.fleet.project+"/tasks", key, body)
		switch {
		case err != nil || status >= http.StatusInternalServerError:
			r.retried.Add(1)
			return false, nil //nolint:nilerr // a process that is being restarted: again
		case status != http.StatusCreated && status != http.StatusOK:
			return false, fmt.Errorf("submit %d answered %d: %s", n, status, answer)
		}
		return true, r.repeat(ctx, n, key, body, answer)
	})
}

// repeat sends some of the accepted submits again: the answer names the same task.
func (r *run) repeat(ctx context.Context, n int, key, body, answer string) error {
	r.accepted.add()
	if n%10 != 0 {
		return nil
	}
	status, again, err := r.fleet.post(ctx, "/projects/"+r.fleet.project+"/tasks", key, body)
	if err != nil || status >= http.StatusInternalServerError {
		return nil //nolint:nilerr // a process that dies answers nothing, one without a database 503
	}
	var first, second struct{ Task struct{ ID string } }
	if err := errors.Join(json.Unmarshal([]byte(answer), &first), json.Unmarshal([]byte(again), &second)); err != nil {
		return fmt.Errorf("submit %d: %w", n, err)
	}
	if first.Task.ID != second.Task.ID || first.Task.ID == "" {
		return fmt.Errorf("submit %d made task %q and, sent again, task %q", n, first.Task.ID, second.Task.ID)
	}
	return nil
}

func (f *fleet) post(ctx context.Context, path, key, body string) (int, string, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, f.api.URL()+path, bytes.NewReader([]byte(body)))
	if err != nil {
		return 0, "", err
	}
	req.Header.Set("Authorization", "Bearer "+f.key)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", key)
	req.Close = true // a connection of its own goes to the next process, dead or alive
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close() //nolint:errcheck // read only
	text, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	return resp.StatusCode, string(text), err
}

// settle waits until every task is terminal, deciding what only a person can, and
// until the last event has reached the client and the bus.
func (r *run) settle(ctx context.Context) error {
	decideAt := time.Now()
	err := await(ctx, "every task to be terminal", func() (bool, error) {
		var open, unknown int
		err := r.db.QueryRow(ctx, `SELECT count(*) FILTER (WHERE terminal_at IS NULL),
			(SELECT count(*) FROM cases WHERE kind = 'submit_unknown' AND closed_at IS NULL) FROM generation_tasks`).Scan(&open, &unknown)
		if err != nil || open == 0 {
			return err == nil, err
		}
		// Not in a hurry: a callback may still tell what a person would look up.
		if unknown > 0 && open == unknown || time.Since(decideAt) > 30*time.Second {
			decideAt = time.Now()
			return false, r.desk.decide(ctx)
		}
		return false, nil
	})
	if err != nil {
		return fmt.Errorf("%w\n%s", err, r.open())
	}
	return await(ctx, "the last event to be delivered", func() (bool, error) {
		var head, pending int64
		err := r.db.QueryRow(ctx, `SELECT (SELECT last_event_id FROM project_streams),
			(SELECT count(*) FROM outbox_queue)`).Scan(&head, &pending)
		have, _ := r.follower.head()
		return have >= head && pending == 0, err
	})
}

// open describes what has not ended, for the message of a failure.
func (r *run) open() string {
	var text string
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.fleet.t.Context()), 5*time.Second)
	defer cancel()
	err := r.db.QueryRow(ctx, `SELECT coalesce(json_agg(row_to_json(o)), '[]')::text FROM (
		SELECT t.status, t.stage, a.id, a.status AS attempt, a.next_poll_at, a.poll_lease_until, a.poll_failures, a.submit_lease_until, a.provider_task_id, now(),
			(SELECT json_agg(row_to_json(p)) FROM operations p WHERE p.attempt_id = a.id) AS operations
		FROM generation_tasks t JOIN task_attempts a ON a.id = t.current_attempt_id WHERE t.terminal_at IS NULL LIMIT 10) o`).Scan(&text)
	if err != nil {
		return err.Error()
	}
	return text
}

func (r *run) summary(took time.Duration) string {
	f := r.fleet
	_, cuts := r.follower.head()
	return fmt.Sprintf("%d tasks in %v; %d submits sent again; connections refused by dead processes: api %d, callback %d, gateway %d; "+
		"creates held %+v; decided by a person: %d created, %d not created; the client was cut %d times and lost its gateway %d times",
		r.accepted.n, took.Round(time.Second), r.retried.Load(), f.api.refused.Load(), f.callback.refused.Load(), f.gateway.refused.Load(),
		f.gate.sum(), r.desk.created, r.desk.notCreated, cuts, r.follower.lost)
}
