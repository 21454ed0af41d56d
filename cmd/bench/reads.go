package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/aivedio/aivedio/internal/e2e/launch"
	"github.com/aivedio/aivedio/internal/wire"
)

// reads asks for tasks through a process of the api role while something else is
// measured: those that wait for a task must not pay for those that send news.
type reads struct {
	process *launch.Process
	client  *http.Client
	urls    []string
	key     string
}

// readEvery is the time between two reads.
const readEvery = 20 * time.Millisecond

// startReads starts the api role.
func (b *bed) startReads(ctx context.Context) (*reads, error) {
	p, addr, err := b.system.serve("api", "api", launch.Deployment{Database: b.cluster.URL(oursDatabase)})
	if err != nil {
		return nil, err
	}
	r := &reads{process: p, client: &http.Client{Timeout: 10 * time.Second}, key: b.people.key}
	for i, t := range b.people.tasks[:min(len(b.people.tasks), 1000)] {
		project := b.people.projects[i%len(b.people.projects)]
		r.urls = append(r.urls, "http://"+addr+"/projects/"+wire.ProjectID(project)+"/tasks/"+wire.TaskID(t.id))
	}
	return r, b.system.start(ctx, p)
}

// run reads until it is stopped; stop returns the times in ms, from the moment at
// which each read was due. A read that fails is an error.
func (r *reads) run(ctx context.Context) (stop func() ([]figure, error)) {
	ctx, cancel := context.WithCancel(ctx)
	type outcome struct {
		times []figure
		err   error
	}
	done := make(chan outcome, 1)
	go func() {
		var out outcome
		defer func() { done <- out }()
		due := time.Now()
		for n := 0; ; n++ {
			timer := time.NewTimer(time.Until(due))
			select {
			case <-timer.C:
			case <-ctx.Done():
				timer.Stop()
				return
			}
			if err := r.get(ctx, r.urls[n%len(r.urls)]); err != nil {
				if ctx.Err() == nil {
					out.err = err
				}
				return
			}
			out.times = append(out.times, milliseconds(time.Since(due)))
			due = due.Add(readEvery)
		}
	}()
	return func() ([]figure, error) {
		cancel()
		out := <-done
		return out.times, out.err
	}
}

func (r *reads) get(ctx context.Context, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+r.key)
	resp, err := r.client.Do(req)
	if err != nil {
		return fmt.Errorf("read a task: %w", err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return fmt.Errorf("read a task: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("read a task: %s", resp.Status)
	}
	return nil
}
