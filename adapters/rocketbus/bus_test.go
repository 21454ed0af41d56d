package rocketbus

import (
	"crypto/rand"
	"testing"
	"time"

	"github.com/aivedio/aivedio/internal/testenv"
	"github.com/aivedio/aivedio/ports/porttest"
)

// open returns a bus on a topic of its own that ends with the test.
func open(t *testing.T, server *testenv.RocketMQServer) *Bus {
	t.Helper()
	tag := rand.Text()[:12]
	b, err := Open(t.Context(), Config{
		NameServers: []string{server.NameServer}, Topic: "test-" + tag, GroupPrefix: "test-" + tag + "-", Role: "test",
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Errorf("close the bus: %v", err)
		}
	})
	return b
}

func TestBus(t *testing.T) {
	server := testenv.RocketMQ(t)
	porttest.Bus(t, func(t *testing.T) porttest.BusFixture {
		return porttest.BusFixture{Bus: open(t, server), Patience: 90 * time.Second}
	})
}
