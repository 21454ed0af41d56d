package app_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aivedio/aivedio/adapters/memory"
	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// dice is a seeded chance that many goroutines share.
type dice struct {
	mu sync.Mutex
	r  *rand.Rand
}

func (d *dice) percent(p int) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.r.IntN(100) < p
}

func (d *dice) within(limit time.Duration) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	return time.Duration(d.r.Int64N(int64(limit)))
}

// Everything goes wrong now and then, in every role at once: transactions fail
// before and after their commit, answers of the vendor are lost, deliveries are
// dropped, repeated and late, downloads break, hints fail. At the end every task
// is ready, made once, and the stream has no gap.
func TestAllRolesUnderFaults(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { faulty(t, &dice{r: rand.New(rand.NewPCG(seed, 1))}) })
		})
	}
}

func faulty(t *testing.T, d *dice) {
	b := setup(t)
	b.env.Now, b.env.Jitter = time.Now, func() float64 { return 0.8 + float64(d.within(400))/1000 }
	b.store = memory.NewStore(time.Now)
	b.must(seed(b))
	b.vendor.caps.Policy.CanLookup, b.mediaTries = true, 100
	b.build(&flaky{Store: b.store, after: func(int, []ports.Item) error {
		if d.percent(3) {
			return ports.ErrUnavailable // committed, and nobody knows
		}
		return nil
	}}, b.store)
	bus := memory.NewBus(memory.BusConfig{Retries: b.store})
	n := &fakeNotifier{}
	stop := start(b, bus, n)
	unreliable(b, d)

	var tasks []ports.TaskView
	for range 20 {
		tasks = append(tasks, b.create())
		<-time.After(d.within(2 * time.Second))
	}
	b.store.FailBeforeCommit(func() error {
		if d.percent(5) {
			return ports.ErrUnavailable
		}
		return nil
	})
	<-time.After(20 * time.Minute)
	b.store.FailBeforeCommit(nil)
	<-time.After(20 * time.Minute)
	synctest.Wait()
	stop()

	for _, task := range tasks {
		b.want(task.Task.ID, ready, domain.AttemptSucceeded)
	}
	for attempt, creates := range b.vendor.creates {
		if creates != 1 && b.vendor.jobs[attempt.String()] != "" && creates > b.vendor.notSent[attempt]+1 {
			t.Errorf("%d creates of %s, %d of them not sent", creates, attempt, b.vendor.notSent[attempt])
		}
	}
	if len(b.vendor.jobs) != len(tasks) {
		t.Errorf("%d jobs at the vendor for %d tasks", len(b.vendor.jobs), len(tasks))
	}
	head, err := b.store.Head(b.ctx(), b.project.ID)
	b.must(err)
	got := slices.Compact(slices.Sorted(slices.Values(n.got)))
	if want := numbers(head.EventID); !slices.Equal(got, want) {
		t.Errorf("%d different events were notified, the stream has %d", len(got), len(want))
	}
}

// unreliable makes the vendor behave as badly as it may. It works ten seconds on a
// job.
func unreliable(b *bundle, d *dice) {
	done := map[string]time.Time{}
	b.vendor.onSubmit = func(req ports.SubmitRequest) (ports.SubmitResult, error) {
		if d.percent(15) {
			b.vendor.notSent[req.Attempt.ID]++
			return ports.SubmitResult{}, &ports.ProviderError{Class: ports.ClassThrottled, NotSent: true}
		}
		id := b.vendor.start(req.Attempt.ClientRequestID)
		if _, known := done[id]; !known {
			done[id] = time.Now().Add(10 * time.Second)
			go report(b, d, req.Attempt.ID, id)
		}
		if d.percent(15) {
			return ports.SubmitResult{}, lost()
		}
		return ports.SubmitResult{ProviderTaskID: id}, nil
	}
	b.vendor.onQuery = func(req ports.QueryRequest) (ports.QueryResult, error) {
		switch id := req.Attempt.ProviderTaskID; {
		case d.percent(20):
			return ports.QueryResult{}, &ports.ProviderError{Class: []ports.ProviderClass{
				ports.ClassTransport, ports.ClassThrottled, ports.ClassNotFound, ports.ClassMalformed,
			}[int(d.within(4))]}
		case time.Now().Before(done[id]):
			return ports.QueryResult{Observation: domain.Observation{ProviderTaskID: id, Status: domain.ObservedRunning}}, nil
		default:
			return succeeded(req)
		}
	}
	b.download = func(req *http.Request) (ports.Download, error) {
		if d.percent(10) {
			return broken(), nil
		}
		return file(mp4, int64(len(mp4)))(req)
	}
}

// report sends the webhooks of a job: each may be lost, late or repeated.
func report(b *bundle, d *dice, attempt domain.AttemptID, job string) {
	for i, body := range []string{
		`{"event":"%s-%d","job":"%[1]s","status":"running","progress":30}`,
		`{"event":"%s-%d","job":"%[1]s","status":"running","progress":60}`,
		`{"event":"%s-%d","job":"%[1]s","status":"succeeded","output":"https://cdn.acme.example/out.mp4"}`,
	} {
		for d.percent(70) {
			go func() {
				<-time.After(time.Duration(i)*4*time.Second + d.within(8*time.Second))
				// An error is a 503: this vendor does not come again.
				_, _ = b.receive.Deliver(b.ctx(), deliveryTo(b, attempt, fmt.Sprintf(body, job, i)))
			}()
		}
	}
}
