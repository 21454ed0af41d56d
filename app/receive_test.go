package app_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aivedio/aivedio/app"
	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// gate is an inbox whose commits wait until the test opens it.
type gate struct {
	ports.Inbox
	open chan struct{}
	fail error

	mu      sync.Mutex
	batches [][]ports.InboxRow
}

func (g *gate) Receive(ctx context.Context, rows []ports.InboxRow) ([]ports.ReceiveResult, error) {
	g.mu.Lock()
	g.batches = append(g.batches, rows)
	g.mu.Unlock()
	<-g.open
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if g.fail != nil {
		return nil, g.fail
	}
	results := make([]ports.ReceiveResult, len(rows))
	for i, row := range rows {
		if strings.Contains(row.DedupKey, "poison") {
			results[i].Err = errors.New("a fault of this row")
		}
	}
	return results, nil
}

// gated is a Receive over a gate.
func gated(t *testing.T, cfg app.ReceiveConfig) (*app.Receive, *gate) {
	t.Helper()
	g := &gate{open: make(chan struct{})}
	return receiver(t, g, cfg), g
}

// receiver is a Receive over an inbox.
func receiver(t *testing.T, inbox ports.Inbox, cfg app.ReceiveConfig) *app.Receive {
	t.Helper()
	tokens, err := app.NewCallbackTokens([]byte("0123456789abcdef"))
	if err != nil {
		t.Fatal(err)
	}
	r, err := app.NewReceive(app.ReceiveDeps{Env: steady(), Inbox: inbox, Vendors: app.NewVendors(newVendor()), Tokens: tokens}, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func delivery(event string) app.DeliverCommand {
	return app.DeliverCommand{Provider: "acme", Account: "main", Body: fmt.Appendf(nil, `{"event":%q}`, event)}
}

func TestReceiveGroupCommit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, g := gated(t, app.ReceiveConfig{Flushers: 2, Batch: 8, Queue: 64})
		errs := make(chan error, 64)
		for i := range 20 {
			go func() {
				event := fmt.Sprintf("e%02d", 19-i)
				if i == 7 {
					event = "poison"
				}
				_, err := r.Deliver(t.Context(), delivery(event))
				errs <- err
			}()
			synctest.Wait()
		}
		if len(g.batches) != 2 || len(g.batches[0]) != 1 || len(g.batches[1]) != 1 {
			t.Fatalf("the first two did not go at once and alone: %d batches", len(g.batches))
		}
		if len(errs) != 0 {
			t.Fatal("answered before the commit")
		}
		close(g.open)
		time.Sleep(time.Second) // of the bubble: flushers that go on wait for more
		var sizes []int
		for _, batch := range g.batches {
			sizes = append(sizes, len(batch))
			if !slices.IsSortedFunc(batch, func(a, b ports.InboxRow) int { return strings.Compare(a.DedupKey, b.DedupKey) }) {
				t.Error("a batch is not in the order of its keys")
			}
		}
		slices.Sort(sizes)
		if !slices.Equal(sizes, []int{1, 1, 2, 8, 8}) {
			t.Errorf("batches of %v", sizes)
		}
		failed := 0
		for range 20 {
			if err := <-errs; err != nil {
				failed++
			}
		}
		if failed != 1 {
			t.Errorf("%d deliveries failed, want the poisoned one alone", failed)
		}
	})
}

func TestReceiveHangUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, g := gated(t, app.ReceiveConfig{})
		ctx, hangUp := context.WithCancel(t.Context())
		gone := make(chan error, 1)
		go func() { _, err := r.Deliver(ctx, delivery("a")); gone <- err }()
		synctest.Wait()
		hangUp()
		if err := <-gone; !errors.Is(err, context.Canceled) {
			t.Errorf("who hung up got %v", err)
		}
		closed := make(chan error, 1)
		go func() { closed <- r.Close(t.Context()) }()
		synctest.Wait()
		if len(closed) != 0 {
			t.Error("Close did not wait for the flush")
		}
		close(g.open)
		if err := <-closed; err != nil {
			t.Error(err)
		}
		if len(g.batches) != 1 {
			t.Errorf("%d batches: the flush did not outlive its client", len(g.batches))
		}
	})
}

