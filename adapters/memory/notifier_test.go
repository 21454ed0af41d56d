package memory_test

import (
	"testing"

	"github.com/aivedio/aivedio/adapters/memory"
	"github.com/aivedio/aivedio/ports"
	"github.com/aivedio/aivedio/ports/porttest"
)

func TestNotifier(t *testing.T) {
	t.Parallel()
	porttest.Notifier(t, func(t *testing.T) porttest.NotifierFixture {
		n := memory.NewNotifier()
		t.Cleanup(func() { _ = n.Close() })
		return porttest.NotifierFixture{
			Notifier:   n,
			Lose:       func() { n.Lose(func(ports.StoredEvent) bool { return true }) },
			Find:       func() { n.Lose(nil) },
			Disconnect: n.Disconnect,
			Reconnect:  n.Reconnect,
		}
	})
}
