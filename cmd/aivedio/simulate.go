package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/aivedio/aivedio/internal/simulator"
)

// simulateCmd runs the vendor in a box by itself.
type simulateCmd struct {
	Listen        string        `default:"127.0.0.1:8090" help:"Address to listen on."`
	PublicURL     string        `help:"Base of output addresses; the request's host when empty." placeholder:"URL"`
	VendorKey     string        `name:"vendor-key" env:"AIVEDIO_SIMULATE_KEY" help:"Bearer key that callers must send; empty accepts everybody."`
	WebhookSecret string        `env:"AIVEDIO_SIMULATE_SECRET" help:"Secret that signs webhooks; random when empty." placeholder:"whsec_…"`
	OpenAIWebhook string        `name:"openai-webhook" help:"The one endpoint of the OpenAI-shaped account." placeholder:"URL"`
	Seed          uint64        `help:"Decides every draw; 0 draws one."`
	Queue         time.Duration `help:"From create to start." default:"1s"`
	Run_          time.Duration `name:"run" help:"From start to end." default:"4s"`

	Faults simulator.Faults `embed:"" prefix:"fault-"`
}

// Run serves until the context ends.
func (cmd simulateCmd) Run(ctx context.Context, std streams) error {
	cfg := simulator.Config{
		APIKey: cmd.VendorKey, WebhookSecret: cmd.WebhookSecret, Seed: cmd.Seed, Queue: cmd.Queue, Run: cmd.Run_,
		PublicURL: cmd.PublicURL, OpenAIWebhookURL: cmd.OpenAIWebhook, Faults: cmd.Faults,
		Logger: newLogger(std.err, "text", "info"), AllowPrivateWebhook: true,
	}
	if err := cfg.Validate(); err != nil {
		return err
	}
	sim := simulator.New(cfg)
	ln, err := net.Listen("tcp", cmd.Listen)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	fmt.Fprintf(std.out, "ready http://%s secret=%s\n", ln.Addr(), sim.WebhookSecret())
	return serveSimulator(ctx, sim, ln)
}

// serveSimulator runs the engine and its HTTP server until ctx ends.
func serveSimulator(ctx context.Context, sim *simulator.Simulator, ln net.Listener) error {
	srv := &http.Server{Handler: sim, ReadHeaderTimeout: 10 * time.Second}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return sim.Run(ctx) })
	g.Go(func() error {
		if err := srv.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("simulator: %w", err)
		}
		return nil
	})
	g.Go(func() error {
		<-ctx.Done()
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		if err := srv.Shutdown(stop); err != nil {
			return srv.Close() // a hung fault keeps its connection
		}
		return nil
	})
	return g.Wait()
}
