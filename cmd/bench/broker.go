package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	rocketmq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"

	"github.com/aivedio/aivedio/adapters/rocketbus"
	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/internal/e2e/launch"
	"github.com/aivedio/aivedio/internal/testenv/services"
	"github.com/aivedio/aivedio/internal/wire"
)

const (
	// brokerRate is the specification's peak in events per second.
	brokerRate  = 1080
	brokerTopic = "bench-task-events"
)

// brokerFigures: from the moment at which a delivery was due to its event on a real
// broker.
type brokerFigures struct {
	Rate figure `json:"rate_per_s"`
	// Stored is until the broker had stored the message, by its clock in whole
	// milliseconds; Received until a consumer outside the product had it.
	Stored   quantiles `json:"stored_ms"`
	Received quantiles `json:"received_ms"`
	Messages int       `json:"messages"`
}

// String is a sentence.
func (b brokerFigures) String() string {
	return fmt.Sprintf("callback to the broker at %v/s: stored %v ms, received by a consumer %v ms (%d messages)", b.Rate, b.Stored, b.Received, b.Messages)
}

// brokerRun is a broker with the delivery roles on it.
type brokerRun struct {
	server *services.RocketMQ
	bus    *rocketbus.Bus
	client rocketmq.PushConsumer

	mu      sync.Mutex
	arrived map[domain.TaskID]arrival
	failure error
}

type arrival struct{ stored, received time.Time }

// startBroker starts a broker that acknowledges after fsync, creates the topic and
// listens to it.
func startBroker(ctx context.Context) (*brokerRun, error) {
	server, err := services.StartRocketMQ(ctx, services.RocketMQOptions{SyncFlush: true})
	if err != nil {
		return nil, invalid("the broker cannot be started (leave it out with --no-broker): %v", err)
	}
	b := &brokerRun{server: server, arrived: map[domain.TaskID]arrival{}}
	names := []string{server.NameServer()}
	b.bus, err = rocketbus.Open(ctx, rocketbus.Config{NameServers: names, Topic: brokerTopic, Role: "bench", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, errors.Join(err, b.stop())
	}
	b.client, err = rocketmq.NewPushConsumer(
		consumer.WithNsResolver(primitive.NewPassthroughResolver(names)), consumer.WithGroupName("bench-outside"), consumer.WithInstance("bench-outside"),
		consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset),
	)
	if err == nil {
		err = b.client.Subscribe(brokerTopic, consumer.MessageSelector{Type: consumer.TAG, Expression: "*"}, b.consume)
	}
	if err == nil {
		err = b.client.Start()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("consumer: %w", err), b.stop())
	}
	return b, nil
}

func (b *brokerRun) consume(_ context.Context, messages ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
	now := time.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, m := range messages {
		e, err := wire.ParseMessage(m.Body)
		if err != nil {
			b.failure = fmt.Errorf("a message that is no event: %w", err)
			continue
		}
		if _, again := b.arrived[e.TaskID]; !again {
			b.arrived[e.TaskID] = arrival{time.UnixMilli(m.StoreTimestamp), now}
		}
	}
	return consumer.ConsumeSuccess, nil
}

// await returns when the events of so many tasks have arrived.
func (b *brokerRun) await(ctx context.Context, want int) error {
	ctx, cancel := context.WithTimeout(ctx, streamPatience)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		b.mu.Lock()
		have, failure := len(b.arrived), b.failure
		b.mu.Unlock()
		if failure != nil {
			return failure
		}
		if have >= want {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return invalid("%d of %d events have come from the broker", have, want)
		}
	}
}

// warmBroker sends until nothing is new to the processes, the broker and its client.
func (b *bed) warmBroker(ctx context.Context, broker *brokerRun, v *volley) error {
	f, err := v.fire(ctx, order{Conns: b.conns, For: steadyWarmUp, Rate: brokerRate})
	if err != nil {
		return err
	}
	b.note(f)
	if err := errors.Join(b.observer.awaitDrained(ctx), broker.await(ctx, f.count(acknowledged))); err != nil {
		return err
	}
	broker.mu.Lock()
	defer broker.mu.Unlock()
	clear(broker.arrived)
	return nil
}

func (b *brokerRun) stop() error {
	if b.client != nil {
		b.client.Suspend() // its Shutdown may end this process while a pull is under way
	}
	var errs []error
	if b.bus != nil {
		errs = append(errs, b.bus.Close())
	}
	return errors.Join(append(errs, b.server.Stop())...)
}

// throughBroker paces deliveries while relay and dispatch work with a real broker,
// and follows each until it is there. The report gets who took part.
func (b *bed) throughBroker(ctx context.Context, r *report, d time.Duration) (out brokerFigures, err error) {
	broker, err := startBroker(ctx)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, broker.stop()) }()
	for _, pid := range broker.server.PIDs() {
		r.ran(commandOf(pid), pid)
	}
	inProcess := b.system.delivery
	defer func() { b.system.delivery = inProcess }()
	b.system.delivery, _, err = b.system.serve("delivery-rocketmq", "relay,dispatch,gateway", launch.Deployment{
		Database: b.cluster.URL(oursDatabase), NameServers: []string{broker.server.NameServer()}, Topic: brokerTopic,
	})
	if err != nil {
		return out, err
	}
	warm, err := b.volley(ctx)
	if err != nil {
		return out, err
	}
	v, err := b.volley(ctx)
	if err != nil {
		return out, errors.Join(err, warm.drop())
	}
	if err := b.startAll(ctx); err != nil {
		return out, errors.Join(err, warm.drop(), v.drop())
	}
	if err := b.warmBroker(ctx, broker, warm); err != nil {
		return out, errors.Join(err, v.drop())
	}
	f, err := v.fire(ctx, order{Conns: b.conns, For: d, Rate: brokerRate})
	if err != nil {
		return out, err
	}
	b.note(f)
	n := f.count(acknowledged)
	if err := errors.Join(b.observer.awaitDrained(ctx), broker.await(ctx, n)); err != nil {
		return out, err
	}
	var stored, received []figure
	broker.mu.Lock()
	f.acknowledged(func(_ string, index int, due, _ time.Time) {
		if a, ok := broker.arrived[b.people.tasks[index].id]; ok {
			stored, received = append(stored, milliseconds(a.stored.Sub(due))), append(received, milliseconds(a.received.Sub(due)))
		}
	})
	broker.mu.Unlock()
	if len(stored) != n {
		return out, invalid("%d of %d events have come from the broker", len(stored), n)
	}
	out = brokerFigures{Rate: perSecond(n, f.Lasted), Stored: quantilesOf(stored), Received: quantilesOf(received), Messages: n}
	return out, b.stopAll()
}
