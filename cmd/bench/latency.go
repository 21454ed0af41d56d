package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/tmaxmax/go-sse"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/internal/wire"
)

// latency is from the decision that is committed (the event's occurred_at, whole
// milliseconds) to the arrival at a client of the event stream.
type latency struct {
	quantiles
	// Rate is deliveries per second over all projects, Streams the number of
	// clients, Events what they saw.
	Rate    figure `json:"rate_per_s"`
	Streams int    `json:"streams"`
	Events  int    `json:"events"`
}

// watchers are clients of event streams, one per project.
type watchers struct {
	cancel context.CancelFunc
	done   sync.WaitGroup

	mu      sync.Mutex
	delays  []figure
	failure error
}

// watch opens a stream for every project and returns when each has answered.
func watch(ctx context.Context, base, key string, projects []domain.ProjectID) (*watchers, error) {
	ctx, cancel := context.WithCancel(ctx)
	w := &watchers{cancel: cancel}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: len(projects)}}
	answers := make(chan error, len(projects))
	for _, p := range projects {
		w.done.Go(func() { w.follow(ctx, client, base+"/projects/"+wire.ProjectID(p)+"/events", key, answers) })
	}
	for range projects {
		if err := <-answers; err != nil {
			w.stop()
			return nil, err
		}
	}
	return w, nil
}

func (w *watchers) follow(ctx context.Context, client *http.Client, url, key string, answered chan<- error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		answered <- err
		return
	}
	req.Header.Set("Authorization", "Bearer "+key)
	req.Header.Set("Accept", "text/event-stream")
	resp, err := client.Do(req)
	if err != nil {
		answered <- fmt.Errorf("event stream: %w", err)
		return
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		answered <- fmt.Errorf("event stream: %s", resp.Status)
		return
	}
	answered <- nil
	for ev, err := range sse.Read(resp.Body, nil) {
		if err != nil {
			w.fail(ctx, err)
			return
		}
		if ev.Type == wire.StreamEvent {
			w.arrived(time.Now(), ev.Data)
		}
	}
}

func (w *watchers) fail(ctx context.Context, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if ctx.Err() == nil && w.failure == nil {
		w.failure = fmt.Errorf("event stream: %w", err)
	}
}

func (w *watchers) arrived(at time.Time, data string) {
	var e wire.Event
	err := json.Unmarshal([]byte(data), &e)
	occurred, errTime := time.Parse(wire.Time, e.OccurredAt)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil || errTime != nil {
		w.failure = fmt.Errorf("event stream: an event that does not parse: %.200s", data)
		return
	}
	w.delays = append(w.delays, milliseconds(at.Sub(occurred)))
}

// stop ends the streams and returns what they saw.
func (w *watchers) stop() ([]figure, error) {
	w.cancel()
	w.done.Wait()
	slices.Sort(w.delays)
	return w.delays, w.failure
}

// streamPatience is how long the last event may take to arrive.
const streamPatience = 30 * time.Second

// await returns when that many events have arrived.
func (w *watchers) await(ctx context.Context, want int) error {
	ctx, cancel := context.WithTimeout(ctx, streamPatience)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if w.seen() >= want {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return invalid("%d of %d events have arrived at the streams", w.seen(), want)
		}
	}
}

// seen is how many events have arrived so far.
func (w *watchers) seen() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.delays)
}
