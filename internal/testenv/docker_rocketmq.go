package testenv

import (
	"bytes"
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
	boots        int // how often the broker has come up
}

const bootLine = "boot success"

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
	}, logged(pool, func() int { return 1 }))
	if err != nil {
		return none, nil, err
	}
	conf := fmt.Sprintf("brokerClusterName=aivedio\nbrokerName=broker-a\nbrokerId=0\nbrokerIP1=127.0.0.1\n"+
		"listenPort=%d\nhaListenPort=%d\nnamesrvAddr=127.0.0.1:9876\nautoCreateTopicEnable=false\n"+
		"flushDiskType=ASYNC_FLUSH\nwaitTimeMillsInSendQueue=10000\nosPageCacheBusyTimeOutMills=10000\n", port, port+1)
	d.boots = 1
	d.broker, err = runContainer(pool, &dockertest.RunOptions{
		Repository: "apache/rocketmq", Tag: "5.1.4",
		Env:        []string{"JAVA_OPT_EXT=-Xms256m -Xmx512m -Xmn128m -XX:MaxDirectMemorySize=512m", "BROKER_CONF=" + conf},
		Entrypoint: []string{"sh", "-c", `printf %s "$BROKER_CONF" >/tmp/broker.conf; cd $ROCKETMQ_HOME/bin && exec sh mqbroker -c /tmp/broker.conf`},
	}, logged(pool, func() int { return d.boots }), func(h *dc.HostConfig) {
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

// logged is a readiness check: the line of success is in the log, as often as
// the server has been started.
func logged(pool *dockertest.Pool, want func() int) func(*dockertest.Resource) error {
	return func(res *dockertest.Resource) error {
		var out bytes.Buffer
		err := pool.Client.Logs(dc.LogsOptions{Container: res.Container.ID,
			OutputStream: &out, ErrorStream: &out, Stdout: true, Stderr: true})
		if err != nil {
			return err
		}
		if bytes.Count(out.Bytes(), []byte(bootLine)) < want() {
			return fmt.Errorf("%q is not in the log yet", bootLine)
		}
		return nil
	}
}

func (d *dockerBroker) StartBroker(ctx context.Context) error {
	info, err := d.broker.pool.Client.InspectContainerWithContext(d.broker.res.Container.ID, ctx)
	if err != nil {
		return err
	}
	if info.State.Running {
		return nil
	}
	d.boots++
	return d.broker.Start(ctx)
}

// StopBroker asks the broker to end in order, and forces it after 30 s.
func (d *dockerBroker) StopBroker() error {
	_, err := d.broker.res.Exec([]string{"sh", "-c", "cd $ROCKETMQ_HOME/bin && sh mqshutdown broker"}, dockertest.ExecOptions{})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if _, err := d.broker.pool.Client.WaitContainerWithContext(d.broker.res.Container.ID, ctx); err != nil {
		return errors.Join(err, d.broker.Halt())
	}
	return nil
}

func (d *dockerBroker) KillBroker() error   { return d.broker.Halt() }
func (d *dockerBroker) PauseBroker() error  { return d.broker.Pause() }
func (d *dockerBroker) ResumeBroker() error { return d.broker.Resume() }
func (d *dockerBroker) Stop() error         { return errors.Join(d.broker.Stop(), d.name.Stop()) }