func TestReceiveOverload(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, g := gated(t, app.ReceiveConfig{Flushers: 1, Batch: 2, Queue: 2})
		errs := make(chan error, 8)
		for i := range 4 { // one is being flushed, two wait, one is too many
			go func() { _, err := r.Deliver(t.Context(), delivery(fmt.Sprint(i))); errs <- err }()
			synctest.Wait()
		}
		if err := <-errs; !errors.Is(err, app.ErrOverloaded) {
			t.Errorf("beyond the queue: %v", err)
		}
		close(g.open)
		for range 3 {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
		if _, err := r.Deliver(t.Context(), delivery("later")); err != nil {
			t.Errorf("after the overload: %v", err)
		}
	})
}

// A database that has become slow makes the queue short, however few wait in it, and
// what is refused costs no signature.
func TestReceiveRefusesBehindASlowDatabase(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, g := gated(t, app.ReceiveConfig{Flushers: 1, QueueTime: time.Second})
		errs := make(chan error, 3)
		deliver := func(name string) {
			go func() { _, err := r.Deliver(t.Context(), delivery(name)); errs <- err }()
			synctest.Wait()
		}
		deliver("in hand")
		deliver("waits")
		time.Sleep(time.Second)
		deliver("waits, too")
		time.Sleep(time.Millisecond)
		forged := delivery("beyond")
		forged.Body = []byte("bad signature")
		if _, err := r.Deliver(t.Context(), forged); !errors.Is(err, app.ErrOverloaded) {
			t.Errorf("behind a delivery that waited for longer: %v", err)
		}
		if _, err := r.Deliver(t.Context(), app.DeliverCommand{Provider: "nobody", Token: "x"}); !errors.Is(err, app.ErrUnknownProvider) {
			t.Errorf("an unknown provider: %v", err)
		}
		close(g.open)
		for range 3 {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
		if _, err := r.Deliver(t.Context(), delivery("later")); err != nil {
			t.Errorf("after the overload: %v", err)
		}
	})
}

// slowInbox takes some time for every batch.
type slowInbox struct {
	ports.Inbox
	flush   time.Duration
	batches atomic.Int64
}

func (s *slowInbox) Receive(_ context.Context, rows []ports.InboxRow) ([]ports.ReceiveResult, error) {
	s.batches.Add(1)
	time.Sleep(s.flush)
	return make([]ports.ReceiveResult, len(rows)), nil
}

// A delivery that comes alone is committed at once; under load a flusher that has
// just committed waits a little, so that there are few and large commits.
func TestReceiveGathersUnderLoad(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const flush, gather = time.Millisecond, 4 * time.Millisecond
		inbox := &slowInbox{flush: flush}
		r := receiver(t, inbox, app.ReceiveConfig{Flushers: 1, Gather: gather})
		began := time.Now()
		if _, err := r.Deliver(t.Context(), delivery("alone")); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took > flush {
			t.Errorf("a delivery that came alone took %v", took)
		}
		const deliveries, every = 100, time.Millisecond / 2
		var all sync.WaitGroup
		for i := range deliveries {
			all.Go(func() {
				if _, err := r.Deliver(t.Context(), delivery(fmt.Sprint(i))); err != nil {
					t.Error(err)
				}
			})
			time.Sleep(every)
		}
		all.Wait()
		if most := int64(deliveries*every/gather) + 3; inbox.batches.Load() > most {
			t.Errorf("%d deliveries in %d commits, want at most %d", deliveries, inbox.batches.Load(), most)
		}
	})
}

