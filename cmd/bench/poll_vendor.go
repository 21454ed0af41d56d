package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/aivedio/aivedio/internal/e2e/launch"
	"github.com/aivedio/aivedio/internal/simulator"
)

// pollVendor is the simulated vendor as a process of its own, with its webhooks
// off.
type pollVendor struct {
	process *launch.Process
	client  *http.Client
	key     string
	read    int // how many queries of its log have been read
}

// Jobs run for these times, evenly spread: longer than the benchmark, so that all
// stay in flight, and each at a pace of its own, so that they do not all make
// progress at one moment. A job makes a step of the state machine's in a twentieth
// of its time: about 300 transitions a second from 10,000 jobs.
const (
	shortestJob = 6 * time.Minute
	longestJob  = 20 * time.Minute
)

func startPollVendor(ctx context.Context, binary string, secrets launch.Secrets) (*pollVendor, error) {
	v := &pollVendor{
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: createCalls}, Timeout: time.Minute}, key: secrets.VendorKey,
		process: launch.New(launch.Spec{
			Name: "vendor", Path: binary, Env: []string{"AIVEDIO_SIMULATE_KEY=" + secrets.VendorKey},
			Args: []string{"simulate", "--listen", "127.0.0.1:0", "--seed", "1", "--queue", "1ms", "--fault-webhooks-off", "1"},
		}),
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return v, v.process.Start(ctx)
}

// createCalls is how many creates are under way at once.
const createCalls = 16

// create has the vendor take jobs and returns their ids.
func (v *pollVendor) create(ctx context.Context, jobs int) ([]string, error) {
	ids := make([]string, jobs)
	var next atomic.Int64
	g, ctx := errgroup.WithContext(ctx)
	for range min(createCalls, jobs) {
		g.Go(func() error {
			for n := next.Add(1) - 1; n < int64(jobs); n = next.Add(1) - 1 {
				var made struct{ ID string }
				run := shortestJob + time.Duration(n)*(longestJob-shortestJob)/time.Duration(jobs)
				body := fmt.Sprintf(`{"model":"sim/video","input":{"prompt":"a red kite, number %d","sim":{"run":%q}}}`, n, run)
				if err := v.call(ctx, http.MethodPost, "/v1/predictions", body, &made); err != nil {
					return err
				}
				ids[n] = made.ID
			}
			return nil
		})
	}
	return ids, g.Wait()
}

func (v *pollVendor) call(ctx context.Context, method, path, body string, out any) error {
	req, err := http.NewRequestWithContext(ctx, method, v.process.URL()+path, bytes.NewReader([]byte(body)))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+v.key)
	resp, err := v.client.Do(req)
	if err != nil {
		return fmt.Errorf("ask the vendor: %w", err)
	}
	defer resp.Body.Close() //nolint:errcheck // read only
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("the vendor answered %s with %s", path, resp.Status)
	}
	if err := json.NewDecoder(resp.Body).Decode(out); err != nil {
		return fmt.Errorf("the vendor's answer to %s: %w", path, err)
	}
	return nil
}

// allow sets the quota, which the vendor measures and does not enforce: what we
// would have sent above it is to be seen. The meters begin anew.
func (v *pollVendor) allow(ctx context.Context, queries int) error {
	return v.call(ctx, http.MethodPost, "/_sim/quota?reset=true", fmt.Sprintf(`{"queries":%d}`, queries), &struct{}{})
}

// usage is what the vendor has seen of our account since the quota was set.
func (v *pollVendor) usage(ctx context.Context) (simulator.Traffic, error) {
	var state struct{ Accounts map[string]simulator.Usage }
	err := v.call(ctx, http.MethodGet, "/_sim/quota", "", &state)
	var all simulator.Traffic
	for _, u := range state.Accounts {
		if q := u.Queries; q.Accepted > all.Accepted {
			all = q // the other one only uses the control routes
		}
	}
	return all, err
}

// queries reads what has been logged since the last call.
func (v *pollVendor) queries(ctx context.Context) ([]simulator.QueryEntry, error) {
	var all []simulator.QueryEntry
	for {
		var page struct {
			Queries         []simulator.QueryEntry
			Next, Forgotten int
		}
		if err := v.call(ctx, http.MethodGet, fmt.Sprintf("/_sim/queries?after=%d", v.read), "", &page); err != nil {
			return nil, err
		}
		if page.Forgotten > v.read {
			return nil, invalid("the vendor has forgotten queries")
		}
		if len(page.Queries) == 0 {
			return all, nil
		}
		all, v.read = append(all, page.Queries...), page.Next
	}
}
