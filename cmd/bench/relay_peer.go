package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	rocketmq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"

	"github.com/aivedio/aivedio/adapters/rocketbus"
)

// peerRocketMQ is the broker's own client alone: bodies of the same size in batches
// of floorBatch from as many senders as there are relays, and no database.
const (
	peerRocketMQ = "rocketmq"
	floorBatch   = 100
	floorBytes   = 640
	floorQueues  = 8
)

// floored is one run of the client alone.
type floored struct {
	Messages  int                `json:"messages"`
	PerSecond figure             `json:"per_s"`
	CPU       map[string]cpuTime `json:"cpu_us_per_message"`
}

// floor sends as many messages as the backlog has rows.
func (s *relayRun) floor(ctx context.Context) (*floored, error) {
	topic := s.topic()
	names := []string{s.broker.NameServer()}
	bus, err := rocketbus.Open(ctx, rocketbus.Config{NameServers: names, Topic: topic, Queues: floorQueues, Role: "bench"})
	if err != nil {
		return nil, err // it is here only to create the topic
	}
	defer bus.Close() //nolint:errcheck // it has sent nothing
	p, err := rocketmq.NewProducer(
		producer.WithNsResolver(primitive.NewPassthroughResolver(names)), producer.WithGroupName(topic), producer.WithInstanceName(topic),
		producer.WithQueueSelector(producer.NewManualQueueSelector()), producer.WithRetry(0),
	)
	if err == nil {
		err = p.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("producer: %w", err)
	}
	defer p.Shutdown() //nolint:errcheck // everything was acknowledged
	broker, err := brokerName(ctx, p, topic)
	if err != nil {
		return nil, err
	}
	cpu := startCPU(map[string]part{"client": {pid: os.Getpid()}, "broker-0": {pid: s.broker.PIDs()[0]}, "broker-1": {pid: s.broker.PIDs()[1]}})
	began := time.Now()
	if err := sendAll(ctx, p, topic, broker, s.cmd.Relays, s.cmd.Rows/floorBatch); err != nil {
		return nil, err
	}
	took, sent := time.Since(began), s.cmd.Rows/floorBatch*floorBatch
	return &floored{Messages: sent, PerSecond: perSecond(sent, took), CPU: perRow(cpu.stop(), sent)}, nil
}

// brokerName asks with a first message, which is not measured.
func brokerName(ctx context.Context, p rocketmq.Producer, topic string) (string, error) {
	m := primitive.NewMessage(topic, []byte("{}"))
	m.Queue = &primitive.MessageQueue{Topic: topic, BrokerName: "broker-a"}
	result, err := p.SendSync(ctx, m)
	if err != nil {
		return "", fmt.Errorf("the first message: %w", err)
	}
	return result.MessageQueue.BrokerName, nil
}

// sendAll sends the batches from several senders, each to queues of its own turn.
func sendAll(ctx context.Context, p rocketmq.Producer, topic, broker string, senders, batches int) error {
	body := []byte(strings.Repeat("x", floorBytes))
	var next atomic.Int64
	errs := make([]error, senders)
	var wg sync.WaitGroup
	for i := range senders {
		wg.Go(func() {
			for n := next.Add(1); n <= int64(batches) && errs[i] == nil; n = next.Add(1) {
				queue := &primitive.MessageQueue{Topic: topic, BrokerName: broker, QueueId: int(n) % floorQueues}
				messages := make([]*primitive.Message, floorBatch)
				for j := range messages {
					m := primitive.NewMessage(topic, body)
					m.Queue = queue
					m.WithKeys([]string{"tsk_00000000000000000000000000"}).WithTag("task.status.changed")
					messages[j] = m
				}
				result, err := p.SendSync(ctx, messages...)
				if err == nil && result.Status != primitive.SendOK {
					err = fmt.Errorf("send status %d", result.Status)
				}
				errs[i] = err
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}
