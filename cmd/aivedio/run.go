package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/aivedio/aivedio/adapters/stream"
	"github.com/aivedio/aivedio/app"
	"github.com/aivedio/aivedio/ports"
)

// Hooks let a caller reach into a run; every field may be zero.
type Hooks struct {
	Logger *slog.Logger
	// Listener is used instead of one on Config.Listen.
	Listener net.Listener
	// Seed runs once the store is open and before anything is served.
	Seed func(ctx context.Context, store ports.Store, access *app.Access) error
	// Ready is called when every role answers.
	Ready func(api net.Addr)
}

// Run runs the configured roles until ctx ends or one of them fails; the first
// that fails stops the others. The order of the stop is intake, streams, loops,
// then what they share, within Config.StopTimeout.
func Run(ctx context.Context, cfg Config, hooks Hooks) (err error) {
	defer holdHeap()()
	endProfile, err := profileCPU(cfg.CPUProfile)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, endProfile()) }()
	log := hooks.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	p, err := openProcess(ctx, cfg, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	if hooks.Seed != nil {
		if err := hooks.Seed(ctx, p.store, p.access); err != nil {
			return err
		}
	}
	r := &runner{process: p}
	if err := r.build(hooks.Listener); err != nil {
		return errors.Join(err, r.closeListeners())
	}
	return r.run(ctx, hooks.Ready)
}

// runner is a process with its servers and loops.
type runner struct {
	*process
	hub      *stream.Hub
	watching *app.Watching
	servers  []*server
	work     []loop
	// onIntakeEnd ends what took requests, once no more come.
	onIntakeEnd []func(context.Context) error
	// serving is what /readyz says.
	serving atomic.Bool
}

// server is one listener with its handler.
type server struct {
	name string
	ln   net.Listener
	http *http.Server
}

// build makes servers and loops and opens the listeners, so that a taken port is
// an error of the start.
func (r *runner) build(api net.Listener) error {
	var err error
	if r.work, err = r.loops(); err != nil {
		return fmt.Errorf("roles: %w", err)
	}
	if err := r.watch(); err != nil {
		return err
	}
	return r.buildServers(api)
}

func (r *runner) closeListeners() error {
	var errs []error
	for _, s := range r.servers {
		errs = append(errs, s.ln.Close())
	}
	return errors.Join(errs...)
}

// run serves until the end and stops in order.
func (r *runner) run(ctx context.Context, ready func(net.Addr)) error {
	g, failed := errgroup.WithContext(ctx)
	loops, stopLoops := context.WithCancel(context.WithoutCancel(ctx))
	defer stopLoops()
	streams, stopStreams := context.WithCancel(context.WithoutCancel(ctx))
	defer stopStreams()

	for _, l := range r.work {
		until := loops
		if l.outward {
			until = failed
		}
		g.Go(func() error { return wrap(l.name, l.run(until)) })
	}
	if r.hub != nil {
		g.Go(func() error { return wrap("stream", r.hub.Run(streams)) })
	}
	for _, s := range r.servers {
		g.Go(func() error {
			if err := s.http.Serve(s.ln); !errors.Is(err, http.ErrServerClosed) {
				return wrap(s.name, err)
			}
			return nil
		})
	}
	g.Go(func() error {
		<-failed.Done()
		r.stop(stopStreams, stopLoops)
		return nil
	})
	r.serving.Store(true)
	if ready != nil {
		ready(r.apiAddr())
	}
	ended := make(chan error, 1)
	go func() { ended <- g.Wait() }()
	select {
	case err := <-ended:
		return err
	case <-after(failed, r.cfg.StopTimeout):
		r.closers = nil // what hangs still uses it, and the process ends
		return errors.Join(wrap("role", context.Cause(failed)), fmt.Errorf("work was cut: it had not ended %v after the stop began", r.cfg.StopTimeout))
	}
}

// after is closed some time after the context has ended.
func after(ctx context.Context, wait time.Duration) <-chan struct{} {
	over := make(chan struct{})
	context.AfterFunc(ctx, func() { time.AfterFunc(wait, func() { close(over) }) })
	return over
}

// stop ends intake, then streams, then loops; those that call vendors have ended
// their taking already. A third of StopTimeout is for the streams, what is left of
// a half for requests, a third for the work in hand, two for calls of vendors: what
// does not end in time is cut.
func (r *runner) stop(stopStreams, stopLoops context.CancelFunc) {
	r.serving.Store(false)
	ctx, cancel := context.WithTimeout(context.Background(), r.cfg.StopTimeout/2)
	defer cancel()
	if r.hub != nil {
		drain, cancelDrain := context.WithTimeout(ctx, r.cfg.StopTimeout/3)
		if err := r.hub.Drain(drain); err != nil {
			r.log.Warn("streams were cut", "error", err)
		}
		cancelDrain()
	}
	stopStreams()
	for _, s := range r.servers {
		if err := s.http.Shutdown(ctx); err != nil {
			r.log.Warn("requests were cut", "server", s.name, "error", err)
			_ = s.http.Close() // its error is the one just logged
		}
	}
	for _, end := range r.onIntakeEnd {
		if err := end(ctx); err != nil {
			r.log.Warn("intake was cut", "error", err)
		}
	}
	stopLoops()
}

func (r *runner) apiAddr() net.Addr {
	if len(r.servers) == 0 {
		return &net.TCPAddr{}
	}
	return r.servers[0].ln.Addr()
}

func wrap(name string, err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return nil
	}
	return fmt.Errorf("%s: %w", name, err)
}

// newServer bounds what a client may do to a connection. Streams lift the write
// time-out for themselves.
func newServer(h http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler: h, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 32 << 10, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}
