package testenv_test

import (
	"context"
	"crypto/rand"
	"testing"
	"time"

	"github.com/aivedio/aivedio/internal/testenv"
	"github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/admin"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
	"github.com/apache/rocketmq-client-go/v2/rlog"
)

// quiet keeps the client's own log out of the test output.
type quiet struct{}

func (quiet) Debug(string, map[string]any)   {}
func (quiet) Info(string, map[string]any)    {}
func (quiet) Warning(string, map[string]any) {}
func (quiet) Error(string, map[string]any)   {}
func (quiet) Fatal(string, map[string]any)   {}
func (quiet) Level(string)                   {}
func (quiet) OutputPath(string) error        { return nil }

func TestRocketMQDeliversAlsoAfterARestart(t *testing.T) {
	rlog.SetLogger(quiet{})
	server := testenv.RocketMQ(t)
	topic := "testenv-" + rand.Text()
	createTopic(t, server, topic)

	got := consume(t, server, topic)
	publish(t, server, topic, "before")
	await(t, got, "before")

	server.StopBroker()
	server.StartBroker()
	publish(t, server, topic, "after")
	await(t, got, "after")
}

func createTopic(t *testing.T, server *testenv.RocketMQServer, topic string) {
	t.Helper()
	adm, err := admin.NewAdmin(admin.WithResolver(primitive.NewPassthroughResolver([]string{server.NameServer})))
	if err != nil {
		t.Fatal(err)
	}
	defer adm.Close()
	err = adm.CreateTopic(t.Context(), admin.WithTopicCreate(topic), admin.WithBrokerAddrCreate(server.BrokerAddr),
		admin.WithReadQueueNums(2), admin.WithWriteQueueNums(2))
	if err != nil {
		t.Fatal(err)
	}
	// The broker answers before the name server knows the topic.
	limit, tick := time.After(30*time.Second), time.NewTicker(50*time.Millisecond)
	defer tick.Stop()
	for {
		if _, err = adm.FetchPublishMessageQueues(t.Context(), topic); err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("the name server does not learn of topic %s: %v", topic, err)
		}
	}
}

func consume(t *testing.T, server *testenv.RocketMQServer, topic string) <-chan string {
	t.Helper()
	got := make(chan string, 16)
	group := "testenv-" + rand.Text()
	c, err := rocketmq.NewPushConsumer(consumer.WithNameServer([]string{server.NameServer}),
		consumer.WithGroupName(group), consumer.WithInstance(group), consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset))
	if err != nil {
		t.Fatal(err)
	}
	err = c.Subscribe(topic, consumer.MessageSelector{}, func(_ context.Context, msgs ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
		for _, m := range msgs {
			got <- string(m.Body)
		}
		return consumer.ConsumeSuccess, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Shutdown() })
	return got
}

func publish(t *testing.T, server *testenv.RocketMQServer, topic, body string) {
	t.Helper()
	group := "testenv-" + rand.Text()
	p, err := rocketmq.NewProducer(producer.WithNameServer([]string{server.NameServer}),
		producer.WithGroupName(group), producer.WithInstanceName(group), producer.WithRetry(5))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	defer p.Shutdown()
	res, err := p.SendSync(t.Context(), primitive.NewMessage(topic, []byte(body)))
	if err != nil {
		t.Fatal(err)
	}
	if res.Status != primitive.SendOK {
		t.Fatalf("send status %d", res.Status)
	}
}

// await takes messages until want comes: RocketMQ delivers at least once.
func await(t *testing.T, got <-chan string, want string) {
	t.Helper()
	limit := time.After(60 * time.Second)
	for {
		select {
		case body := <-got:
			if body == want {
				return
			}
		case <-limit:
			t.Fatalf("%q was not delivered within a minute", want)
		}
	}
}
