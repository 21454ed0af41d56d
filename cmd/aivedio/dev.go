package main

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/aivedio/aivedio/adapters/pgstore"
	"github.com/aivedio/aivedio/app"
	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/internal/simulator"
	"github.com/aivedio/aivedio/internal/testenv/services"
	"github.com/aivedio/aivedio/internal/wire"
	"github.com/aivedio/aivedio/ports"
)

// devCmd runs everything on one machine. Only Go is needed: PostgreSQL is fetched
// once, the bus and the notifier live in the process, the vendor is simulated.
type devCmd struct {
	Listen   string        `default:"127.0.0.1:8080" help:"Address of the API, the streams and the callbacks."`
	Data     string        `type:"path" env:"AIVEDIO_DATA" help:"Folder that keeps everything between starts." placeholder:"DIR"`
	LogLevel string        `default:"warn" enum:"debug,info,warn,error" help:"debug, info, warn or error."`
	Queue    time.Duration `default:"1s" help:"How long the simulated vendor queues a job."`
	Render   time.Duration `default:"6s" help:"How long it generates."`

	Faults simulator.Faults `embed:"" prefix:"fault-"`
}

// devSecrets are made at the first start and kept, so that callback URLs, stored
// payloads and the demo key outlive a restart.
type devSecrets struct {
	CallbackKey   string `json:"callback_key"`
	PayloadKey    string `json:"payload_key"`
	SigningKey    string `json:"signing_key"`
	VendorKey     string `json:"vendor_key"`
	WebhookSecret string `json:"webhook_secret"`
	APIKey        string `json:"api_key"`
}

// Run starts the parts in order and stops them in the reverse one.
func (cmd devCmd) Run(ctx context.Context, std streams) (err error) {
	log := newLogger(std.err, "text", cmd.LogLevel)
	if cmd.Data == "" {
		cmd.Data = defaultDataDir()
	}
	if err := cmd.Faults.Validate(); err != nil {
		return err
	}
	// The address first: a start that cannot succeed leaves no folder behind.
	ln, err := net.Listen("tcp", cmd.Listen)
	if err != nil {
		return fmt.Errorf("listen: %w (another address: --listen 127.0.0.1:0)", err)
	}
	defer ln.Close()
	if err := os.MkdirAll(cmd.Data, 0o755); err != nil {
		return fmt.Errorf("data folder: %w (another folder: --data DIR)", err)
	}
	download := ""
	if !services.HasPostgres() {
		download = " (the first start downloads it)"
	}
	fmt.Fprintf(std.err, "starting PostgreSQL in %s%s\n", cmd.Data, download)
	pg, err := services.StartPostgres(ctx, services.PostgresOptions{Dir: filepath.Join(cmd.Data, "postgres"), Database: "aivedio", Settings: map[string]string{"shared_buffers": "128MB"}})
	switch {
	case err != nil && ctx.Err() != nil:
		return &exitError{code: exitInterrupted}
	case err != nil:
		return fmt.Errorf("start PostgreSQL: %w", err)
	}
	defer func() { err = errors.Join(err, pg.Stop()) }()
	return cmd.serve(ctx, std, log, ln, pg)
}

// serve runs the simulator and all roles on the database.
func (cmd devCmd) serve(ctx context.Context, std streams, log *slog.Logger, ln net.Listener, pg *services.Postgres) error {
	secrets, err := loadDevSecrets(filepath.Join(cmd.Data, "secrets.json"))
	if err != nil {
		return err
	}
	simLn, err := listenAgain(filepath.Join(cmd.Data, "simulator.addr"), log)
	if err != nil {
		return err
	}
	defer simLn.Close()
	database := pg.URL("aivedio")
	cfg := cmd.config(secrets, ln.Addr().String(), simLn.Addr().String(), database)
	if _, err := pgstore.Migrate(ctx, cfg.Database.URL, pgstore.MigrateOptions{Log: log}); err != nil {
		return err
	}
	sim, err := simulator.Open(simulator.Config{
		Journal: filepath.Join(cmd.Data, "simulator.journal"), PublicURL: "http://" + simLn.Addr().String(),
		APIKey: secrets.VendorKey, WebhookSecret: secrets.WebhookSecret, Queue: cmd.Queue, Run: cmd.Render, Faults: cmd.Faults,
		OpenAIWebhookURL: cfg.PublicURL + "/callbacks/openaivideo/a/main", Logger: log, AllowPrivateWebhook: true,
	})
	if err != nil {
		return err
	}
	defer sim.Close() //nolint:errcheck // every line was written when it came
	var demo devFile
	defer os.Remove(filepath.Join(cmd.Data, devFileName)) //nolint:errcheck // a file that stays names a process that is gone
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return cmd.watchPostgres(ctx, pg.Done()) })
	g.Go(func() error { return serveSimulator(ctx, sim, simLn) })
	g.Go(func() error {
		return Run(ctx, cfg, Hooks{
			Logger: log, Listener: ln,
			Seed: func(ctx context.Context, store ports.Store, access *app.Access) (err error) {
				demo, err = seedDemo(ctx, store, access, &secrets, filepath.Join(cmd.Data, "secrets.json"))
				return err
			},
			Ready: func(addr net.Addr) {
				demo.URL, demo.Database, demo.PID = "http://"+addr.String(), database, os.Getpid()
				if err := writeJSON(filepath.Join(cmd.Data, devFileName), demo); err != nil {
					log.Error("write dev.json", "error", err)
				}
				fmt.Fprintf(std.out, "ready %s project=%s key=%s\n", demo.URL, demo.Project, demo.APIKey)
			},
		})
	})
	return g.Wait()
}

