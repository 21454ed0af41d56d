package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// followed is what a client keeps of an event.
type followed struct {
	EventID     int64  `json:"event_id"`
	TaskID      string `json:"task_id"`
	TaskVersion int64  `json:"task_version"`
}

// follower is a browser with a bad line: it reads a project's stream, is cut
// again and again, in the middle of a frame as well as between two, and comes
// back with the last id that it saw.
type follower struct {
	url, key string
	// cuts are the lines, counted over all connections, at which the line breaks.
	cuts    []int
	planned int

	mu     sync.Mutex
	events []followed
	// arrived is when each of the events came.
	arrived []time.Time
	cursor  string
	lines   int
	cut     int // by us
	lost    int // connections that ended by themselves
	// said counts the stream's own events, by their name.
	said map[string]int
}

func newFollower(base, project, key string, cuts, within int, rng *rand.Rand) *follower {
	f := &follower{url: base + "/projects/" + project + "/events", key: key, cursor: "0", said: map[string]int{}}
	for len(f.cuts) < cuts {
		if at := 1 + rng.IntN(within); !slices.Contains(f.cuts, at) {
			f.cuts = append(f.cuts, at)
		}
	}
	slices.Sort(f.cuts)
	f.planned = cuts
	return f
}

// head is the last event that arrived, and how often the line was cut.
func (f *follower) head() (event int64, cuts int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.events) > 0 {
		event = f.events[len(f.events)-1].EventID
	}
	return event, f.cut
}

// run follows until ctx ends. An error is what no client could mend by coming
// back.
func (f *follower) run(ctx context.Context) error {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for ctx.Err() == nil {
		mine, err := f.connect(ctx, client)
		if err != nil {
			return err
		}
		if mine || ctx.Err() != nil {
			continue
		}
		f.mu.Lock()
		f.lost++
		f.mu.Unlock()
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
	return nil
}

// connect reads one connection to its end; mine says that we cut it.
func (f *follower) connect(ctx context.Context, client *http.Client) (mine bool, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, f.url+"?after="+url.QueryEscape(f.cursor), nil)
	if err != nil {
		return false, err
	}
	req.Header.Set("Authorization", "Bearer "+f.key)
	req.Header.Set("Accept", "text/event-stream")
	resp, err := client.Do(req)
	if err != nil {
		return false, nil //nolint:nilerr // a gateway that is down is why there are two
	}
	defer resp.Body.Close() //nolint:errcheck // closing is the cut
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 2000)) // only for the message
		if resp.StatusCode >= 500 {
			return false, nil
		}
		return false, fmt.Errorf("the stream answered %s: %s", resp.Status, text)
	}
	return f.read(bufio.NewReader(resp.Body))
}

// read takes the frames of a connection.
func (f *follower) read(r *bufio.Reader) (mine bool, err error) {
	var id, kind, data string
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return false, nil // a cut that was not ours
		}
		if f.countLine() {
			return true, nil
		}
		line = strings.TrimRight(line, "\r\n")
		field, value, _ := strings.Cut(line, ": ")
		switch {
		case line == "":
			if err := f.dispatch(id, kind, data); err != nil {
				return false, err
			}
			id, kind, data = "", "", ""
		case field == "id":
			id = value
		case field == "event":
			kind = value
		case field == "data":
			data += value
		}
	}
}

// countLine reports whether the line is cut here.
func (f *follower) countLine() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lines++
	if len(f.cuts) == 0 || f.lines < f.cuts[0] {
		return false
	}
	f.cuts = f.cuts[1:]
	f.cut++
	return true
}

// dispatch takes a whole frame.
func (f *follower) dispatch(id, kind, data string) error {
	switch kind {
	case "task.status":
		var e followed
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			return fmt.Errorf("event %s: %w", id, err)
		}
		f.mu.Lock()
		f.events, f.arrived, f.cursor = append(f.events, e), append(f.arrived, time.Now()), id
		f.mu.Unlock()
	case "", "move", "busy": // nothing, or: come back
		f.mu.Lock()
		f.said[kind]++
		if id != "" {
			f.cursor = id
		}
		f.mu.Unlock()
	default:
		return fmt.Errorf("the stream said %s %s to the cursor %s", kind, data, f.cursor)
	}
	return nil
}
