package rocketbus

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
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
	// projects are those of the messages, starts where the messages of each begin.
	projects []domain.ProjectID
	starts   []int
	bytes    int
}

// of is the batch of the i-th project alone.
func (b batch) of(i int) batch {
	end := len(b.messages)
	if i+1 < len(b.starts) {
		end = b.starts[i+1]
	}
	return batch{messages: b.messages[b.starts[i]:end], projects: b.projects[i : i+1], starts: []int{0}}
}

// without is the batch without the projects that have failed already: what comes
// now would overtake.
func (b batch) without(failed map[domain.ProjectID]error) batch {
	if len(failed) == 0 {
		return b
	}
	var rest batch
	for i, project := range b.projects {
		if failed[project] != nil {
			continue
		}
		rest.projects = append(rest.projects, project)
		rest.starts = append(rest.starts, len(rest.messages))
		rest.messages = append(rest.messages, b.of(i).messages...)
	}
	return rest
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
	ctx, cancel := context.WithTimeout(ctx, b.cfg.PublishTimeout)
	defer cancel()
	failed := map[domain.ProjectID]error{}
	lanes := b.lanes(rows, failed)
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

// sendLane sends the batches of a queue until the broker fails; those after it
// would overtake. A batch that the broker refuses is sent project by project: one
// whose messages nobody takes must not hold up its neighbours.
func (b *Bus) sendLane(ctx context.Context, l lane) map[domain.ProjectID]error {
	failed := map[domain.ProjectID]error{}
	for i, batch := range l.batches {
		err := b.sendBatch(ctx, batch.without(failed), failed)
		if ctx.Err() == nil || err == nil {
			b.setSuspect(l.queue.BrokerName, err != nil)
		}
		if err != nil {
			failAll(failed, l.batches[i:], fmt.Errorf("queue %s/%d: %w", l.queue.BrokerName, l.queue.QueueId, err))
			break
		}
	}
	return failed
}

// sendBatch notes projects that are refused; its error is the bus's.
func (b *Bus) sendBatch(ctx context.Context, batch batch, failed map[domain.ProjectID]error) error {
	if len(batch.messages) == 0 {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	err := b.send(ctx, batch)
	if !errors.Is(err, ports.ErrRefused) {
		return err
	}
	if len(batch.projects) == 1 {
		failed[batch.projects[0]] = err
		return nil
	}
	for i := range batch.projects {
		if err := b.sendBatch(ctx, batch.of(i), failed); err != nil {
			return err
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
		return refusal(err)
	}
	if result.Status != primitive.SendOK {
		return fmt.Errorf("the broker's send status is %d, not OK", result.Status)
	}
	return nil
}

// messageIllegal is the broker's answer to a message that it will never take: too
// long a body, too long properties.
const messageIllegal = 13

// refusal marks an error that is the messages' own fault. The library has the
// broker's code in its text only.
func refusal(err error) error {
	var code int
	if n, _ := fmt.Sscanf(err.Error(), "CODE: %d,", &code); n == 1 && code == messageIllegal {
		return fmt.Errorf("%w: %w", ports.ErrRefused, err)
	}
	return err
}

// lanes sorts the rows by (project, event) and cuts them by queue and size. What
// cannot be encoded is noted as refused, and so is what follows it.
func (b *Bus) lanes(rows []ports.OutboxRow, failed map[domain.ProjectID]error) []lane {
	rows = slices.Clone(rows)
	slices.SortStableFunc(rows, func(a, b ports.OutboxRow) int { return compareEvents(a.Event, b.Event) })
	byQueue := make([][]batch, len(b.queues))
	for _, row := range rows {
		project := row.Event.ProjectID
		if failed[project] != nil {
			continue
		}
		q := queueOf(project, len(b.queues))
		message, err := b.message(row, &b.queues[q])
		if err != nil {
			failed[project] = fmt.Errorf("%w: %w", ports.ErrRefused, err)
			continue
		}
		byQueue[q] = b.add(byQueue[q], message, project)
	}
	var lanes []lane
	for q, batches := range byQueue {
		if len(batches) > 0 {
			lanes = append(lanes, lane{b.queues[q], batches})
		}
	}
	return lanes
}

// add appends to the last batch, or opens one.
func (b *Bus) add(batches []batch, m *primitive.Message, project domain.ProjectID) []batch {
	last := len(batches) - 1
	if last < 0 || len(batches[last].messages) >= b.cfg.BatchSize || batches[last].bytes+len(m.Body) > b.cfg.BatchBytes {
		batches = append(batches, batch{})
		last++
	}
	to := &batches[last]
	if n := len(to.projects); n == 0 || to.projects[n-1] != project {
		to.projects, to.starts = append(to.projects, project), append(to.starts, len(to.messages))
	}
	to.messages = append(to.messages, m)
	to.bytes += len(m.Body)
	return batches
}

// message is the row's own message, or its event encoded.
func (b *Bus) message(row ports.OutboxRow, queue *primitive.MessageQueue) (*primitive.Message, error) {
	e, body := row.Event, row.Message
	if body == nil {
		var err error
		if body, err = json.Marshal(wire.MessageOf(e)); err != nil {
			return nil, fmt.Errorf("encode event %d of project %s: %w", e.EventID, e.ProjectID, err)
		}
	}
	m := primitive.NewMessage(b.cfg.Topic, body)
	m.Queue = queue
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
			if failed[project] == nil { // or it was refused
				failed[project] = err
			}
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
