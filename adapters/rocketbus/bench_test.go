package rocketbus

import (
	"context"
	"crypto/rand"
	"fmt"
	"testing"

	"github.com/aivedio/aivedio/internal/testenv"
	"github.com/aivedio/aivedio/ports"
)

// BenchmarkPublish measures publications of a relay's size, and with "consumed"
// the way to a handler too.
func BenchmarkPublish(b *testing.B) {
	server := testenv.RocketMQ(b)
	for _, size := range []int{1, 100, 1000} {
		for _, consumed := range []bool{false, true} {
			b.Run(fmt.Sprintf("rows=%d/consumed=%v", size, consumed), func(b *testing.B) {
				benchmarkPublish(b, server, size, consumed)
			})
		}
	}
}

func benchmarkPublish(b *testing.B, server *testenv.RocketMQServer, size int, consumed bool) {
	tag := rand.Text()[:12]
	bus, err := Open(b.Context(), Config{NameServers: []string{server.NameServer}, Topic: "bench-" + tag, GroupPrefix: "bench-" + tag + "-"})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = bus.Close() }()
	arrived := make(chan int, 1024)
	if consumed {
		_, err := bus.Subscribe(b.Context(), "bench", func(_ context.Context, events []ports.StoredEvent) error {
			arrived <- len(events)
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	rows := make([]ports.OutboxRow, size)
	b.ReportAllocs()
	next := int64(0)
	for b.Loop() {
		for i := range rows {
			next++
			rows[i] = ports.OutboxRow{ID: next, Event: testEvent(byte(i), next)}
		}
		if err := bus.Publish(b.Context(), rows); err != nil {
			b.Fatal(err)
		}
		for got := 0; consumed && got < size; {
			got += <-arrived
		}
	}
	b.ReportMetric(float64(b.N)*float64(size)/b.Elapsed().Seconds(), "events/s")
}
