package rocketbus

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/apache/rocketmq-client-go/v2/primitive"
)

// errNoTopic says that no broker serves the topic.
var errNoTopic = errors.New("no broker serves the topic")

// routeWait is the distance between two looks for a new topic's route.
const routeWait = 50 * time.Millisecond

// cluster asks name servers and brokers about topics. It keeps nothing.
type cluster struct{ nameServers []string }

// topicRoute is where a topic is.
type topicRoute struct {
	// queues is sorted by broker and number, so that all processes agree.
	queues []primitive.MessageQueue
	// addrs is the master's address per broker.
	addrs map[string]string
}

// askNameServer asks the first name server that answers.
func (c cluster) askNameServer(ctx context.Context, code int, ext map[string]string) (answer, error) {
	var errs []error
	for _, server := range c.nameServers {
		a, err := ask(ctx, server, code, ext)
		if err == nil {
			return a, nil
		}
		errs = append(errs, fmt.Errorf("name server %s: %w", server, err))
	}
	return answer{}, errors.Join(errs...)
}

// route returns errNoTopic when there is none.
func (c cluster) route(ctx context.Context, topic string) (topicRoute, error) {
	a, err := c.askNameServer(ctx, codeRoute, map[string]string{"topic": topic, "acceptStandardJsonOnly": "true"})
	if err != nil {
		return topicRoute{}, err
	}
	if a.code == codeTopicNotExist {
		return topicRoute{}, errNoTopic
	}
	if err := a.err(); err != nil {
		return topicRoute{}, err
	}
	return parseRoute(topic, a.body)
}

// bareKey is a number as an object's key, as brokers write it: no JSON.
var bareKey = regexp.MustCompile(`([{,])\s*(\d+)\s*:`)

// brokerData is a broker in routes and in the cluster's description.
type brokerData struct {
	BrokerName  string            `json:"brokerName"`
	BrokerAddrs map[string]string `json:"brokerAddrs"`
}

// master is the address that takes writes; "" when it is away.
func (b brokerData) master() string { return b.BrokerAddrs["0"] }

func parseRoute(topic string, body []byte) (topicRoute, error) {
	var data struct {
		QueueDatas []struct {
			BrokerName     string `json:"brokerName"`
			WriteQueueNums int    `json:"writeQueueNums"`
			Perm           int    `json:"perm"`
		} `json:"queueDatas"`
		BrokerDatas []brokerData `json:"brokerDatas"`
	}
	if err := json.Unmarshal(bareKey.ReplaceAll(body, []byte(`$1"$2":`)), &data); err != nil {
		return topicRoute{}, fmt.Errorf("%w: route: %w", errFrame, err)
	}
	route := topicRoute{addrs: map[string]string{}}
	for _, b := range data.BrokerDatas {
		if addr := b.master(); addr != "" {
			route.addrs[b.BrokerName] = addr
		}
	}
	const writable, mostQueues = 2, 1 << 16
	for _, q := range data.QueueDatas {
		if q.Perm&writable == 0 || route.addrs[q.BrokerName] == "" || q.WriteQueueNums > mostQueues {
			continue
		}
		for i := range q.WriteQueueNums {
			route.queues = append(route.queues, primitive.MessageQueue{Topic: topic, BrokerName: q.BrokerName, QueueId: i})
		}
	}
	slices.SortFunc(route.queues, func(a, b primitive.MessageQueue) int {
		return cmp.Or(cmp.Compare(a.BrokerName, b.BrokerName), cmp.Compare(a.QueueId, b.QueueId))
	})
	if len(route.queues) == 0 {
		return topicRoute{}, errNoTopic
	}
	return route, nil
}

// brokers returns the addresses of all masters.
func (c cluster) brokers(ctx context.Context) ([]string, error) {
	a, err := c.askNameServer(ctx, codeClusterInfo, nil)
	if err != nil {
		return nil, err
	}
	if err := a.err(); err != nil {
		return nil, err
	}
	addrs, err := parseBrokers(a.body)
	if err == nil && len(addrs) == 0 {
		err = errors.New("no broker has registered with the name server")
	}
	return addrs, err
}

func parseBrokers(body []byte) ([]string, error) {
	var data struct {
		BrokerAddrTable map[string]brokerData `json:"brokerAddrTable"`
	}
	if err := json.Unmarshal(bareKey.ReplaceAll(body, []byte(`$1"$2":`)), &data); err != nil {
		return nil, fmt.Errorf("%w: cluster: %w", errFrame, err)
	}
	var addrs []string
	for _, name := range slices.Sorted(maps.Keys(data.BrokerAddrTable)) {
		if addr := data.BrokerAddrTable[name].master(); addr != "" {
			addrs = append(addrs, addr)
		}
	}
	return addrs, nil
}

