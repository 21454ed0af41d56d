package rocketbus

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	rocketmq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"

	"github.com/aivedio/aivedio/ports"
)

// ErrClosed refuses calls of a bus that was closed.
var ErrClosed = errors.New("the bus is closed")

// Bus is a producer and any number of consumers. It is safe for concurrent use;
// rows of one project must be published by one caller at a time.
type Bus struct {
	cfg      Config
	cluster  cluster
	resolver nameResolver
	// queues is fixed for the life of the bus: a project keeps its queue even
	// while a broker is away and its queues have left the route.
	queues   []primitive.MessageQueue
	producer rocketmq.Producer

	mu            sync.Mutex
	closed        bool
	suspects      map[string]bool // brokers whose last send failed
	subscriptions []*subscription
	sending       sync.WaitGroup
}

var _ ports.Bus = (*Bus)(nil)

// Open connects to RocketMQ, creates the topic when it is missing and starts the
// producer. It fails when no name server or no broker answers.
func Open(ctx context.Context, cfg Config) (*Bus, error) {
	cfg = cfg.WithDefaults()
	if err := errors.Join(cfg.Validate(), hostPorts(cfg.NameServers)); err != nil {
		return nil, fmt.Errorf("rocketbus: %w", err)
	}
	b := &Bus{
		cfg: cfg, cluster: cluster{cfg.NameServers}, resolver: nameResolver{cfg.NameServers},
		suspects: map[string]bool{},
	}
	if err := setUpLibrary(b.resolver, cfg.Logger); err != nil {
		return nil, fmt.Errorf("rocketbus: %w", err)
	}
	route, err := b.cluster.ensure(ctx, cfg.Topic, cfg.Queues)
	if err != nil {
		return nil, fmt.Errorf("rocketbus: topic %s: %w", cfg.Topic, err)
	}
	if have := len(route.queues); have%cfg.Queues != 0 {
		cfg.Logger.Warn("the topic has another number of queues than configured and keeps it", "topic", cfg.Topic, "queues", have, "configured", cfg.Queues)
	}
	b.queues = route.queues
	if err := b.startProducer(); err != nil {
		return nil, fmt.Errorf("rocketbus: start the producer: %w", err)
	}
	return b, nil
}

func (b *Bus) startProducer() error {
	p, err := rocketmq.NewProducer(
		producer.WithNsResolver(b.resolver),
		producer.WithGroupName(b.cfg.GroupPrefix+"relay"),
		producer.WithInstanceName(b.instance("relay")),
		// A batch has no sharding key, and the hash selector follows the number
		// of queues as it is now: each message carries its queue instead.
		producer.WithQueueSelector(producer.NewManualQueueSelector()),
		producer.WithSendMsgTimeout(b.cfg.SendTimeout),
		// The relay tries again, and knows what else it holds of the project.
		producer.WithRetry(0),
	)
	if err != nil {
		return err
	}
	if err := p.Start(); err != nil {
		return err
	}
	b.producer = p
	return nil
}

// instances counts the clients of this process.
var instances atomic.Int64

// instance is a name that no other client has: two with the same one share
// connections, groups and their end.
func (b *Bus) instance(role string) string {
	return fmt.Sprintf("%s-%s-%d-%d-%x", b.cfg.Role, role, os.Getpid(), instances.Add(1), time.Now().UnixNano())
}

// TopicOffsets is the sum of the topic's queue ends: how many messages were ever
// stored in it, repeats included. It may lag behind the last Publish by some
// milliseconds, more on a busy machine: compare when it has come to rest.
func (b *Bus) TopicOffsets(ctx context.Context) (int64, error) {
	route, err := b.cluster.route(ctx, b.cfg.Topic)
	if err != nil {
		return 0, fmt.Errorf("topic %s: %w", b.cfg.Topic, err)
	}
	var total int64
	for _, q := range route.queues {
		n, err := route.maxOffset(ctx, q)
		if err != nil {
			return 0, err
		}
		total += n
	}
	return total, nil
}

// Close implements [ports.Bus]: it ends every subscription, waits for sends
// under way and stops the producer. Closing twice is fine.
func (b *Bus) Close() error {
	b.mu.Lock()
	first := !b.closed
	b.closed = true
	subscriptions := slices.Clone(b.subscriptions)
	b.mu.Unlock()
	var closing sync.WaitGroup
	errs := make([]error, len(subscriptions))
	for i, s := range subscriptions {
		closing.Go(func() { errs[i] = s.Close() })
	}
	closing.Wait()
	b.sending.Wait()
	if first {
		errs = append(errs, b.producer.Shutdown())
	}
	return errors.Join(errs...)
}
