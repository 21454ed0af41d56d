package app_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aivedio/aivedio/adapters/memory"
	"github.com/aivedio/aivedio/app"
	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// All roles together, in a bubble of their own time: tasks go from the client to
// ready, half of them by webhook and half by polls alone; every event reaches the
// notifier once and in order; and everything stops when it is told to.
func TestAllRolesTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		b.env.Now = time.Now
		b.store = memory.NewStore(time.Now)
		b.must(seed(b))
		b.build(b.store, b.store)
		bus := memory.NewBus(memory.BusConfig{Retries: b.store})
		n := &fakeNotifier{}
		stop := start(b, bus, n)

		began := map[string]time.Time{}
		b.vendor.onQuery = func(req ports.QueryRequest) (ports.QueryResult, error) {
			id := req.Attempt.ProviderTaskID
			if began[id].IsZero() {
				began[id] = time.Now()
			}
			if time.Since(began[id]) < 20*time.Second {
				return ports.QueryResult{Observation: domain.Observation{ProviderTaskID: id, Status: domain.ObservedRunning}}, nil
			}
			return succeeded(req)
		}
		var tasks []domain.TaskID
		for i := range 20 {
			view := b.create()
			tasks = append(tasks, view.Task.ID)
			if i%2 == 0 {
				go func() {
					<-time.After(3 * time.Second)
					b.deliver(view.Attempt.ID, fmt.Sprintf(`{"event":"e%d","status":"succeeded","output":"https://x.example/o.mp4"}`, i))
				}()
			}
		}
		<-time.After(5 * time.Minute)
		synctest.Wait()
		for _, task := range tasks {
			b.want(task, ready, domain.AttemptSucceeded)
		}
		head, err := b.store.Head(b.ctx(), b.project.ID)
		b.must(err)
		stop()
		if want := numbers(head.EventID); !slices.Equal(n.got, want) {
			t.Errorf("notified %d events, the stream has %d: %v", len(n.got), len(want), n.got)
		}
		for attempt, creates := range b.vendor.creates {
			if creates != 1 {
				t.Errorf("%d creates of %s", creates, attempt)
			}
		}
	})
}

// seed makes the bundle's tenant and project in its present store.
func seed(b *bundle) error {
	tenant, err := b.store.CreateTenant(b.ctx(), ports.Tenant{ID: b.project.TenantID, Name: "acme", Credits: 1000})
	if err != nil {
		return err
	}
	b.project.TenantID = tenant.ID
	_, err = b.store.CreateProject(b.ctx(), b.project)
	return err
}

// start runs every role and returns how to end them.
func start(b *bundle, bus ports.Bus, n ports.Notifier) (stop func()) {
	b.t.Helper()
	end := run(b, b.submitter, b.process, b.poll, b.sweep, newRelay(b, bus, b.store, app.RelayConfig{}),
		newDispatch(b.t, b.env, bus, n, app.DispatchConfig{}), newCommands(b).sender,
		newMedia(b, download(func(req *http.Request) (ports.Download, error) { return b.download(req) }), &shelf{}))
	return func() {
		end()
		if err := bus.Close(); err != nil {
			b.t.Error(err)
		}
	}
}

// run starts roles in the bubble and returns how to end them.
func run(b *bundle, roles ...interface{ Run(context.Context) error }) (stop func()) {
	b.t.Helper()
	ctx, cancel := context.WithCancel(b.ctx())
	var wg sync.WaitGroup
	for _, role := range roles {
		wg.Go(func() {
			if err := role.Run(ctx); err != nil {
				b.t.Errorf("%T: %v", role, err)
			}
		})
	}
	synctest.Wait()
	return func() {
		cancel()
		wg.Wait()
	}
}

func numbers(n int64) []int64 {
	all := make([]int64, n)
	for i := range all {
		all[i] = int64(i) + 1
	}
	return all
}