// ensure returns the topic's route, after creating it on every broker when it
// has none. It must be there first: a consumer's start fails without a route,
// and a producer would send to a topic with the broker's default of queues.
func (c cluster) ensure(ctx context.Context, topic string, queues int) (topicRoute, error) {
	route, err := c.route(ctx, topic)
	if !errors.Is(err, errNoTopic) {
		return route, err
	}
	brokers, err := c.brokers(ctx)
	if err != nil {
		return topicRoute{}, err
	}
	n := strconv.Itoa(queues)
	for _, addr := range brokers {
		a, err := ask(ctx, addr, codeCreateTopic, map[string]string{
			"topic": topic, "defaultTopic": "TBW102", "readQueueNums": n, "writeQueueNums": n,
			"perm": "6", "topicFilterType": "SINGLE_TAG", "topicSysFlag": "0", "order": "false",
		})
		if err := errors.Join(err, a.err()); err != nil {
			return topicRoute{}, fmt.Errorf("create topic %s on broker %s: %w", topic, addr, err)
		}
	}
	return c.awaitRoute(ctx, topic, len(brokers)*queues)
}

// awaitRoute waits until the name server knows of a new topic on all brokers.
func (c cluster) awaitRoute(ctx context.Context, topic string, queues int) (topicRoute, error) {
	tick := time.NewTicker(routeWait)
	defer tick.Stop()
	for {
		route, err := c.route(ctx, topic)
		if err != nil && !errors.Is(err, errNoTopic) {
			return topicRoute{}, err
		}
		if err == nil && len(route.queues) >= queues {
			return route, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return topicRoute{}, fmt.Errorf("wait for the route of topic %s: %w", topic, ctx.Err())
		}
	}
}

// maxOffset is the number that the queue's next message gets, as far as the
// broker has indexed what it stored: some milliseconds behind the last send.
func (r topicRoute) maxOffset(ctx context.Context, q primitive.MessageQueue) (int64, error) {
	a, err := ask(ctx, r.addrs[q.BrokerName], codeMaxOffset, map[string]string{
		"topic": q.Topic, "queueId": strconv.Itoa(q.QueueId), "bname": q.BrokerName,
	})
	if err := errors.Join(err, a.err()); err != nil {
		return 0, fmt.Errorf("offset of queue %s/%d: %w", q.BrokerName, q.QueueId, err)
	}
	return a.number("offset")
}

// startGroup gives a new group its first offsets: the queues' present ends. Left
// to itself a group starts wherever the broker or the client thinks, at the
// first rebalance after the start: what is published in between is lost to it,
// or what is long gone is delivered. A group that has an offset keeps its own,
// and begins a queue that was added later at its first message.
func (r topicRoute) startGroup(ctx context.Context, group string) error {
	for _, q := range r.queues {
		a, err := ask(ctx, r.addrs[q.BrokerName], codeQueryOffset, map[string]string{
			"consumerGroup": group, "topic": q.Topic, "queueId": strconv.Itoa(q.QueueId), "bname": q.BrokerName,
			"setZeroIfNotFound": "false", // else a young topic's answer is 0 for any group
		})
		if err == nil && a.code == codeQueryNotFound {
			continue
		}
		if err := errors.Join(err, a.err()); err != nil {
			return fmt.Errorf("offset of group %s in queue %s/%d: %w", group, q.BrokerName, q.QueueId, err)
		}
		return nil
	}
	for _, q := range r.queues {
		if err := r.setOffset(ctx, group, q); err != nil {
			return fmt.Errorf("first offset of group %s in queue %s/%d: %w", group, q.BrokerName, q.QueueId, err)
		}
	}
	return nil
}

func (r topicRoute) setOffset(ctx context.Context, group string, q primitive.MessageQueue) error {
	end, err := r.maxOffset(ctx, q)
	if err != nil {
		return err
	}
	a, err := ask(ctx, r.addrs[q.BrokerName], codeUpdateOffset, map[string]string{
		"consumerGroup": group, "topic": q.Topic, "queueId": strconv.Itoa(q.QueueId), "bname": q.BrokerName,
		"commitOffset": strconv.FormatInt(end, 10),
	})
	return errors.Join(err, a.err())
}

// hostPorts reports the first address that is none.
func hostPorts(addrs []string) error {
	for _, a := range addrs {
		if _, _, err := net.SplitHostPort(a); err != nil {
			return fmt.Errorf("name server %q: want host:port", a)
		}
	}
	return nil
}
