package rocketbus

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net"
	"slices"
	"testing"

	"github.com/apache/rocketmq-client-go/v2/primitive"
)

// frame builds an answer as a server writes it.
func frame(header, body string) []byte {
	f := binary.BigEndian.AppendUint32(nil, uint32(4+len(header)+len(body)))
	f = binary.BigEndian.AppendUint32(f, uint32(len(header)))
	return append(append(f, header...), body...)
}

// What a RocketMQ 5.1.4 answers; brokers' numbers are bare keys.
const (
	routeBody   = `{"brokerDatas":[{"brokerAddrs":{0:"10.0.0.1:10911",1:"10.0.0.2:10911"},"brokerName":"b","cluster":"c"},{"brokerAddrs":{0:"10.0.0.3:10911"},"brokerName":"a","cluster":"c"},{"brokerAddrs":{1:"10.0.0.4:10911"},"brokerName":"slave-only","cluster":"c"}],"filterServerTable":{},"queueDatas":[{"brokerName":"b","perm":6,"readQueueNums":2,"topicSysFlag":0,"writeQueueNums":2},{"brokerName":"a","perm":6,"readQueueNums":1,"topicSysFlag":0,"writeQueueNums":1},{"brokerName":"slave-only","perm":6,"writeQueueNums":4},{"brokerName":"a","perm":4,"writeQueueNums":9}]}`
	clusterBody = `{"brokerAddrTable":{"b":{"brokerAddrs":{0:"10.0.0.1:10911"},"brokerName":"b"},"a":{"brokerAddrs":{0:"10.0.0.3:10911",1:"x"},"brokerName":"a"},"s":{"brokerAddrs":{1:"y"}}},"clusterAddrTable":{"c":["a","b"]}}`
)

func TestParseRoute(t *testing.T) {
	t.Parallel()
	route, err := parseRoute("t", []byte(routeBody))
	if err != nil {
		t.Fatal(err)
	}
	want := []primitive.MessageQueue{{Topic: "t", BrokerName: "a"}, {Topic: "t", BrokerName: "b"}, {Topic: "t", BrokerName: "b", QueueId: 1}}
	if !slices.Equal(route.queues, want) {
		t.Errorf("queues %v", route.queues)
	}
	if route.addrs["b"] != "10.0.0.1:10911" {
		t.Errorf("addresses %v", route.addrs)
	}
	if _, err := parseRoute("t", []byte(`{}`)); !errors.Is(err, errNoTopic) {
		t.Errorf("an empty route: %v", err)
	}
	addrs, err := parseBrokers([]byte(clusterBody))
	if err != nil || !slices.Equal(addrs, []string{"10.0.0.3:10911", "10.0.0.1:10911"}) {
		t.Errorf("brokers %v, %v", addrs, err)
	}
}

func TestReadAnswer(t *testing.T) {
	t.Parallel()
	a, err := readAnswer(bytes.NewReader(frame(`{"code":0,"extFields":{"offset":"42"}}`, "body")))
	if err != nil || string(a.body) != "body" || a.err() != nil {
		t.Fatalf("%+v, %v", a, err)
	}
	if n, err := a.number("offset"); n != 42 || err != nil {
		t.Error(n, err)
	}
	if _, err := a.number("none"); !errors.Is(err, errFrame) {
		t.Error(err)
	}
	refused, err := readAnswer(bytes.NewReader(frame(`{"code":17,"remark":"no topic"}`, "")))
	if err != nil || refused.err() == nil {
		t.Errorf("%+v, %v", refused, err)
	}
	for name, bad := range map[string][]byte{
		"empty": nil, "short": {0, 0}, "binary header": {0, 0, 0, 8, 1, 0, 0, 4, 0, 0, 0, 0},
		"header longer than all": {0, 0, 0, 5, 0, 0, 0, 9, 0}, "huge": {0xff, 0xff, 0xff, 0xff, 0, 0, 0, 1},
		"cut": frame(`{"code":0}`, "body")[:20], "no JSON": frame(`code`, ""), "zero": make([]byte, 8),
	} {
		if _, err := readAnswer(bytes.NewReader(bad)); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}

// TestAskGivesUp asks a server that accepts and says nothing.
func TestAskGivesUp(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	c := cluster{[]string{l.Addr().String()}}
	if _, err := c.route(t.Context(), "t"); err == nil {
		t.Error("silence was taken for an answer")
	}
}

func FuzzReadAnswer(f *testing.F) {
	f.Add(frame(`{"code":0,"extFields":{"offset":"42"}}`, routeBody))
	f.Add(frame(`{"code":0}`, clusterBody))
	f.Add(frame(`{}`, ""))
	f.Add([]byte{0, 0, 0, 4, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := readAnswer(bytes.NewReader(data))
		if err != nil {
			return
		}
		if route, err := parseRoute("t", a.body); err == nil {
			for _, q := range route.queues {
				if route.addrs[q.BrokerName] == "" {
					t.Fatalf("queue %v has no broker", q)
				}
			}
		}
		_, _ = parseBrokers(a.body)
	})
}
