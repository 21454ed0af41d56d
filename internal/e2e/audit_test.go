package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"
	"gopkg.in/yaml.v3"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/internal/simulator"
	"github.com/aivedio/aivedio/internal/wire"
)

// audit compares what everybody holds after the run.
func (r *run) audit(ctx context.Context, t *testing.T) {
	t.Helper()
	r.auditTasks(ctx, t)
	r.auditCreates(ctx, t)
	r.auditFaults(ctx, t)
	r.auditAssets(ctx, t)
	r.auditStream(ctx, t)
	r.auditBus(ctx, t)
	r.auditDoctor(t)
}

// auditTasks: every task is there and ready, except those that were never created.
func (r *run) auditTasks(ctx context.Context, t *testing.T) {
	t.Helper()
	counts := map[string]int{}
	rows, err := r.db.Query(ctx, "SELECT status, coalesce(error_code, '') FROM generation_tasks")
	if err != nil {
		t.Fatal(err)
	}
	var status, code string
	if _, err := pgx.ForEachRow(rows, []any{&status, &code}, func() error {
		counts[status+" "+code]++
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	want := map[string]int{"ready ": runTasks - r.desk.notCreated}
	if r.desk.notCreated > 0 {
		want["failed "+string(domain.ClassNotCreated)] = r.desk.notCreated
	}
	if diff := cmp.Diff(want, counts); diff != "" {
		t.Errorf("tasks by status and error: %s", diff)
	}
}

// auditCreates: the vendor has exactly the attempts that are known to be
// submitted, each once.
func (r *run) auditCreates(ctx context.Context, t *testing.T) {
	t.Helper()
	var stats simulator.Stats
	if err := r.fleet.ask(ctx, "/_sim/stats", &stats); err != nil {
		t.Fatal(err)
	}
	t.Logf("vendor: %d creates, %d calls, %d queries, %d downloads, webhooks %+v, faults %v", stats.Creates, stats.CreateCalls, stats.Queries, stats.Downloads, stats.Webhooks, stats.Injected)
	var submitted int
	if err := r.db.QueryRow(ctx, "SELECT count(provider_task_id) FROM task_attempts").Scan(&submitted); err != nil {
		t.Fatal(err)
	}
	if stats.Creates != submitted || submitted != r.accepted.n-r.desk.notCreated {
		t.Errorf("%d creates at the vendor, %d attempts submitted, %d tasks of which %d were never created", stats.Creates, submitted, r.accepted.n, r.desk.notCreated)
	}
	for key, n := range stats.CreatesByKey {
		if n != 1 {
			t.Errorf("%d creates of %s", n, key)
		}
	}
}

// auditFaults: the vendor was as bad as it was asked to be.
func (r *run) auditFaults(ctx context.Context, t *testing.T) {
	t.Helper()
	var stats simulator.Stats
	if err := r.fleet.ask(ctx, "/_sim/stats", &stats); err != nil {
		t.Fatal(err)
	}
	w := stats.Webhooks
	if w.Dropped == 0 || w.Duplicated == 0 || w.Reordered == 0 || stats.Injected["fail_query"] == 0 {
		t.Error("a fault that was asked for did not happen")
	}
}

// auditAssets: what is published is what the vendor served.
func (r *run) auditAssets(ctx context.Context, t *testing.T) {
	t.Helper()
	jobs, err := r.fleet.jobs(ctx)
	if err != nil {
		t.Fatal(err)
	}
	seeds := map[string]uint64{}
	for _, j := range jobs {
		seeds[j.ID] = j.Seed
	}
	rows, err := r.db.Query(ctx, "SELECT t.asset_id, a.provider_task_id FROM generation_tasks t JOIN task_attempts a ON a.id = t.current_attempt_id WHERE t.status = 'ready'")
	if err != nil {
		t.Fatal(err)
	}
	var asset domain.ID
	var job string
	if _, err := pgx.ForEachRow(rows, []any{(*[16]byte)(&asset), &job}, func() error {
		got, err := r.fleet.content(ctx, wire.AssetID(domain.AssetID{ID: asset}))
		if err == nil && !bytes.Equal(got, simulator.Video(seeds[job])) {
			err = fmt.Errorf("the asset of job %s has %d bytes that the vendor did not serve", job, len(got))
		}
		return err
	}); err != nil {
		t.Error(err)
	}
}

// content downloads an asset as a user would.
func (f *fleet) content(ctx context.Context, asset string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, f.api.URL()+"/projects/"+f.project+"/assets/"+asset+"/content", nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+f.key)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close() //nolint:errcheck // read only
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("asset %s: %s", asset, resp.Status)
	}
	return io.ReadAll(resp.Body)
}

