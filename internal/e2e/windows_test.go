package e2e

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aivedio/aivedio/adapters/pgstore"
	"github.com/aivedio/aivedio/adapters/redisnotify"
	"github.com/aivedio/aivedio/adapters/stream"
	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/internal/testenv"
	"github.com/aivedio/aivedio/internal/wire"
	"github.com/aivedio/aivedio/ports"
	"github.com/aivedio/aivedio/schema"
)

// patience bounds every wait of these tests; nothing waits that long unless it
// fails.
const patience = 30 * time.Second

// gateway is a hub between a real PostgreSQL and a real Redis, behind a real
// HTTP server.
type gateway struct {
	t        *testing.T
	store    *pgstore.Store
	redis    *testenv.RedisServer
	notifier *redisnotify.Notifier
	hub      *stream.Hub
	url      string
	tenant   domain.TenantID
	project  domain.ProjectID
}

// newGateway starts one; several may share a Redis. change may set limits and the failpoint.
func newGateway(t *testing.T, redis *testenv.RedisServer, change func(*stream.Config)) *gateway {
	t.Helper()
	g := &gateway{t: t, redis: redis, tenant: domain.TenantID{ID: wire.NewID()}, project: domain.ProjectID{ID: wire.NewID()}}
	migrate := func(ctx context.Context, url string) error {
		_, err := pgstore.Migrate(ctx, url, pgstore.MigrateOptions{})
		return err
	}
	db := testenv.PostgresWith(t, migrate, schema.Hash()+time.Now().UTC().Format(time.DateOnly))
	keyring := pgstore.Keyring{Current: "1", Keys: map[string][]byte{"1": []byte("0123456789abcdef0123456789abcdef")}}
	ctx := context.WithoutCancel(t.Context())
	var err error
	if g.store, err = pgstore.Open(ctx, pgstore.Config{URL: db.URL, Conns: 4, CallbackConns: 1, Keyring: keyring}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.store.Close)
	rdb, err := redisnotify.Dial(redisnotify.ClientOptions{URL: "redis://" + g.redis.Addr + "/0"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = rdb.Close() })
	g.notifier = redisnotify.NewNotifier(rdb, redisnotify.NotifierConfig{Prefix: "t" + wire.NewID().String() + ":", PingEvery: 200 * time.Millisecond})
	g.seed(ctx)
	g.start(change)
	return g
}

func (g *gateway) seed(ctx context.Context) {
	now := time.Now().UTC()
	if _, err := g.store.CreateTenant(ctx, ports.Tenant{ID: g.tenant, Name: g.tenant.String(), Credits: 1 << 20, CreatedAt: now}); err != nil {
		g.t.Fatal(err)
	}
	project := ports.Project{ID: g.project, TenantID: g.tenant, Name: "main", OnLateSuccess: domain.LateSuccessKeep, CreatedAt: now}
	if _, err := g.store.CreateProject(ctx, project); err != nil {
		g.t.Fatal(err)
	}
}

func (g *gateway) start(change func(*stream.Config)) {
	cfg := stream.Config{Events: g.store, Notifier: g.notifier}
	if change != nil {
		change(&cfg)
	}
	hub, err := stream.New(cfg)
	if err != nil {
		g.t.Fatal(err)
	}
	g.hub = hub
	ctx, cancel := context.WithCancel(context.WithoutCancel(g.t.Context()))
	done := make(chan error, 1)
	go func() { done <- hub.Run(ctx) }()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := hub.ServeEvents(w, r, stream.StreamRequest{Project: g.project}); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	}))
	g.url = server.URL
	g.t.Cleanup(func() {
		server.CloseClientConnections()
		cancel()
		if err := <-done; err != nil {
			g.t.Error(err)
		}
		server.Close()
		_ = g.notifier.Close()
	})
}

// commit stores a task, which is one event, and returns that event as the relay
// would read it.
func (g *gateway) commit() ports.StoredEvent {
	g.t.Helper()
	task, attempt, now := domain.TaskID{ID: wire.NewID()}, domain.AttemptID{ID: wire.NewID()}, time.Now().UTC()
	token := sha256.Sum256([]byte(attempt.String()))
	ctx := context.WithoutCancel(g.t.Context())
	made, err := g.store.Create(ctx, ports.CreateParams{
		Task: domain.Task{
			ID: task, TenantID: g.tenant, ProjectID: g.project, UserID: domain.UserID{ID: wire.NewID()},
			OnLateSuccess: domain.LateSuccessKeep, TraceID: domain.TraceID{ID: wire.NewID()}, CreatedAt: now, UpdatedAt: now,
		},
		Attempt: domain.Attempt{
			ID: attempt, TaskID: task, Provider: "acme", Model: "m", AccountID: "main", BaseURL: "https://acme.example",
			ClientRequestID: attempt.String(), Credits: 1, NextSubmitAt: &now,
		},
		TokenHash: token[:], Input: ports.TaskInput{Prompt: "p"},
	})
	if err != nil {
		g.t.Error(err)
		return ports.StoredEvent{}
	}
	page, err := g.store.After(ctx, g.project, domain.Cursor{EventID: made.View.Task.LastEventID - 1}, 1)
	if err != nil || len(page.Events) != 1 {
		g.t.Errorf("read the event back: %+v, %v", page, err)
		return ports.StoredEvent{}
	}
	return page.Events[0]
}

