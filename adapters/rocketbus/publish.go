package rocketbus

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	"github.com/apache/rocketmq-client-go/v2/primitive"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/internal/wire"
	"github.com/aivedio/aivedio/ports"
)

// lane is what a Publish has for one queue, cut into batches, in order.
type lane struct {
	queue   primitive.MessageQueue
	batches []batch
}

// batch is stored whole or refused whole.
type batch struct {
	messages []*primitive.Message
	projects []domain.ProjectID
	bytes    int
}

// laneResult says which projects of a lane failed.
type laneResult struct {
	lane   int
	failed map[domain.ProjectID]error
}

// Publish implements [ports.Bus]. It returns within the publish time-out. A send
// that timed out may be stored later all the same: the events are then repeated,
// never out of order, since the caller sends again from the first failed one.
func (b *Bus) Publish(ctx context.Context, rows []ports.OutboxRow) error {
	if err := ctx.Err(); err != nil {
		return publishError(projectsOf(rows), err)
	}
	if err := b.beginSend(); err != nil {
		return publishError(projectsOf(rows), err)
	}
	defer b.sending.Done()
	lanes, err := b.lanes(rows)
	if err != nil {
		return publishError(projectsOf(rows), err)
	}
	ctx, cancel := context.WithTimeout(ctx, b.cfg.PublishTimeout)
	defer cancel()
	failed := map[domain.ProjectID]error{}
	suspects, sound := b.bySuspicion(lanes)
	b.sendAll(ctx, sound, failed)
	b.sendSuspects(ctx, suspects, failed)
	if len(failed) == 0 {
		return nil
	}
	return publishError(failed, nil)
}

// beginSend counts a send for Close.
func (b *Bus) beginSend() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return ErrClosed
	}
	b.sending.Add(1)
	return nil
}

// sendAll sends the lanes side by side. It does not wait longer than the
// context: the library dials under a lock that no context ends.
func (b *Bus) sendAll(ctx context.Context, lanes []lane, failed map[domain.ProjectID]error) {
	results := make(chan laneResult, len(lanes))
	for i, l := range lanes {
		b.sending.Add(1)
		go func() {
			defer b.sending.Done()
			results <- laneResult{i, b.sendLane(ctx, l)}
		}()
	}
	open := make([]bool, len(lanes))
	for i := range open {
		open[i] = true
	}
	for range lanes {
		select {
		case r := <-results:
			open[r.lane] = false
			for project, err := range r.failed {
				failed[project] = err
			}
		case <-ctx.Done():
			for i, l := range lanes {
				if open[i] {
					failAll(failed, l.batches, fmt.Errorf("the send has not ended: %w", ctx.Err()))
				}
			}
			return
		}
	}
}

// sendSuspects tries one lane of each broker whose last send failed, and the
// others only when that one got through: a dead broker costs one dial, not one
// per queue.
func (b *Bus) sendSuspects(ctx context.Context, lanes []lane, failed map[domain.ProjectID]error) {
	for len(lanes) > 0 {
		broker := lanes[0].queue.BrokerName
		rest := slices.DeleteFunc(slices.Clone(lanes), func(l lane) bool { return l.queue.BrokerName != broker })
		lanes = slices.DeleteFunc(lanes, func(l lane) bool { return l.queue.BrokerName == broker })
		b.sendAll(ctx, rest[:1], failed)
		if b.suspect(broker) {
			for _, l := range rest[1:] {
				failAll(failed, l.batches, fmt.Errorf("broker %s does not take messages", broker))
			}
			continue
		}
		b.sendAll(ctx, rest[1:], failed)
	}
}

func (b *Bus) bySuspicion(lanes []lane) (suspects, sound []lane) {
	for _, l := range lanes {
		if b.suspect(l.queue.BrokerName) {
			suspects = append(suspects, l)
		} else {
			sound = append(sound, l)
		}
	}
	return suspects, sound
}

func (b *Bus) suspect(broker string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.suspects[broker]
}

func (b *Bus) setSuspect(broker string, suspect bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if suspect {
		b.suspects[broker] = true
	} else {
		delete(b.suspects, broker)
	}
}

// sendLane sends the batches of a queue until one fails; those after it would
// overtake it.
func (b *Bus) sendLane(ctx context.Context, l lane) map[domain.ProjectID]error {
	for i, batch := range l.batches {
		err := ctx.Err()
		if err == nil {
			err = b.send(ctx, batch)
			b.setSuspect(l.queue.BrokerName, err != nil)
		}
		if err != nil {
			failed := map[domain.ProjectID]error{}
			failAll(failed, l.batches[i:], fmt.Errorf("queue %s/%d: %w", l.queue.BrokerName, l.queue.QueueId, err))
			return failed
		}
	}
	return nil
}