// auditStream: the client that was cut holds exactly the events of the database,
// in order.
func (r *run) auditStream(ctx context.Context, t *testing.T) {
	t.Helper()
	r.auditFollower(t, r.storedEvents(ctx, t), r.follower)
	if r.follower.cut != r.follower.planned {
		t.Errorf("the client was cut %d times, want %d", r.follower.cut, r.follower.planned)
	}
}

// storedEvents are all events of the database, in the order of their numbers.
func (r *run) storedEvents(ctx context.Context, t *testing.T) []followed {
	t.Helper()
	rows, err := r.db.Query(ctx, "SELECT event_id, task_id, task_version FROM task_events ORDER BY event_id")
	if err != nil {
		t.Fatal(err)
	}
	var stored []followed
	var id domain.TaskID
	var e followed
	if _, err := pgx.ForEachRow(rows, []any{&e.EventID, (*[16]byte)(&id.ID), &e.TaskVersion}, func() error {
		e.TaskID = wire.TaskID(id)
		stored = append(stored, e)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d events", len(stored))
	return stored
}

// auditFollower: a client holds exactly these events.
func (r *run) auditFollower(t *testing.T, want []followed, f *follower) {
	t.Helper()
	if diff := cmp.Diff(want, f.events); diff != "" {
		t.Errorf("the client's events (%d) are not those of the database (%d):\n%s", len(f.events), len(want), diff[:min(len(diff), 4000)])
	}
}

// auditBus: the events went through the broker, and the hints through Redis.
func (r *run) auditBus(ctx context.Context, t *testing.T) {
	t.Helper()
	r.auditConfig(t)
	topic := r.auditTopic(ctx, t)
	if r.fleet.rocket.Own() && topic.repeats() == 0 {
		t.Error("a frozen broker led to no repeat: the comparison proves less than it should")
	}
	r.auditHints(ctx, t)
}

// auditTopic: every published event is in the topic, in order.
func (r *run) auditTopic(ctx context.Context, t *testing.T) topicContent {
	t.Helper()
	rows, err := r.db.Query(ctx, "SELECT event_id FROM outbox_events o WHERE NOT EXISTS (SELECT FROM outbox_queue q WHERE q.outbox_id = o.id)")
	if err != nil {
		t.Fatal(err)
	}
	published, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		t.Fatal(err)
	}
	topic := readTopic(ctx, t, r.fleet.deployment.NameServers, r.fleet.deployment.Topic)
	t.Logf("bus: offsets grew by %d, %d rows published, %d repeats", topic.offsets, len(published), topic.repeats())
	if topic.offsets != int64(len(published))+topic.repeats() || topic.stored != topic.offsets || topic.disorder > 0 {
		t.Errorf("offsets %d, messages %d, rows %d, repeats %d, out of order %d", topic.offsets, topic.stored, len(published), topic.repeats(), topic.disorder)
	}
	for _, id := range published {
		if topic.times[id] == 0 {
			t.Errorf("event %d counts as published and is not in the topic", id)
		}
	}
	return topic
}

// auditHints: Redis carried hints.
func (r *run) auditHints(ctx context.Context, t *testing.T) {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: r.fleet.redis.Addr})
	defer rdb.Close() //nolint:errcheck // read only
	info, err := rdb.Info(ctx, "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`cmdstat_s?publish:calls=(\d+)`).FindStringSubmatch(info)
	if m == nil {
		t.Fatalf("nothing was published through Redis:\n%s", info)
	}
	if n, err := strconv.Atoi(m[1]); err != nil || n == 0 {
		t.Errorf("Redis published %s messages", m[1])
	}
	t.Logf("Redis published %s messages", m[1])
}

// auditConfig: no process had a bus or a notifier of its own.
func (r *run) auditConfig(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile(r.fleet.config)
	if err != nil {
		t.Fatal(err)
	}
	var cfg struct {
		Redis    struct{ URL string }
		RocketMQ struct {
			NameServers []string `yaml:"name_servers"`
		} `yaml:"rocketmq"`
	}
	if err := yaml.Unmarshal(text, &cfg); err != nil {
		t.Fatal(err)
	}
	if cfg.Redis.URL == "" || len(cfg.RocketMQ.NameServers) == 0 {
		t.Fatalf("a bus or notifier in the process proves nothing here: %+v", cfg)
	}
}

// auditDoctor: the database holds its invariants.
func (r *run) auditDoctor(t *testing.T) {
	t.Helper()
	out, code := r.fleet.command("doctor", "--config", r.fleet.config, "--json")
	var report struct{ Violations int }
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		t.Fatalf("doctor printed no JSON: %v", err)
	}
	if code != 0 || report.Violations != 0 {
		t.Errorf("doctor ended with %d: %s", code, out)
	}
}
