package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"

	"github.com/aivedio/aivedio/adapters/blobstore"
	"github.com/aivedio/aivedio/adapters/httpapi"
	"github.com/aivedio/aivedio/adapters/stream"
	"github.com/aivedio/aivedio/app"
	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// buildServers opens the listeners and mounts the routes of the roles. A process
// without an API still answers /healthz, /readyz and /metrics.
func (r *runner) buildServers(api net.Listener) error {
	cfg, err := r.httpConfig()
	if err != nil {
		return err
	}
	s, err := httpapi.New(cfg)
	if err != nil {
		return fmt.Errorf("http: %w", err)
	}
	if api == nil {
		if api, err = net.Listen("tcp", r.cfg.Listen); err != nil {
			return fmt.Errorf("listen: %w", err)
		}
	}
	r.servers = append(r.servers, &server{name: "api", ln: api, http: newServer(s.Handler(), r.log)})
	if r.cfg.CallbackListen == "" || !r.cfg.has(RoleCallback) {
		return nil
	}
	ln, err := net.Listen("tcp", r.cfg.CallbackListen)
	if err != nil {
		return fmt.Errorf("listen for callbacks: %w", err)
	}
	r.servers = append(r.servers, &server{name: "callback", ln: ln, http: newServer(s.Callbacks(), r.log)})
	return nil
}

// watch makes the part that reports which projects somebody looks at.
func (r *runner) watch() error {
	if !r.cfg.has(RoleAPI) && !r.cfg.has(RoleGateway) {
		return nil
	}
	var err error
	r.watching, err = app.NewWatching(app.WatchingDeps{Env: r.env, Watches: r.store, Live: func() []domain.ProjectID {
		if r.hub == nil {
			return nil
		}
		return r.hub.Live()
	}}, app.WatchingConfig{})
	if err == nil {
		r.work = append(r.work, loop{"watching", r.watching.Run, false})
	}
	return err
}

// httpConfig names the parts of the surface that the roles bring.
func (r *runner) httpConfig() (httpapi.Config, error) {
	cfg := httpapi.Config{Access: r.access, Metrics: r.metrics, Logger: r.log, Ready: r.ready, Watched: r.watching.Note, CallbackRate: r.cfg.CallbackRate, ProviderRate: r.cfg.ProviderCallbackRate}
	var faults []error
	for _, cidr := range r.cfg.TrustedProxies {
		prefix, err := netip.ParsePrefix(cidr)
		if err != nil {
			faults = append(faults, fmt.Errorf("trusted_proxies: %q is not a network such as 10.0.0.0/8", cidr))
		}
		cfg.TrustedProxies = append(cfg.TrustedProxies, prefix)
	}
	for _, part := range []struct {
		role  Role
		mount func(*httpapi.Config) error
	}{{RoleAPI, r.mountAPI}, {RoleCallback, r.mountCallback}, {RoleGateway, r.mountGateway}} {
		if r.cfg.has(part.role) {
			faults = append(faults, part.mount(&cfg))
		}
	}
	return cfg, errors.Join(faults...)
}

func (r *runner) mountAPI(cfg *httpapi.Config) error {
	keys, err := decodeKeys([]string{r.cfg.Secrets.SigningKey}, 0)
	if err != nil {
		return fmt.Errorf("secrets.signing_key: %w", err)
	}
	prices := app.SubmitConfig{Credits: map[string]int64{}, PlainImages: r.cfg.AllowPrivate}
	for name, p := range r.cfg.Providers {
		prices.Credits[name] = p.Credits
	}
	command := app.CommandDeps{Env: r.env, Transitions: r.store, Reader: r.store, Vendors: r.vendors}
	cfg.Reader, cfg.Inbox, cfg.Desk, cfg.Outbox, cfg.Durations = r.store, r.store, r.store, r.store, r.store
	cfg.Media, cfg.SigningKeys = r.media, keys
	var faults [6]error
	cfg.Submit, faults[0] = app.NewSubmit(app.SubmitDeps{Env: r.env, Transitions: r.store, Vendors: r.vendors, Tokens: r.tokens}, prices)
	cfg.Cancel, faults[1] = app.NewCancel(command)
	cfg.Retry, faults[2] = app.NewRetry(app.RetryDeps{CommandDeps: command, Tokens: r.tokens, Submit: prices})
	cfg.Resolve, faults[3] = app.NewResolve(app.ResolveDeps{CommandDeps: command, Desk: r.store})
	cfg.Sweeps = r.store
	cfg.Requeue, faults[4] = app.NewRequeue(app.RequeueDeps{Env: r.env, DeadLetters: r.store})
	cfg.Accounts, faults[5] = app.NewAccounts(app.AccountsDeps{
		Env: r.env, Health: r.store, Vendors: r.vendors, Submits: r.cfg.submitQuota(), Queries: r.cfg.queryQuota(),
	})
	return errors.Join(faults[:]...)
}

func (r *runner) mountCallback(cfg *httpapi.Config) error {
	receive, err := app.NewReceive(app.ReceiveDeps{Env: r.env, Inbox: r.store, Vendors: r.vendors, Tokens: r.tokens}, r.cfg.receive())
	if err != nil {
		return err
	}
	cfg.Receive = receive
	r.onIntakeEnd = append(r.onIntakeEnd, receive.Close)
	return nil
}

func (r *runner) mountGateway(cfg *httpapi.Config) error {
	hub, err := stream.New(stream.Config{Events: r.store, Notifier: r.notifier, Logger: r.log, DrainWindow: r.cfg.StopTimeout / 3})
	if err != nil {
		return err
	}
	if err := r.metrics.Registry().Register(hub.Collector()); err != nil {
		return fmt.Errorf("metrics of the gateway: %w", err)
	}
	r.hub, cfg.Reader = hub, r.store
	cfg.Events = httpapi.EventsFunc(func(w http.ResponseWriter, req *http.Request, e httpapi.EventRequest) error {
		return hub.ServeEvents(w, req, stream.StreamRequest(e))
	})
	return nil
}

// ready is what /readyz asks: a process that stops, or whose database is away,
// should get no requests.
func (r *runner) ready(ctx context.Context) error {
	if !r.serving.Load() {
		return errors.New("not serving")
	}
	return r.store.Ping(ctx)
}

// downloader fetches outputs; only a machine of one's own may reach inside
// addresses.
func (p *process) downloader() ports.Downloader {
	return blobstore.NewDownloader(blobstore.DownloaderConfig{AllowPrivate: p.cfg.AllowPrivate})
}