// watchPostgres ends dev with its database. Starting that again by itself would
// hide why it ended (a full disk, no memory) and do so for ever.
func (cmd devCmd) watchPostgres(ctx context.Context, ended <-chan struct{}) error {
	select {
	case <-ended:
		return fmt.Errorf("PostgreSQL ended; its log is %s; start dev again", filepath.Join(cmd.Data, "postgres", "postgres.log"))
	case <-ctx.Done():
		return nil
	}
}

// config is the configuration of a machine of one's own.
func (cmd devCmd) config(s devSecrets, listen, sim, database string) Config {
	cfg := DefaultConfig()
	cfg.Listen, cfg.PublicURL, cfg.AllowPrivate, cfg.StopTimeout = listen, "http://"+listen, true, 5*time.Second
	cfg.LogFormat, cfg.LogLevel = "text", cmd.LogLevel
	cfg.Database.URL = database
	cfg.Media.Dir = filepath.Join(cmd.Data, "media")
	cfg.Secrets = SecretsConfig{CallbackKeys: []string{s.CallbackKey}, PayloadKeys: []string{s.PayloadKey}, SigningKey: s.SigningKey}
	account := func(base string) ProviderConfig {
		return ProviderConfig{Credits: 1, Accounts: []AccountConfig{{ID: "main", BaseURL: base, APIKey: s.VendorKey, WebhookSecrets: []string{s.WebhookSecret}}}}
	}
	cfg.Providers = map[string]ProviderConfig{
		"replicate":   account("http://" + sim + "/v1"),
		"openaivideo": account("http://" + sim + "/v1"),
	}
	return cfg
}

// seedDemo makes the demo tenant, project and key, or finds those of the last
// start.
func seedDemo(ctx context.Context, store ports.Store, access *app.Access, s *devSecrets, secretsFile string) (devFile, error) {
	tenant, err := store.CreateTenant(ctx, ports.Tenant{ID: domain.TenantID{ID: wire.NewID()}, Name: "demo", Credits: 1_000_000, CreatedAt: time.Now()})
	if err != nil {
		return devFile{}, fmt.Errorf("demo tenant: %w", err)
	}
	project, err := store.CreateProject(ctx, ports.Project{ID: domain.ProjectID{ID: wire.NewID()}, TenantID: tenant.ID, Name: "demo", OnLateSuccess: domain.LateSuccessKeep, CreatedAt: time.Now()})
	if err != nil {
		return devFile{}, fmt.Errorf("demo project: %w", err)
	}
	if s.APIKey != "" {
		if p, err := access.Authenticate(ctx, s.APIKey); err == nil && slices.Equal(p.Scopes, ports.Scopes()) {
			return devFile{Project: wire.ProjectID(project.ID), APIKey: s.APIKey}, nil
		}
	}
	raw, _, err := access.CreateKey(ctx, app.KeyCommand{TenantID: tenant.ID, Name: "demo", Scopes: ports.Scopes()})
	if err != nil {
		return devFile{}, fmt.Errorf("demo key: %w", err)
	}
	s.APIKey = raw
	return devFile{Project: wire.ProjectID(project.ID), APIKey: raw}, writeJSON(secretsFile, s)
}

// loadDevSecrets reads the kept secrets or makes them.
func loadDevSecrets(path string) (devSecrets, error) {
	var s devSecrets
	data, err := os.ReadFile(path)
	if err == nil {
		if err := json.Unmarshal(data, &s); err != nil {
			return s, fmt.Errorf("%s does not parse; remove the data folder to start anew: %w", path, err)
		}
		return s, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return s, fmt.Errorf("dev secrets: %w", err)
	}
	s = devSecrets{CallbackKey: randomKey(), PayloadKey: randomKey(), SigningKey: randomKey(), VendorKey: "r8_" + randomKey()[:32], WebhookSecret: "whsec_" + randomKey()}
	return s, writeJSON(path, s)
}

func randomKey() string {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails: crypto/rand ends the process instead
	return base64.StdEncoding.EncodeToString(key)
}

// writeJSON replaces a file that only its owner may read.
func writeJSON(path string, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("encode %s: %w", filepath.Base(path), err)
	}
	tmp := path + ".new"
	if err := os.WriteFile(tmp, append(data, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, path)
}
