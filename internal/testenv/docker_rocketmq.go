package testenv

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/aivedio/aivedio/internal/testenv/services"
	"github.com/ory/dockertest/v3"
	dc "github.com/ory/dockertest/v3/docker"
)

// dockerBroker is RocketMQ in two containers. The broker lives in the name
// server's network, which publishes the broker's ports under the very numbers
// that the broker announces to clients, so it can be stopped alone.
type dockerBroker struct {
	name, broker *container
}

func dockerRocketMQ(_ context.Context, pool *dockertest.Pool) (rocketHandle, func() error, error) {
	var none rocketHandle
	namePort, err := services.FreePort()
	if err != nil {
		return none, nil, err
	}
	port, err := services.FreePort(-2, 1)
	if err != nil {
		return none, nil, err
	}
	d := &dockerBroker{}
	d.name, err = runContainer(pool, &dockertest.RunOptions{
		Repository: "apache/rocketmq", Tag: "5.1.4",
		Env:          []string{"JAVA_OPT_EXT=-Xms64m -Xmx128m -Xmn32m"},
		Entrypoint:   []string{"sh", "-c", "cd $ROCKETMQ_HOME/bin && exec sh mqnamesrv"},
		ExposedPorts: []string{"9876/tcp", tcp(port - 2), tcp(port), tcp(port + 1)},
		PortBindings: publish(map[int]int{9876: namePort, port - 2: port - 2, port: port, port + 1: port + 1}),
	}, func(*dockertest.Resource) error { return accepts(loopback(namePort)) })
	if err != nil {
		return none, nil, err
	}
	conf := fmt.Sprintf("brokerClusterName=aivedio\nbrokerName=broker-a\nbrokerId=0\nbrokerIP1=127.0.0.1\n"+
		"listenPort=%d\nhaListenPort=%d\nnamesrvAddr=127.0.0.1:9876\nautoCreateTopicEnable=false\n"+
		"flushDiskType=ASYNC_FLUSH\nwaitTimeMillsInSendQueue=10000\nosPageCacheBusyTimeOutMills=10000\n", port, port+1)
	d.broker, err = runContainer(pool, &dockertest.RunOptions{
		Repository: "apache/rocketmq", Tag: "5.1.4",
		Env:        []string{"JAVA_OPT_EXT=-Xms256m -Xmx512m -Xmn128m -XX:MaxDirectMemorySize=512m", "BROKER_CONF=" + conf},
		Entrypoint: []string{"sh", "-c", `printf %s "$BROKER_CONF" >/tmp/broker.conf; cd $ROCKETMQ_HOME/bin && exec sh mqbroker -c /tmp/broker.conf`},
	}, func(*dockertest.Resource) error {
		return services.BrokerRegistered(context.Background(), loopback(namePort), loopback(port))
	}, func(h *dc.HostConfig) {
		h.NetworkMode = "container:" + d.name.res.Container.ID
		h.PublishAllPorts = false
	})
	if err != nil {
		return none, nil, errors.Join(err, d.name.Stop())
	}
	return rocketHandle{loopback(namePort), loopback(port), d}, d.Stop, nil
}

func tcp(port int) string      { return strconv.Itoa(port) + "/tcp" }
func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

func accepts(addr string) error {
	conn, err := net.DialTimeout("tcp", addr, 2*time.Second)
	if err != nil {
		return err
	}
	return conn.Close()
}

func (d *dockerBroker) StartBroker(ctx context.Context) error { return d.broker.Start(ctx) }
func (d *dockerBroker) StopBroker() error                     { return d.broker.Halt() }
func (d *dockerBroker) PauseBroker() error                    { return d.broker.Pause() }
func (d *dockerBroker) ResumeBroker() error                   { return d.broker.Resume() }
func (d *dockerBroker) Stop() error                           { return errors.Join(d.broker.Stop(), d.name.Stop()) }
