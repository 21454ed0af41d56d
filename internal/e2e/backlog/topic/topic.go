// Package topic reads a broker's topic from outside of the product.
package topic

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	rocketmq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/rlog"

	"github.com/aivedio/aivedio/internal/e2e/backlog"
	"github.com/aivedio/aivedio/internal/wire"
)

// quiet is how long nothing may come before a topic counts as read.
const quiet = 5 * time.Second

// Read shows the audit everything that a topic holds, each queue from its
// beginning and in its order, with the broker's own client and none of the
// product's. It returns when at least want messages were read and none came for a
// while; when ctx ends first, what is missing is for the audit to say. group is a
// name that no other reader had.
func Read(ctx context.Context, nameServer, topic, group string, want int64, audit *backlog.Audit) error {
	rlog.SetLogLevel("error")
	r := &reader{audit: audit, next: map[int]int64{}, came: make(chan struct{}, 1)}
	client, err := rocketmq.NewPushConsumer(
		consumer.WithNsResolver(primitive.NewPassthroughResolver([]string{nameServer})), consumer.WithGroupName(group), consumer.WithInstance(group),
		consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset), consumer.WithConsumeMessageBatchMaxSize(256), consumer.WithPullBatchSize(256),
		consumer.WithConsumeGoroutineNums(1), // with more, batches of one queue overtake each other
	)
	if err == nil {
		err = client.Subscribe(topic, consumer.MessageSelector{Type: consumer.TAG, Expression: "*"}, r.consume)
	}
	if err == nil {
		err = client.Start()
	}
	if err != nil {
		return fmt.Errorf("read topic %s: %w", topic, err)
	}
	r.await(ctx, want)
	client.Suspend() // its Shutdown may end this process while a pull is under way
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	return r.failure
}

// reader gives messages to the audit, each once.
type reader struct {
	came chan struct{}

	mu      sync.Mutex
	audit   *backlog.Audit
	next    map[int]int64 // offset by queue: the client may deliver again
	count   int64
	failure error
	closed  bool
}

func (r *reader) consume(_ context.Context, messages ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range messages {
		queue := m.Queue.QueueId
		if r.closed || m.QueueOffset < r.next[queue] {
			continue
		}
		if m.QueueOffset > r.next[queue] {
			r.failure = errors.Join(r.failure, fmt.Errorf("queue %d: offset %d came after %d", queue, m.QueueOffset, r.next[queue]-1))
		}
		r.next[queue] = m.QueueOffset + 1
		r.count++
		e, err := wire.ParseMessage(m.Body)
		if err != nil {
			r.failure = errors.Join(r.failure, fmt.Errorf("queue %d, offset %d: %w", queue, m.QueueOffset, err))
			continue
		}
		r.audit.See(e.ProjectID, e.EventID, time.UnixMilli(m.StoreTimestamp))
	}
	select {
	case r.came <- struct{}{}:
	default:
	}
	return consumer.ConsumeSuccess, nil
}

// await returns when enough was read and nothing more comes.
func (r *reader) await(ctx context.Context, want int64) {
	timer := time.NewTimer(quiet)
	defer timer.Stop()
	for {
		select {
		case <-r.came:
			timer.Reset(quiet)
		case <-timer.C:
			r.mu.Lock()
			enough := r.count >= want
			r.mu.Unlock()
			if enough {
				return
			}
			timer.Reset(quiet)
		case <-ctx.Done():
			return
		}
	}
}
