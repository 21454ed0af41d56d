package load

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aivedio/aivedio/internal/simulator"
)

const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

func sign(t *testing.T, id string) *Delivery {
	t.Helper()
	d, err := Sender{Host: "callbacks.example", Secret: secret}.Sign("/callbacks/replicate/a/main", id,
		Job{ID: "job1", Progress: 40, Began: time.Unix(1_800_000_000, 0), Size: 600}, time.Unix(1_800_000_060, 0))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestDeliveryIsTheVendorsShape(t *testing.T) {
	t.Parallel()
	var got *http.Request
	var body []byte
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r
		body, _ = io.ReadAll(r.Body) // its length is compared
		w.WriteHeader(http.StatusNoContent)
	}))
	defer srv.Close()
	d := sign(t, "msg_1")
	results := runAll(srv.Listener.Addr().String(), []*Delivery{d})
	if len(results) != 1 || !results[0].Acknowledged() {
		t.Fatalf("results %+v", results)
	}
	if len(body) != 600 || sha256.Sum256(body) != d.BodyHash {
		t.Errorf("body of %d bytes; want 600 with the hash of the delivery", len(body))
	}
	at, err := strconv.ParseInt(got.Header.Get("Webhook-Timestamp"), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	want, err := simulator.Sign(secret, "msg_1", time.Unix(at, 0), body)
	if err != nil {
		t.Fatal(err)
	}
	if s := got.Header.Get("Webhook-Signature"); s != want {
		t.Errorf("signature %q, want %q", s, want)
	}
	var p struct {
		ID, Status, Logs string
		StartedAt        string `json:"started_at"`
	}
	if err := json.Unmarshal(body, &p); err != nil {
		t.Fatal(err)
	}
	if p.ID != "job1" || p.Status != "processing" || !strings.Contains(p.Logs, "40%|") || p.StartedAt != "2027-01-15T08:00:00.000Z" {
		t.Errorf("body %s", body)
	}
}

// runAll sends each delivery once over one connection.
func runAll(addr string, all []*Delivery) []Result {
	var results []Result
	at := 0
	Run{
		Addr: addr, Conns: 1,
		Next: func(int) *Delivery {
			if at == len(all) {
				return nil
			}
			at++
			return all[at-1]
		},
		Done: func(_ int, r Result) { results = append(results, r) },
	}.Do(context.Background())
	return results
}

func TestConnectionsAreKeptAndReplaced(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	from := map[string]int{}
	n := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		from[r.RemoteAddr]++
		if n++; n == 3 {
			http.Error(w, strings.Repeat("busy ", 4000), http.StatusServiceUnavailable)
			return
		}
		if n == 5 {
			panic(http.ErrAbortHandler)
		}
		w.WriteHeader(http.StatusNoContent)
	}))
	defer srv.Close()
	all := make([]*Delivery, 7)
	for i := range all {
		all[i] = sign(t, "msg_"+strconv.Itoa(i))
	}
	var statuses []int
	for _, r := range runAll(srv.Listener.Addr().String(), all) {
		statuses = append(statuses, r.Status)
	}
	want := []int{204, 204, 503, 204, 0, 204, 204}
	if len(statuses) != len(want) {
		t.Fatalf("statuses %v, want %v", statuses, want)
	}
	for i := range want {
		if statuses[i] != want[i] {
			t.Fatalf("statuses %v, want %v", statuses, want)
		}
	}
	if len(from) != 3 {
		t.Errorf("%d connections, want one, and a new one after each fault", len(from))
	}
}

func TestRefusalsKeepTheConnection(t *testing.T) {
	t.Parallel()
	from := map[string]int{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		from[r.RemoteAddr]++
		w.Header().Set("Retry-After", "1")
		http.Error(w, "busy", http.StatusServiceUnavailable)
	}))
	defer srv.Close()
	results := runAll(srv.Listener.Addr().String(), []*Delivery{sign(t, "msg_1"), sign(t, "msg_2")})
	for _, r := range results {
		if r.Status != http.StatusServiceUnavailable || !r.RetryAfter || r.Due.IsZero() || r.Waited < r.Took {
			t.Errorf("%+v", r)
		}
	}
	if len(results) != 2 || len(from) != 1 {
		t.Errorf("%d answers over %d connections, want 2 over 1", len(results), len(from))
	}
}

func TestRateIsKept(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	defer srv.Close()
	d := sign(t, "msg_1")
	const count, rate = 50, 500
	var mu sync.Mutex
	left := count
	var due []time.Time
	began := time.Now()
	Run{
		Addr: srv.Listener.Addr().String(), Conns: 4, Rate: rate,
		Next: func(int) *Delivery {
			mu.Lock()
			defer mu.Unlock()
			if left--; left < 0 {
				return nil
			}
			return d
		},
		Done: func(_ int, r Result) {
			mu.Lock()
			defer mu.Unlock()
			due = append(due, r.Due)
		},
	}.Do(context.Background())
	if first, last := slices.MinFunc(due, time.Time.Compare), slices.MaxFunc(due, time.Time.Compare); last.Sub(first) != (count-1)*time.Second/rate {
		t.Errorf("due from %v to %v", first, last)
	}
	if took := time.Since(began); took < (count-1)*time.Second/rate {
		t.Errorf("%d deliveries took %v, faster than %d per second", count, took, rate)
	}
}

func FuzzStatusOf(f *testing.F) {
	f.Add([]byte("HTTP/1.1 204 No Content"))
	f.Add([]byte("HTTP/1.1 +20"))
	f.Fuzz(func(t *testing.T, head []byte) {
		status, err := statusOf(head)
		if err == nil && (status < 100 || status > 999 || !bytes.HasPrefix(head, []byte("HTTP/1.1 "))) {
			t.Errorf("%q gave %d", head, status)
		}
	})
}

func FuzzParseAnswer(f *testing.F) {
	f.Add([]byte("HTTP/1.1 204 No Content\r\nRetry-After: 1\r\n\r\n"))
	f.Add([]byte("HTTP/1.1 503 Service Unavailable\r\nContent-Length: 4\r\n\r\nbu"))
	f.Add([]byte("HTTP/1.1 200 OK\r\nContent-Length: -4\r\n\r\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		a, rest, err := parseAnswer(text)
		if err != nil && a != (answer{}) || rest < 0 || a.reusable && a.status == 0 {
			t.Errorf("%q gave %+v, %d more bytes, %v", text, a, rest, err)
		}
	})
}
