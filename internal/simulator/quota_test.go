package simulator

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// ask queries a job with a key of the test's.
func (b *box) ask(id, key string) reply {
	req := httptest.NewRequestWithContext(b.t.Context(), "GET", "/v1/predictions/"+id, http.NoBody)
	req.Header.Set("Authorization", "Bearer "+key)
	return b.do(req)
}

func (b *box) quota() (out quotaState) {
	b.t.Helper()
	if err := json.Unmarshal(b.call("GET", "/_sim/quota", "").body, &out); err != nil {
		b.t.Fatal(err)
	}
	return out
}

func TestQuotaIsPerAccount(t *testing.T) {
	inBoxOf(t, Config{Quota: Quota{Queries: 2, Enforce: true}}, func(t *testing.T, b *box) {
		id := b.predict(`{}`)
		for n, want := range []int{200, 200, 429} {
			if r := b.ask(id, "one"); r.status != want || (want == 429) != (r.header.Get("Retry-After") == "1") {
				t.Errorf("query %d: %d %v", n, r.status, r.header)
			}
		}
		if r := b.ask(id, "two"); r.status != 200 {
			t.Errorf("another account: %d", r.status)
		}
		b.pass(time.Second)
		if r := b.ask(id, "one"); r.status != 200 {
			t.Errorf("a second later: %d", r.status)
		}
		got := b.quota()
		if got.Quota != (Quota{Queries: 2, Enforce: true}) || len(got.Accounts) != 3 {
			t.Fatalf("%+v", got)
		}
		var seen Traffic
		for name, u := range got.Accounts {
			if name == "replicate/one" || name == "replicate/two" {
				t.Errorf("the key is shown: %s", name)
			}
			if u.Queries.Accepted == 3 {
				seen = u.Queries
			}
		}
		if seen.Refused != 1 || seen.Over != 1 || seen.WorstSecond != 2 || seen.WorstSecondAt.IsZero() {
			t.Errorf("the account that was over: %+v", seen)
		}
		if creates := got.Accounts["replicate/anonymous"].Creates; creates.Accepted != 1 || creates.Over != 0 {
			t.Errorf("creates: %+v", creates)
		}
	})
}

func TestQuotaOfCreates(t *testing.T) {
	inBoxOf(t, Config{Quota: Quota{Creates: 1, Enforce: true}}, func(t *testing.T, b *box) {
		b.predict(`{}`)
		if r := b.call("POST", "/v1/predictions", predictionBody(`{}`)); r.status != 429 || r.header.Get("Retry-After") != "1" {
			t.Errorf("second create: %d", r.status)
		}
		if n := b.sim.Stats().Creates; n != 1 {
			t.Errorf("%d jobs", n)
		}
	})
}

func TestChangeQuotaAtRunTime(t *testing.T) {
	inBox(t, Faults{}, func(t *testing.T, b *box) {
		id := b.predict(`{}`)
		for range 5 {
			if r := b.ask(id, "k"); r.status != 200 {
				t.Fatalf("without a quota: %d", r.status)
			}
		}
		r := b.call("POST", "/_sim/quota?reset=true", `{"queries":3,"burst":2}`)
		if r.status != 200 || b.sim.Quota() != (Quota{Queries: 3, Burst: 2}) {
			t.Fatalf("%d %s", r.status, r.body)
		}
		for name, u := range b.quota().Accounts {
			if u != (Usage{}) {
				t.Errorf("%s after the reset: %+v", name, u)
			}
		}
		b.pass(time.Second)
		for range 3 {
			if r := b.ask(id, "k"); r.status != 200 {
				t.Errorf("not enforced, yet %d", r.status)
			}
		}
		for _, u := range b.sim.Usage() {
			if u.Queries.Accepted > 0 && u.Queries.Over != 1 {
				t.Errorf("over a burst of two: %+v", u.Queries)
			}
		}
		for _, bad := range []string{`{"queries":-1}`, `{"burst":"x"}`, `[`} {
			if r := b.call("POST", "/_sim/quota", bad); r.status != 400 {
				t.Errorf("%s: %d", bad, r.status)
			}
		}
		if err := b.sim.SetQuota(Quota{Creates: -1}); err == nil || (Config{Quota: Quota{Burst: -1}}).Validate() == nil {
			t.Error("a negative quota is accepted")
		}
	})
}

