package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	rocketmq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"

	"github.com/aivedio/aivedio/adapters/rocketbus"
	"github.com/aivedio/aivedio/internal/wire"
)

// topicContent is all that a topic holds.
type topicContent struct {
	// offsets is what the broker says: the sum of the ends of all queues.
	offsets int64
	// stored is how many messages were read, times how often each event is among
	// them.
	stored int64
	times  map[int64]int
	// disorder counts first occurrences that came after a later event.
	disorder int
}

// readTopic reads the topic of one project from its beginning, without going
// through the product's own consumer, which drops repeats.
func readTopic(ctx context.Context, t *testing.T, nameServers []string, topic string) topicContent {
	t.Helper()
	bus, err := rocketbus.Open(ctx, rocketbus.Config{NameServers: nameServers, Topic: topic, Role: "audit"})
	if err != nil {
		t.Fatal(err)
	}
	defer bus.Close() //nolint:errcheck // it is only asked for offsets
	r := topicReader{t: t, events: map[string]map[int64]int64{}}
	offsets, err := bus.TopicOffsets(ctx)
	if err != nil {
		t.Fatal(err)
	}
	c, err := rocketmq.NewPushConsumer(
		consumer.WithNsResolver(primitive.NewPassthroughResolver(nameServers)),
		consumer.WithGroupName("audit-"+topic), consumer.WithInstance("audit-"+topic),
		consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset),
		consumer.WithConsumeGoroutineNums(1), consumer.WithPullBatchSize(32), consumer.WithConsumeMessageBatchMaxSize(32),
	)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Subscribe(topic, consumer.MessageSelector{Type: consumer.TAG, Expression: "*"}, r.consume); err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	err = await(ctx, "the topic to be read", func() (bool, error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.stored >= offsets, nil
	})
	c.Suspend() // its Shutdown may end this process while a pull is under way
	content := r.content(offsets)
	if err != nil {
		t.Errorf("%v: %d of %d messages", err, content.stored, offsets)
	}
	return content
}

type topicReader struct {
	t  *testing.T
	mu sync.Mutex
	// events by queue and offset: a message may be delivered twice, and counts once.
	events map[string]map[int64]int64
	stored int64
}

func (r *topicReader) consume(_ context.Context, messages ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range messages {
		queue := fmt.Sprintf("%s/%d", m.Queue.BrokerName, m.Queue.QueueId)
		if r.events[queue] == nil {
			r.events[queue] = map[int64]int64{}
		}
		if _, again := r.events[queue][m.QueueOffset]; again {
			continue
		}
		e, err := wire.ParseMessage(m.Body)
		if err != nil {
			r.t.Errorf("message %d of queue %s is no event: %v", m.QueueOffset, queue, err)
		}
		r.events[queue][m.QueueOffset] = e.EventID
		r.stored++
	}
	return consumer.ConsumeSuccess, nil
}

// content looks at the queues in the order of their offsets.
func (r *topicReader) content(offsets int64) topicContent {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := topicContent{offsets: offsets, stored: r.stored, times: map[int64]int{}}
	for _, queue := range r.events {
		var last int64
		for _, offset := range slices.Sorted(maps.Keys(queue)) {
			event := queue[offset]
			c.times[event]++
			if c.times[event] > 1 {
				continue
			}
			if event < last {
				c.disorder++
			}
			last = event
		}
	}
	return c
}

// repeats is how many messages tell of an event that an earlier one told of.
func (c topicContent) repeats() int64 { return c.stored - int64(len(c.times)) }

// await asks ten times a second until the condition holds, or ctx ends.
func await(ctx context.Context, what string, done func() (bool, error)) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		ok, err := done()
		if err != nil || ok {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("waited too long for %s: %w", what, ctx.Err())
		}
	}
}
