package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/aivedio/aivedio/internal/simulator"
	"github.com/aivedio/aivedio/internal/testenv/services"
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
	Journal       string        `type:"path" help:"File in which jobs outlive a restart, with seed and secret; in memory only when empty." placeholder:"FILE"`

	Quota  simulator.Quota  `embed:"" prefix:"quota-"`
	Faults simulator.Faults `embed:"" prefix:"fault-"`
}

// Run serves until the context ends.
func (cmd simulateCmd) Run(ctx context.Context, std streams) error {
	cfg := simulator.Config{
		APIKey: cmd.VendorKey, WebhookSecret: cmd.WebhookSecret, Seed: cmd.Seed, Queue: cmd.Queue, Run: cmd.Run_,
		PublicURL: cmd.PublicURL, OpenAIWebhookURL: cmd.OpenAIWebhook, Quota: cmd.Quota, Faults: cmd.Faults,
		Logger: newLogger(std.err, "text", "info"), AllowPrivateWebhook: true, Journal: cmd.Journal,
	}
	if err := checkSecret(cmd.WebhookSecret); err != nil {
		return err
	}
	ln, err := net.Listen("tcp", cmd.Listen)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	defer ln.Close()
	sim, err := simulator.Open(cfg)
	if err != nil {
		return err
	}
	defer sim.Close() //nolint:errcheck // every line was written when it came
	fmt.Fprintf(std.out, "ready http://%s secret=%s\n", ln.Addr(), sim.WebhookSecret())
	return serveSimulator(ctx, sim, ln)
}

// checkSecret refuses a secret that can sign nothing, by the name of its flag.
func checkSecret(secret string) error {
	if secret == "" {
		return nil
	}
	if _, err := simulator.Sign(secret, "id", time.Time{}, nil); err != nil {
		return errors.New("--webhook-secret (AIVEDIO_SIMULATE_SECRET) must be whsec_ and base64; `echo whsec_$(openssl rand -base64 32)` makes one")
	}
	return nil
}

// Help points to the reference.
func (simulateCmd) Help() string { return simulatorHelp }

// Help points to the reference of what the simulated vendor can do.
func (devCmd) Help() string { return simulatorHelp }

const simulatorHelp = "Routes, faults, words in a prompt such as [sim:fail=moderation], and stories to try: docs/simulator.md."

// listenAgain listens on the address that file names, or on a free one when
// there is none or it is taken, and writes it down. Attempts and outputs remember
// where their vendor was, so it has to be found there after a restart.
func listenAgain(file string, log *slog.Logger) (net.Listener, error) {
	kept, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("address of the simulated vendor: %w", err)
	}
	if addr := strings.TrimSpace(string(kept)); addr != "" {
		ln, err := net.Listen("tcp", addr)
		if err == nil {
			return ln, nil
		}
		log.Warn("the simulated vendor moves: its address is taken, so tasks that were under way will not find it", "address", addr, "error", err)
	}
	port, err := services.FreePort()
	if err != nil {
		return nil, fmt.Errorf("listen for the simulated vendor: %w", err)
	}
	ln, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return nil, fmt.Errorf("listen for the simulated vendor: %w", err)
	}
	if err := os.WriteFile(file, []byte(ln.Addr().String()+"\n"), 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("address of the simulated vendor: %w", err), ln.Close())
	}
	return ln, nil
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