// A burst is refused as soon as its queue is longer than the database can store in
// time, not when its first delivery has waited that long.
func TestReceiveTakesNoMoreThanItCanStoreInTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := receiver(t, &slowInbox{flush: 100 * time.Millisecond}, app.ReceiveConfig{Flushers: 2, Batch: 10, QueueTime: time.Second})
		if _, err := r.Deliver(t.Context(), delivery("the first one, which tells how long a flush takes")); err != nil {
			t.Fatal(err)
		}
		const burst = 1000
		began := time.Now()
		errs := make(chan error, burst)
		for i := range burst {
			go func() { _, err := r.Deliver(t.Context(), delivery(fmt.Sprint(i))); errs <- err }()
		}
		stored := 0
		for range burst {
			switch err := <-errs; {
			case err == nil:
				stored++
			case !errors.Is(err, app.ErrOverloaded):
				t.Fatal(err)
			}
		}
		if took := time.Since(began); took > 1300*time.Millisecond || stored < 190 || stored > 240 {
			t.Errorf("%d stored in %v; two flushers store 200 in a second", stored, took)
		}
	})
}

func TestReceiveStoreAway(t *testing.T) {
	t.Parallel()
	r, g := gated(t, app.ReceiveConfig{})
	close(g.open)
	g.fail = errAway
	if _, err := r.Deliver(t.Context(), delivery("a")); !errors.Is(err, ports.ErrUnavailable) {
		t.Errorf("got %v", err)
	}
	g.fail = nil
	if _, err := r.Deliver(t.Context(), delivery("a")); err != nil {
		t.Errorf("after the outage: %v", err)
	}
}

// flusherPanic is an inbox that panics.
type flusherPanic struct{ ports.Inbox }

func (flusherPanic) Receive(context.Context, []ports.InboxRow) ([]ports.ReceiveResult, error) {
	panic("store")
}