type queriesPage struct {
	Queries         []QueryEntry
	Next, Forgotten int
}

func (b *box) page(query string) (out queriesPage) {
	b.t.Helper()
	r := b.call("GET", "/_sim/queries"+query, "")
	if err := json.Unmarshal(r.body, &out); err != nil || r.status != 200 {
		b.t.Fatalf("%d %s: %v", r.status, r.body, err)
	}
	return out
}

func TestQueriesAreLogged(t *testing.T) {
	inBoxOf(t, Config{Quota: Quota{Queries: 3, Enforce: true}}, func(t *testing.T, b *box) {
		id, began := b.predict(`{}`), time.Now().UnixNano()
		b.status(id)
		b.call("GET", "/v1/predictions/nothing", "")
		b.call("POST", "/_sim/faults", `{"query_404":1}`)
		if r := b.call("GET", "/v1/predictions/"+id, ""); r.status != 404 {
			t.Errorf("query_404: %d", r.status)
		}
		b.call("GET", "/v1/predictions/"+id, "")
		all := b.page("")
		want := []QueryEntry{{id, began, ""}, {"nothing", began, "not_found"}, {id, began, "query_404"}, {id, began, "over_quota"}}
		if fmt.Sprint(all.Queries) != fmt.Sprint(want) || all.Next != 4 || all.Forgotten != 0 {
			t.Errorf("got %+v\nwant %+v", all, want)
		}
		if p := b.page("?after=1&limit=2"); fmt.Sprint(p.Queries) != fmt.Sprint(want[1:3]) || p.Next != 3 {
			t.Errorf("a page: %+v", p)
		}
		if p := b.page("?after=9"); len(p.Queries) != 0 {
			t.Errorf("behind the end: %+v", p)
		}
		for _, bad := range []string{"?after=x", "?limit=-1"} {
			if r := b.call("GET", "/_sim/queries"+bad, ""); r.status != 400 {
				t.Errorf("%s: %d", bad, r.status)
			}
		}
	})
}

func TestQueryLogForgetsTheOldest(t *testing.T) {
	t.Parallel()
	var l queryLog
	const n = queryChunk*queryChunks + queryChunk/2
	for i := range n {
		l.add("job", time.Unix(0, int64(i)), "")
	}
	entries, next := l.page(0, 3)
	if len(entries) != 3 || entries[0].At != queryChunk || next != queryChunk+3 || l.first != queryChunk {
		t.Errorf("after the bound: %+v, next %d, first %d", entries, next, l.first)
	}
	if entries, next := l.page(n-2, 100); len(entries) != 2 || entries[1].At != n-1 || next != n {
		t.Errorf("the newest: %+v, next %d", entries, next)
	}
	entries, _ = l.page(queryChunk*3-1, 2) // across two chunks
	if entries[0].At != queryChunk*3-1 || entries[1].At != queryChunk*3 {
		t.Errorf("across chunks: %+v", entries)
	}
}

func TestSlowQueryTellsThePast(t *testing.T) {
	inBox(t, Faults{QuerySlow: 1, SlowFor: 3 * time.Second}, func(t *testing.T, b *box) {
		id := b.predict(`{}`)
		b.pass(3 * time.Second) // the job runs, and ends two seconds later
		began := time.Now()
		if got := b.status(id); got != "processing" || time.Since(began) != 3*time.Second {
			t.Errorf("%s after %v", got, time.Since(began))
		}
	})
}

// Ten thousand jobs under way, asked for at random: what a query costs here is
// taken from the same machine as what is measured.
func BenchmarkQuery(b *testing.B) {
	s := New(Config{Seed: 1, Run: time.Hour})
	s.mu.Lock()
	ids := make([]string, 10_000)
	for i := range ids {
		j := s.mustTake(b, &order{dialect: replicate, model: "sim/video", input: json.RawMessage(`{"prompt":"x"}`)}, "http://vendor.example")
		s.begin(j, j.created)
		ids[i] = j.id
	}
	s.mu.Unlock()
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		n = (n + 7919) % len(ids)
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest("GET", "/v1/predictions/"+ids[n], http.NoBody))
		if w.Code != http.StatusOK {
			b.Fatal(w.Code)
		}
	}
}