// send stores one batch. Only SendOK counts: the library returns no error when
// the broker could not flush to disk or reach its replica. SendAsync is not used
// anywhere; it panics while the broker is away.
func (b *Bus) send(ctx context.Context, batch batch) error {
	result, err := b.producer.SendSync(ctx, batch.messages...)
	if err != nil {
		return err
	}
	if result.Status != primitive.SendOK {
		return fmt.Errorf("the broker's send status is %d, not OK", result.Status)
	}
	return nil
}

// lanes sorts the rows by (project, event) and cuts them by queue and size.
func (b *Bus) lanes(rows []ports.OutboxRow) ([]lane, error) {
	rows = slices.Clone(rows)
	slices.SortStableFunc(rows, func(a, b ports.OutboxRow) int { return compareEvents(a.Event, b.Event) })
	byQueue := make([][]batch, len(b.queues))
	for _, row := range rows {
		q := queueOf(row.Event.ProjectID, len(b.queues))
		message, err := b.message(row.Event, b.queues[q])
		if err != nil {
			return nil, err
		}
		byQueue[q] = b.add(byQueue[q], message, row.Event.ProjectID)
	}
	var lanes []lane
	for q, batches := range byQueue {
		if len(batches) > 0 {
			lanes = append(lanes, lane{b.queues[q], batches})
		}
	}
	return lanes, nil
}

// add appends to the last batch, or opens one.
func (b *Bus) add(batches []batch, m *primitive.Message, project domain.ProjectID) []batch {
	last := len(batches) - 1
	if last < 0 || len(batches[last].messages) >= b.cfg.BatchSize || batches[last].bytes+len(m.Body) > b.cfg.BatchBytes {
		batches = append(batches, batch{})
		last++
	}
	to := &batches[last]
	to.messages = append(to.messages, m)
	to.bytes += len(m.Body)
	if n := len(to.projects); n == 0 || to.projects[n-1] != project {
		to.projects = append(to.projects, project)
	}
	return batches
}

func (b *Bus) message(e ports.StoredEvent, queue primitive.MessageQueue) (*primitive.Message, error) {
	body, err := json.Marshal(wire.MessageOf(e))
	if err != nil {
		return nil, fmt.Errorf("encode event %d of project %s: %w", e.EventID, e.ProjectID, err)
	}
	m := primitive.NewMessage(b.cfg.Topic, body)
	m.Queue = &queue
	m.WithKeys([]string{property(wire.TaskID(e.TaskID))})
	m.WithTag(property(e.Type))
	m.WithShardingKey(property(wire.ProjectID(e.ProjectID))) // for people
	return m, nil
}

// property leaves out what would break a message's properties (the bytes 1 and 2
// separate them) or the syntax of keys (spaces) and tags (bars).
func property(s string) string {
	return strings.Map(func(r rune) rune {
		if r <= ' ' || r == '|' || r == 0x7f {
			return -1
		}
		return r
	}, s)
}

// queueOf is the project's queue of n.
func queueOf(project domain.ProjectID, n int) int {
	h := fnv.New32a()
	_, _ = h.Write(project.ID[:]) // never fails
	return int(h.Sum32() % uint32(n))
}

func compareEvents(a, b ports.StoredEvent) int {
	return cmp.Or(slices.Compare(a.ProjectID.ID[:], b.ProjectID.ID[:]), cmp.Compare(a.EventID, b.EventID))
}

func failAll(failed map[domain.ProjectID]error, batches []batch, err error) {
	for _, batch := range batches {
		for _, project := range batch.projects {
			failed[project] = err
		}
	}
}

func projectsOf(rows []ports.OutboxRow) map[domain.ProjectID]error {
	projects := map[domain.ProjectID]error{}
	for _, r := range rows {
		projects[r.Event.ProjectID] = nil
	}
	return projects
}

// publishError reports the failed projects. A cause is that of each; without one
// each has its own, and the whole has one of them.
func publishError(failed map[domain.ProjectID]error, cause error) *ports.PublishError {
	e := &ports.PublishError{FailedProjects: make(map[string]error, len(failed)), Err: cause}
	for project, err := range failed {
		if cause != nil {
			err = cause
		}
		e.FailedProjects[project.String()] = err
		if e.Err == nil {
			e.Err = err
		}
	}
	return e
}
