package testenv

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/aivedio/aivedio/internal/testenv/services"
)

// RocketMQServer is a name server and a broker. Topics are not created by
// themselves, and their names need a random part, because the tests of a
// process share the servers. The methods fail the test on error; those that
// stop or freeze the broker skip it when the broker comes from the
// environment, and must not be used by parallel tests.
type RocketMQServer struct {
	// NameServer and BrokerAddr are host:port; they stay the same over
	// StopBroker and StartBroker. BrokerAddr is what the admin API wants for
	// creating topics, "" when the environment does not tell it.
	NameServer, BrokerAddr string

	t   testing.TB
	ctl brokerControl
}

// brokerControl is what can be done to brokers that were started here.
type brokerControl interface {
	StartBroker(context.Context) error
	StopBroker() error
	PauseBroker() error
	ResumeBroker() error
	Stop() error
}

// nameServerControl is what can be done to a name server that is a process here.
type nameServerControl interface {
	StartNameServer(context.Context) error
	StopNameServer() error
}

type rocketHandle struct {
	nameServer, broker string
	ctl                brokerControl
}

var rocketBroker shared[rocketHandle]

// RocketMQ returns the servers that the tests of this process share; the
// first call takes some five seconds. What a test stopped is running again when the
// next test asks.
func RocketMQ(t testing.TB) *RocketMQServer {
	t.Helper()
	Short(t)
	h, err := rocketBroker.get(startRocketMQ)
	if err != nil {
		unavailable(t, "RocketMQ", err)
	}
	s := &RocketMQServer{NameServer: h.nameServer, BrokerAddr: h.broker, t: t, ctl: h.ctl}
	if _, ok := h.ctl.(nameServerControl); ok {
		s.StartNameServer()
	}
	if h.ctl != nil {
		s.StartBroker()
	}
	return s
}

func startRocketMQ(ctx context.Context) (rocketHandle, func() error, error) {
	if given := os.Getenv("AIVEDIO_TEST_ROCKETMQ_NAMESRV"); given != "" {
		return rocketHandle{nameServer: given, broker: os.Getenv("AIVEDIO_TEST_ROCKETMQ_BROKER")}, nil, nil
	}
	if pool := docker(); pool != nil {
		return dockerRocketMQ(ctx, pool)
	}
	server, err := services.StartRocketMQ(ctx, services.RocketMQOptions{})
	if err != nil {
		return rocketHandle{}, nil, err
	}
	return rocketHandle{server.NameServer(), server.BrokerAddr(), server}, server.Stop, nil
}

// Own reports whether the servers were started here, so that their broker can be
// stopped and frozen.
func (r *RocketMQServer) Own() bool { return r.ctl != nil }

// StopBroker ends the broker at once; its messages stay.
func (r *RocketMQServer) StopBroker() {
	r.t.Helper()
	must(r.t, "stop the broker", r.own().StopBroker())
}

// StartBroker starts a stopped broker and waits until it has registered.
func (r *RocketMQServer) StartBroker() {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	must(r.t, "start the broker", r.own().StartBroker(ctx))
}

// StopNameServer ends the name server at once. A test whose servers are containers
// is skipped: the broker's container lives in the name server's network.
func (r *RocketMQServer) StopNameServer() {
	r.t.Helper()
	must(r.t, "stop the name server", r.nameServer().StopNameServer())
}

// StartNameServer starts a stopped name server on its port; the broker registers
// anew within 30 s.
func (r *RocketMQServer) StartNameServer() {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	must(r.t, "start the name server", r.nameServer().StartNameServer(ctx))
}

func (r *RocketMQServer) nameServer() nameServerControl {
	r.t.Helper()
	ctl, ok := r.own().(nameServerControl)
	if !ok {
		r.t.Skip("SKIPPED, NOT TESTED: a name server in a container cannot be stopped alone")
	}
	return ctl
}

// PauseBroker freezes the broker until ResumeBroker or the end of the test.
func (r *RocketMQServer) PauseBroker() {
	r.t.Helper()
	ctl := r.own()
	must(r.t, "pause the broker", ctl.PauseBroker())
	r.t.Cleanup(func() {
		if err := ctl.ResumeBroker(); err != nil && !errors.Is(err, services.ErrNotRunning) {
			r.t.Errorf("resume the broker: %v", err)
		}
	})
}

// ResumeBroker ends PauseBroker.
func (r *RocketMQServer) ResumeBroker() {
	r.t.Helper()
	must(r.t, "resume the broker", r.own().ResumeBroker())
}

func (r *RocketMQServer) own() brokerControl {
	r.t.Helper()
	if r.ctl == nil {
		r.t.Skip("SKIPPED, NOT TESTED: the broker of AIVEDIO_TEST_ROCKETMQ_NAMESRV cannot be stopped")
	}
	return r.ctl
}