func TestReceivePanicAcknowledgesNothing(t *testing.T) {
	t.Parallel()
	tokens, err := app.NewCallbackTokens([]byte("0123456789abcdef"))
	if err != nil {
		t.Fatal(err)
	}
	r, err := app.NewReceive(app.ReceiveDeps{Env: steady(), Inbox: flusherPanic{}, Vendors: app.NewVendors(newVendor()), Tokens: tokens}, app.ReceiveConfig{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Deliver(t.Context(), delivery("a")); !errors.Is(err, ports.ErrUnavailable) {
		t.Errorf("got %v", err)
	}
}

func TestReceiveRefuses(t *testing.T) {
	t.Parallel()
	b := setup(t)
	attempt := b.create().Attempt.ID
	token := b.tokens.Make(attempt)
	good := app.DeliverCommand{Provider: "acme", Token: token, Body: []byte(`{"event":"e","status":"running"}`)}
	var refused *ports.VerifyError
	for name, tc := range map[string]struct {
		change func(*app.DeliverCommand)
		ok     func(error) bool
	}{
		"unknown provider": {func(c *app.DeliverCommand) { c.Provider = "nobody" }, func(e error) bool { return errors.Is(e, app.ErrUnknownProvider) }},
		"forged token":     {func(c *app.DeliverCommand) { c.Token = "B" + token[1:] }, func(e error) bool { return errors.Is(e, app.ErrUnknownToken) }},
		"no address":       {func(c *app.DeliverCommand) { c.Token = "" }, func(e error) bool { return errors.Is(e, app.ErrUnknownToken) }},
		"two addresses":    {func(c *app.DeliverCommand) { c.Account = "main" }, func(e error) bool { return errors.Is(e, app.ErrUnknownToken) }},
		"unknown account":  {func(c *app.DeliverCommand) { c.Token, c.Account = "", "nobody" }, func(e error) bool { return errors.Is(e, app.ErrUnknownToken) }},
		"bad signature":    {func(c *app.DeliverCommand) { c.Body = []byte("bad signature") }, func(e error) bool { return errors.As(e, &refused) }},
		"adapter panic":    {func(c *app.DeliverCommand) { c.Body = []byte("panic in verify") }, func(e error) bool { return errors.Is(e, ports.ErrUnavailable) }},
	} {
		cmd := good
		tc.change(&cmd)
		if _, err := b.receive.Deliver(b.ctx(), cmd); !tc.ok(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := b.step(b.process); n != 0 {
		t.Errorf("%d refused deliveries were stored", n)
	}
}

func TestReceiveDuplicates(t *testing.T) {
	t.Parallel()
	b := setup(t)
	one, two := b.create().Attempt.ID, b.create().Attempt.ID
	if ack := b.deliver(one, `{"event":"e1","status":"running"}`); ack.Duplicate {
		t.Error("the first is a duplicate")
	}
	if ack := b.deliver(one, `{"event":"e1","status":"running"}`); !ack.Duplicate || ack.Differs {
		t.Errorf("the second: %+v", ack)
	}
	if ack := b.deliver(one, `{"event":"e1","status":"failed"}`); !ack.Duplicate || !ack.Differs {
		t.Errorf("the same name with another payload: %+v", ack)
	}
	if ack := b.deliver(one, `{"event":"e1","status":"running","trust":"replayable"}`); ack.Duplicate {
		t.Error("a weaker repetition hides behind an authentic one")
	}
	bearer := `{"event":"e2","status":"running","trust":"bearer"}`
	b.deliver(one, bearer)
	if ack := b.deliver(two, bearer); ack.Duplicate {
		t.Error("one bearer URL hides what comes to another")
	}
	if ack := b.deliver(one, `{"event":"e\u0000`+strings.Repeat("x", 5000)+`","job":"\u0000","status":"running"}`); ack.Duplicate {
		t.Error("an identity that no database keeps is a duplicate")
	}
	if n := b.step(b.process); n != 5 {
		t.Errorf("%d rows, want 5", n)
	}
}

func TestReceiveBodyIsKeptRaw(t *testing.T) {
	t.Parallel()
	r, g := gated(t, app.ReceiveConfig{})
	close(g.open)
	body := "{ \"event\" : \"\\u0000\xff\"}"
	if _, err := r.Deliver(t.Context(), app.DeliverCommand{Provider: "acme", Account: "spare", Body: []byte(body)}); err != nil {
		t.Fatal(err)
	}
	row := g.batches[0][0]
	if string(row.Payload) != body || len(row.PayloadHash) != 32 || row.AccountID != "spare" || row.TokenHash != nil || row.Trust != domain.TrustAuthentic {
		t.Errorf("row %+v", row)
	}
}

// Any body that an adapter lets through is stored and digested without a fault of
// the store.
func FuzzReceive(f *testing.F) {
	f.Add([]byte(`{"event":"1","job":"job-1","status":"running"}`))
	f.Add([]byte(`{"event":"\u0000","job":"\ud800","status":"succeeded","output":"\u0000"}`))
	f.Add([]byte(`{"event":1`))
	f.Fuzz(func(t *testing.T, body []byte) {
		b := setup(t)
		attempt := b.submitted().Attempt.ID
		_, err := b.receive.Deliver(t.Context(), app.DeliverCommand{Provider: "acme", Token: b.tokens.Make(attempt), Body: body})
		var refused *ports.VerifyError
		if err != nil && !errors.As(err, &refused) && !strings.Contains(string(body), "panic in verify") {
			t.Fatal(err)
		}
		b.step(b.process)
	})
}

func BenchmarkReceive(b *testing.B) {
	tokens, err := app.NewCallbackTokens([]byte("0123456789abcdef"))
	if err != nil {
		b.Fatal(err)
	}
	g := &gate{open: make(chan struct{})}
	close(g.open)
	r, err := app.NewReceive(app.ReceiveDeps{Env: steady(), Inbox: g, Vendors: app.NewVendors(newVendor()), Tokens: tokens}, app.ReceiveConfig{})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := r.Deliver(b.Context(), delivery("a")); err != nil {
				b.Error(err)
			}
		}
	})
}