func (g *gateway) notify(events ...ports.StoredEvent) {
	g.t.Helper()
	if err := g.notifier.Notify(context.WithoutCancel(g.t.Context()), events); err != nil {
		g.t.Errorf("notify: %v", err)
	}
}

// reader follows the stream over HTTP.
type reader struct {
	t   *testing.T
	ids chan int64
}

// follow opens a stream from the beginning.
func (g *gateway) follow() *reader {
	g.t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(g.t.Context()))
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, g.url+"?after=0", nil)
	if err != nil {
		g.t.Fatal(err)
	}
	req.Header.Set("Accept", "text/event-stream")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		g.t.Fatal(err)
	}
	r := &reader{t: g.t, ids: make(chan int64, 1024)}
	var reading sync.WaitGroup
	reading.Go(func() {
		scanner := bufio.NewScanner(resp.Body)
		for scanner.Scan() {
			data, ok := strings.CutPrefix(scanner.Text(), "data: ")
			var e wire.Event
			if ok && json.Unmarshal([]byte(data), &e) == nil && e.EventID > 0 {
				r.ids <- e.EventID
			}
		}
	})
	g.t.Cleanup(func() {
		cancel()
		_ = resp.Body.Close()
		reading.Wait()
	})
	return r
}

// want reads n events and compares their numbers.
func (r *reader) want(ids ...int64) {
	r.t.Helper()
	var got []int64
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	for len(got) < len(ids) {
		select {
		case id := <-r.ids:
			got = append(got, id)
		case <-timeout.C:
			r.t.Fatalf("events %v after %s, want %v", got, patience, ids)
		}
	}
	if diff := cmp.Diff(ids, got); diff != "" {
		r.t.Fatalf("events (-want +got):\n%s", diff)
	}
}

// TestStreamWindows commits an event in each of the five windows between
// subscription and live delivery, on real PostgreSQL and Redis: it arrives exactly
// once and in order, whether its hint comes at once or only when all is live. The
// delta query is off, so that it cannot help.
func TestStreamWindows(t *testing.T) {
	t.Parallel()
	redis := testenv.Redis(t)
	for _, at := range stream.Points() {
		for _, late := range []bool{false, true} {
			t.Run(fmt.Sprintf("after %s/late hint %v", at, late), func(t *testing.T) {
				t.Parallel()
				testStreamWindow(t, redis, at, late)
			})
		}
	}
}

func testStreamWindow(t *testing.T, redis *testenv.RedisServer, at stream.Point, late bool) {
	var g *gateway
	var once sync.Once
	inWindow := make(chan ports.StoredEvent, 1)
	ready := make(chan struct{})
	failpoint := func(p stream.Point) {
		<-ready
		if p != at {
			return
		}
		once.Do(func() {
			e := g.commit()
			if !late {
				g.notify(e)
				g.notify(e) // a repetition changes nothing
			}
			inWindow <- e
		})
	}
	g = newGateway(t, redis, func(c *stream.Config) {
		c.Delta, c.DeltaUnhealthy, c.Failpoint = time.Hour, time.Hour, failpoint
	})
	close(ready)
	g.notify(g.commit(), g.commit())
	r := g.follow()
	select {
	case e := <-inWindow:
		if late {
			g.notify(e)
		}
	case <-time.After(patience):
		t.Fatal("the failpoint was not reached")
	}
	r.want(1, 2, 3)
	g.notify(g.commit())
	r.want(4) // and nothing twice before it
}

// TestStreamLostHint never sends the hints of two events: the delta query
// delivers each within 16 seconds.
func TestStreamLostHint(t *testing.T) {
	t.Parallel()
	g := newGateway(t, testenv.Redis(t), nil)
	r := g.follow()
	g.notify(g.commit())
	r.want(1)
	for id := int64(2); id <= 3; id++ { // the second one comes right after a query, so it waits for the next
		lost := time.Now()
		g.commit()
		r.want(id)
		took := time.Since(lost)
		t.Logf("event %d, without a hint, arrived after %s", id, took)
		if took > 16*time.Second {
			t.Errorf("event %d took %s, more than 16 s", id, took)
		}
	}
}

// TestStreamRedisOutage stops Redis under a live stream: events arrive by the
// delta query meanwhile, and by hints again afterwards.
func TestStreamRedisOutage(t *testing.T) {
	t.Parallel()
	g := newGateway(t, testenv.Redis(t), nil)
	r := g.follow()
	g.notify(g.commit())
	r.want(1)
	g.redis.Stop()
	e := g.commit()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := g.notifier.Notify(ctx, []ports.StoredEvent{e}); err == nil {
		t.Error("a hint was taken without a Redis")
	} else if errors.Is(err, context.Canceled) {
		t.Errorf("notify: %v", err)
	}
	r.want(2)
	g.redis.Start()
	g.commit()
	r.want(3)
}
