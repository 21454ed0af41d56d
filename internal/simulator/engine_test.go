package simulator

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// Thousands of jobs cost a heap entry each, not a goroutine, and every one ends.
func TestThousandsOfJobs(t *testing.T) {
	inBoxOf(t, Config{Jitter: 0.5}, func(t *testing.T, b *box) {
		const n = 2000
		for i := range n {
			if i%2 == 0 {
				b.predict(`{}`)
			} else {
				b.film(`{}`)
			}
		}
		b.pass(30 * time.Second)
		st := b.sim.Stats()
		if st.Creates != n || st.Jobs["succeeded"] != n || st.Webhooks.Delivered != st.Webhooks.Emitted {
			t.Errorf("stats: creates %d, jobs %v, webhooks %+v", st.Creates, st.Jobs, st.Webhooks)
		}
		if got := st.Webhooks.Delivered; got < n/2+n/2*6 || got != len(b.deliveries()) {
			t.Errorf("%d delivered, %d arrived", got, len(b.deliveries()))
		}
	})
}

func TestJitterStaysInBounds(t *testing.T) {
	t.Parallel()
	s := New(Config{Seed: 3})
	low, high := time.Hour, time.Duration(0)
	for seq := range uint64(1000) {
		d := s.span("run", seq, 10*time.Second, nil)
		low, high = min(low, d), max(high, d)
	}
	if low < 8*time.Second || low > 8100*time.Millisecond || high > 12*time.Second || high < 11900*time.Millisecond {
		t.Errorf("10 s spread from %v to %v", low, high)
	}
}

func TestOldFinishedJobsAreForgotten(t *testing.T) {
	inBoxOf(t, Config{MaxJobs: 10}, func(t *testing.T, b *box) {
		running := b.predict(`{"run":"1h"}`)
		for range 20 {
			b.predict(`{"instant":true}`)
		}
		if got := len(b.sim.Jobs(0)); got != 21 {
			t.Errorf("%d jobs behind a running one", got)
		}
		b.call("POST", "/_sim/jobs/"+running+"/finish", "")
		b.predict(`{}`)
		if got := len(b.sim.Jobs(0)); got != 10 {
			t.Errorf("%d jobs remembered", got)
		}
		if st := b.sim.Stats(); st.Creates != 22 {
			t.Errorf("%d creates counted", st.Creates)
		}
	})
}

// When its context ends, Run still sends what is due and waits for it.
func TestRunDrains(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &box{t: t}
		slow := roundTrip(func(r *http.Request) (*http.Response, error) {
			select {
			case <-time.After(2 * time.Second):
			case <-r.Context().Done():
				return nil, r.Context().Err()
			}
			return b.RoundTrip(r)
		})
		b.sim = New(Config{WebhookSecret: testSecret, Client: &http.Client{Transport: slow}, Workers: 1, Jitter: -1})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- b.sim.Run(ctx) }()
		for range 8 {
			b.predict(`{"instant":true}`)
		}
		b.pass(time.Second)
		cancel()
		stopped := time.Now()
		if err := <-done; err != nil {
			t.Error(err)
		}
		// Sixteen messages of 2 s each; only ten seconds are left for them.
		if took := time.Since(stopped); took > 10*time.Second {
			t.Errorf("stopping took %v", took)
		}
		if got := len(b.deliveries()); got != 5 {
			t.Errorf("%d webhooks arrived", got)
		}
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestConfigValidate(t *testing.T) {
	t.Parallel()
	if err := (Config{}).Validate(); err != nil {
		t.Errorf("zero value: %v", err)
	}
	for name, cfg := range map[string]Config{
		"secret": {WebhookSecret: "whsec_?"}, "jitter": {Jitter: 1}, "public URL": {PublicURL: "/x"},
		"webhook": {OpenAIWebhookURL: "http://h.example"}, "workers": {Workers: -1}, "fault": {Faults: Faults{Fail: 2}},
	} {
		if cfg.Validate() == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// A restart with the same seed must not give out the same ids again.
func TestIDsDifferBetweenRuns(t *testing.T) {
	t.Parallel()
	id := func(at int64) string {
		s := New(Config{Seed: 1, Now: func() time.Time { return time.Unix(at, 0) }})
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.mustTake(t, &order{dialect: replicate}, "").id
	}
	first, again, later := id(1), id(1), id(2)
	if first != again || first == later {
		t.Errorf("got %s, %s, %s", first, again, later)
	}
}

func BenchmarkJob(b *testing.B) {
	s := New(Config{Seed: 1, Queue: -1, Run: -1})
	o, p := parseReplicate([]byte(predictionBody(`{}`)), "", false)
	if p != nil {
		b.Fatal(p.detail)
	}
	b.ReportAllocs()
	for b.Loop() {
		s.mu.Lock()
		s.mustTake(b, o, "http://h.example")
		s.sendq = nil
		s.mu.Unlock()
		for s.runDue() == 0 {
		}
	}
}
