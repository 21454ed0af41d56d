package simulator_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/aivedio/aivedio/internal/simulator"
)

// A job that the vendor's moderation refuses, told by webhook.
func Example() {
	told := make(chan string, 1)
	client := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var job struct{ Status, Error string }
		if err := json.NewDecoder(r.Body).Decode(&job); err != nil {
			job.Error = err.Error()
		}
		told <- job.Status + ": " + job.Error
	}))
	defer client.Close()

	sim := simulator.New(simulator.Config{Queue: -1, Run: -1, AllowPrivateWebhook: true})
	vendor := httptest.NewServer(sim)
	defer vendor.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	stopped := make(chan error, 1)
	go func() { stopped <- sim.Run(ctx) }()

	resp, err := http.Post(vendor.URL+"/v1/predictions", "application/json", strings.NewReader(
		`{"model":"sim/video","input":{"prompt":"a red kite [sim:fail=moderation]"},"webhook":"`+client.URL+`"}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	resp.Body.Close() //nolint:errcheck // not read
	fmt.Println(resp.StatusCode)
	fmt.Println(<-told)
	cancel()
	fmt.Println(<-stopped, sim.Stats().Creates)
	http.DefaultClient.CloseIdleConnections()
	// Output:
	// 201
	// failed: The prompt or the output was flagged as sensitive. Try another prompt. (E005)
	// <nil> 1
}
