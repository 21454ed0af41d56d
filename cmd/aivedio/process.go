package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/aivedio/aivedio/adapters/blobstore"
	"github.com/aivedio/aivedio/adapters/httpapi"
	"github.com/aivedio/aivedio/adapters/memory"
	"github.com/aivedio/aivedio/adapters/pgstore"
	"github.com/aivedio/aivedio/adapters/redisnotify"
	"github.com/aivedio/aivedio/adapters/rocketbus"
	"github.com/aivedio/aivedio/app"
	"github.com/aivedio/aivedio/internal/wire"
	"github.com/aivedio/aivedio/ports"
)

// process is everything that the roles of one process share.
type process struct {
	cfg       Config
	log       *slog.Logger
	env       app.Env
	metrics   *httpapi.Metrics
	store     *pgstore.Store
	bus       ports.Bus
	notifier  ports.Notifier
	quota     ports.Quota
	due       ports.DueIndex
	providers ports.Providers
	vendors   app.Vendors
	tokens    *app.CallbackTokens
	media     ports.Media
	access    *app.Access
	// gate is nil in a process that calls no vendor.
	gate *app.Gate

	// closers are called in reverse order.
	closers []func() error
}

// openProcess connects what the roles need. On an error everything that was
// opened is closed.
func openProcess(ctx context.Context, cfg Config, log *slog.Logger) (p *process, err error) {
	p = &process{cfg: cfg, log: log, metrics: httpapi.NewMetrics()}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.close())
		}
	}()
	p.env = app.Env{NewID: wire.NewID, Logger: log, Metrics: p.metrics, Bells: app.NewBells(), StopGrace: cfg.StopTimeout / 3}
	for _, open := range []func(context.Context) error{p.openVendors, p.openStore, p.openGate, p.openNotifier, p.openBus, p.openMedia} {
		if err := open(ctx); err != nil {
			return p, err
		}
	}
	p.env.Webhooks, err = app.NewWebhookWatch(app.WebhookWatchDeps{Env: p.env, Health: p.store, Vendors: p.vendors}, app.WebhookWatchConfig{})
	if err != nil {
		return p, err
	}
	p.access, err = app.NewAccess(app.AccessDeps{Env: p.env, Access: p.store}, app.AccessConfig{})
	return p, err
}

// close releases everything, the newest first.
func (p *process) close() error {
	var errs []error
	for i := len(p.closers) - 1; i >= 0; i-- {
		errs = append(errs, p.closers[i]())
	}
	p.closers = nil
	return errors.Join(errs...)
}

func (p *process) openVendors(context.Context) error {
	var err error
	if p.providers, err = newProviders(p.cfg); err != nil {
		return fmt.Errorf("providers: %w", err)
	}
	p.vendors = app.NewVendors(p.providers)
	keys, err := decodeKeys(p.cfg.Secrets.CallbackKeys, 0)
	if err != nil {
		return fmt.Errorf("secrets.callback_keys: %w", err)
	}
	p.tokens, err = app.NewCallbackTokens(keys...)
	return err
}

func (p *process) openStore(ctx context.Context) error {
	keys, err := decodeKeys(p.cfg.Secrets.PayloadKeys, 32)
	if err != nil {
		return fmt.Errorf("secrets.payload_keys: %w", err)
	}
	ring := pgstore.Keyring{Current: fingerprint(keys[0]), Keys: map[string][]byte{}}
	for _, k := range keys {
		ring.Keys[fingerprint(k)] = k
	}
	cfg := pgstore.Config{
		URL: p.cfg.Database.URL, Conns: int32(p.cfg.Database.Conns), CallbackConns: int32(p.cfg.Database.CallbackConns),
		Keyring: ring, NewID: wire.NewID, Logger: p.log,
	}
	p.cfg.Retention.keep(&cfg)
	p.store, err = pgstore.Open(ctx, cfg)
	if err != nil {
		return fmt.Errorf("PostgreSQL: %w", err)
	}
	p.closers = append(p.closers, func() error { p.store.Close(); return nil })
	return nil
}

// openNotifier takes Redis where it is configured. An unreachable Redis is no
// fault at the start: hints are only hints.
func (p *process) openNotifier(context.Context) error {
	if p.cfg.Redis.URL == "" {
		p.notifier, p.quota = memory.NewNotifier(), memory.NewQuota(nil)
		p.closers = append(p.closers, p.notifier.Close)
		return nil
	}
	rdb, err := redisnotify.Dial(redisnotify.ClientOptions{URL: p.cfg.Redis.URL})
	if err != nil {
		return err
	}
	p.closers = append(p.closers, rdb.Close)
	p.notifier = redisnotify.NewNotifier(rdb, redisnotify.NotifierConfig{Prefix: p.cfg.Redis.Prefix + ":", Logger: p.log})
	if p.cfg.Work.PollIndex {
		p.due = redisnotify.NewDueIndex(rdb, redisnotify.DueIndexConfig{Key: p.cfg.Redis.Prefix + ":due"})
	}
	p.quota = redisnotify.NewQuota(rdb, redisnotify.QuotaConfig{Prefix: p.cfg.Redis.Prefix + ":quota", LocalFraction: p.cfg.Quotas.Away, Logger: p.log})
	p.closers = append(p.closers, p.notifier.Close)
	return nil
}

func (p *process) openBus(ctx context.Context) error {
	if !p.cfg.has(RoleRelay) && !p.cfg.has(RoleDispatch) {
		return nil
	}
	if len(p.cfg.RocketMQ.NameServers) == 0 {
		p.bus = memory.NewBus(memory.BusConfig{Retries: p.store, Logger: p.log})
		p.closers = append(p.closers, p.bus.Close)
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	bus, err := rocketbus.Open(ctx, rocketbus.Config{
		NameServers: p.cfg.RocketMQ.NameServers, Topic: p.cfg.RocketMQ.Topic, GroupPrefix: p.cfg.RocketMQ.GroupPrefix, Logger: p.log,
	})
	if err != nil {
		return fmt.Errorf("RocketMQ: %w", err)
	}
	p.bus = bus
	p.closers = append(p.closers, bus.Close)
	return nil
}

func (p *process) openMedia(ctx context.Context) error {
	if p.cfg.Media.Dir == "" {
		return nil
	}
	store, err := blobstore.Open(ctx, p.cfg.Media.Dir)
	if err != nil {
		return fmt.Errorf("media: %w", err)
	}
	p.media = store
	p.closers = append(p.closers, store.Close)
	return nil
}
