package rocketbus

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/aivedio/aivedio/internal/testenv"
)

// library is the path of the RocketMQ client.
const library = "github.com/apache/rocketmq-client-go/v2/"

// TestMain finds goroutines of this package that outlive their bus. Those of the
// library do, and cannot be stopped: each line says until when.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(testenv.Wrap(m),
		// A cache in a global of the library; for ever.
		goleak.IgnoreAnyFunction("github.com/patrickmn/go-cache.(*janitor).Run"),
		// Loops that sleep before they first look whether they are over: 10 s,
		// a second, and the consume time-out.
		goleak.IgnoreAnyFunction(library+"internal.(*rmqClient).Start.func1.1"),
		goleak.IgnoreAnyFunction(library+"internal.(*rmqClient).Start.func1.3"),
		goleak.IgnoreAnyFunction(library+"internal.(*rmqClient).Start.func1.4"),
		goleak.IgnoreAnyFunction(library+"consumer.(*pushConsumer).Start.func1.2"),
		// Statistics, which sleep until the next minute, hour and day.
		goleak.IgnoreAnyFunction(library+"consumer.(*statsItemSet).init.func4"),
		goleak.IgnoreAnyFunction(library+"consumer.(*statsItemSet).init.func5"),
		goleak.IgnoreAnyFunction(library+"consumer.(*statsItemSet).init.func6"),
		// A pull whose connection is gone, or that sleeps because of Suspend; 30 s.
		goleak.IgnoreAnyFunction(library+"consumer.(*pushConsumer).pullMessage"),
		// Connections to name servers are closed by their read time-out only.
		goleak.IgnoreAnyFunction(library+"internal/remote.(*remotingClient).receiveResponse"),
	)
}
