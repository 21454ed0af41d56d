package rocketbus

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	rocketmq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/hooks"
	"github.com/apache/rocketmq-client-go/v2/primitive"

	"github.com/aivedio/aivedio/ports"
)

// consumeTimeout is when the library takes a batch for lost and sends it anew.
// Its own 15 minutes are also how long it keeps a goroutine after Shutdown.
const consumeTimeout = time.Minute

// mostRetries is how often the broker brings a batch back: without an end that
// anyone would live to see. Its default of 16 moves the batch to a dead letter
// topic that nobody reads.
const mostRetries = 1 << 20

// subscription is one consumer of a group.
type subscription struct {
	bus     *Bus
	group   string
	ctx     context.Context // values of the subscriber, never canceled
	handler func(context.Context, []ports.StoredEvent) error
	// client is written before started is closed; nil when the start failed.
	client  rocketmq.PushConsumer
	started chan struct{}

	drain  drain
	closed sync.Once
	err    error
}

var _ ports.Subscription = (*subscription)(nil)

// Subscribe implements [ports.Bus]. The context bounds the call alone; the
// handler sees its values, but only Close ends the subscription. The handler is
// called for one batch of one queue at a time. Of several subscriptions of one
// group each gets a part of the queues. A handler must not close its own
// subscription or the bus.
//
// The library's ordered mode is not used: it tries a poisonous message for ever,
// and nothing behind it would be seen. In the mode that is used a failed batch
// comes back later from a topic of its own, and what is behind it goes on.
func (b *Bus) Subscribe(ctx context.Context, group string, handler func(context.Context, []ports.StoredEvent) error) (ports.Subscription, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if !nameForm.MatchString(group) {
		return nil, fmt.Errorf("the group %q may have letters, digits, _ and - only", group)
	}
	s := &subscription{
		bus: b, group: b.cfg.GroupPrefix + group, ctx: context.WithoutCancel(ctx), handler: handler,
		started: make(chan struct{}), drain: newDrain(),
	}
	if err := b.join(s); err != nil {
		return nil, err
	}
	client, err := s.start(ctx)
	s.client = client
	close(s.started)
	if err != nil {
		b.remove(s)
		return nil, fmt.Errorf("rocketbus: subscribe group %s: %w", s.group, err)
	}
	return s, nil
}

// start prepares the broker and starts the consumer.
func (s *subscription) start(ctx context.Context) (rocketmq.PushConsumer, error) {
	b := s.bus
	route, err := b.cluster.route(ctx, b.cfg.Topic)
	if err != nil {
		return nil, err
	}
	if err := route.startGroup(ctx, s.group); err != nil {
		return nil, err
	}
	// The broker makes the topic of failed batches when it first needs it, and
	// the library looks for it every 30 s: the first retry would take that long.
	if _, err := b.cluster.ensure(ctx, "%RETRY%"+s.group, 1); err != nil {
		return nil, err
	}
	client, err := rocketmq.NewPushConsumer(
		consumer.WithNsResolver(b.resolver),
		consumer.WithGroupName(s.group),
		consumer.WithInstance(b.instance(s.group)),
		consumer.WithConsumerModel(consumer.Clustering),
		// Only queues without an offset ask: those added after the group.
		consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset),
		consumer.WithConsumeMessageBatchMaxSize(b.cfg.BatchSize),
		consumer.WithPullBatchSize(int32(b.cfg.BatchSize)),
		// One call at a time: with more, batches of one queue overtake each other.
		consumer.WithConsumeGoroutineNums(1),
		consumer.WithConsumeTimeout(consumeTimeout),
		consumer.WithMaxReconsumeTimes(mostRetries),
		consumer.WithFilterMessageHook([]hooks.FilterMessageHook{s.pulled}),
	)
	if err != nil {
		return nil, err
	}
	all := consumer.MessageSelector{Type: consumer.TAG, Expression: "*"}
	if err := client.Subscribe(b.cfg.Topic, all, s.consume); err != nil {
		return nil, err
	}
	if err := client.Start(); err != nil {
		return nil, err
	}
	return client, nil
}

func (b *Bus) join(s *subscription) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return ErrClosed
	}
	b.subscriptions = append(b.subscriptions, s)
	return nil
}

func (b *Bus) remove(s *subscription) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.subscriptions = slices.DeleteFunc(b.subscriptions, func(have *subscription) bool { return have == s })
}

// Close implements [ports.Subscription]. Shutdown itself waits for nothing, so
// the order is: no new pulls, the calls for what was pulled, Shutdown. What comes
// meanwhile is delivered to another consumer, or to the next of the group.
func (s *subscription) Close() error {
	s.closed.Do(func() {
		<-s.started // Close of the bus may come first
		if s.client == nil {
			return
		}
		s.client.Suspend()
		s.drain.wait()
		s.err = s.client.Shutdown()
		s.drain.over()
		s.bus.remove(s)
	})
	return s.err
}

// pulled is called by the library, on the goroutine of a pull, with what was
// found.
func (s *subscription) pulled(c *hooks.FilterMessageContext) ([]*primitive.MessageExt, error) {
	if !s.drain.pull(len(c.Msg)) {
		return nil, nil
	}
	return c.Msg, nil
}

// consume is called by the library with a batch of one queue. A returned error
// would not do: the zero result means success and wins over it.
func (s *subscription) consume(ctx context.Context, messages ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
	if !s.drain.begin(len(messages)) {
		return consumer.ConsumeRetryLater, nil
	}
	defer s.drain.end()
	events := s.parse(messages)
	err := s.call(events)
	retries := retriesOf(messages)
	if err != nil && retries > 0 && len(events) > 1 {
		err = s.callEach(events)
	}
	if err == nil {
		return consumer.ConsumeSuccess, nil
	}
	s.bus.cfg.Logger.Warn("a bus handler failed, its batch comes back", "group", s.group, "events", len(events), "retries", retries, "error", err)
	if c, ok := primitive.GetConcurrentlyCtx(ctx); ok {
		c.DelayLevelWhenNextConsume = delayLevel(retries)
	}
	return consumer.ConsumeRetryLater, nil
}

// call runs the handler. A panic must end here: the library would swallow it
// and leave the queue standing until the consume time-out.
func (s *subscription) call(events []ports.StoredEvent) (err error) {
	if len(events) == 0 {
		return nil
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("handler panicked: %v", p)
		}
	}()
	ctx, cancel := context.WithTimeout(s.ctx, s.bus.cfg.HandlerTimeout)
	defer cancel()
	return s.handler(ctx, events)
}

// callEach gives every event of a batch that failed again its own call, so that
// one which no handler can bear does not keep the others from being handled.
func (s *subscription) callEach(events []ports.StoredEvent) error {
	var errs []error
	for _, e := range events {
		if err := s.call([]ports.StoredEvent{e}); err != nil {
			errs = append(errs, fmt.Errorf("event %d of project %s: %w", e.EventID, e.ProjectID, err))
		}
	}
	return errors.Join(errs...)
}

// delayLevel is the broker's step of waiting after n retries: 1 s, 5 s, 10 s,
// 30 s, 1 min and so on to 5 min.
func delayLevel(retries int) int {
	const first, fiveMinutes = 1, 9
	return min(first+retries, fiveMinutes)
}

// retriesOf is how often the batch came back already.
func retriesOf(messages []*primitive.MessageExt) int {
	retries := 0
	for _, m := range messages {
		retries = max(retries, int(m.ReconsumeTimes))
	}
	return retries
}
