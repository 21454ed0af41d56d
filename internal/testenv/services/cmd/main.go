// Command cmd starts real PostgreSQL, Redis and RocketMQ, prints their
// addresses as shell assignments that the tests and aivedio understand, and
// stops them on Ctrl-C:
//
//	go run ./internal/testenv/services/cmd [-only postgres,redis,rocketmq] [-fsync]
//
// With a command after the flags it runs that instead of waiting, with the
// addresses in its environment, and exits with its code.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/aivedio/aivedio/internal/testenv/services"
)

func main() {
	only := flag.String("only", "postgres,redis,rocketmq", "services to start")
	fsync := flag.Bool("fsync", false, "let PostgreSQL flush to disk")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	code, err := run(ctx, strings.Split(*only, ","), *fsync, flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "services:", err)
		code = 1
	}
	os.Exit(code)
}

// fleet is what has been started.
type fleet struct {
	env   []string
	stops []func() error
}

func run(ctx context.Context, names []string, fsync bool, command []string) (code int, err error) {
	var f fleet
	defer func() { err = errors.Join(err, f.stop()) }()
	for _, name := range names {
		if err := f.start(ctx, name, fsync); err != nil {
			return 1, err
		}
	}
	if len(command) > 0 {
		return f.execute(ctx, command)
	}
	for _, kv := range f.env {
		fmt.Println("export " + kv)
	}
	fmt.Fprintln(os.Stderr, "running; Ctrl-C stops them")
	<-ctx.Done()
	return 0, nil
}

func (f *fleet) start(ctx context.Context, name string, fsync bool) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	switch name {
	case "postgres":
		s, err := services.StartPostgres(ctx, services.PostgresOptions{NoSync: !fsync, Settings: map[string]string{"max_connections": "400"}})
		if err != nil {
			return err
		}
		f.add(s.Stop, "AIVEDIO_TEST_POSTGRES_URL="+s.URL(""))
	case "redis":
		s, err := services.StartRedis(ctx, services.RedisOptions{})
		if err != nil {
			return err
		}
		f.add(s.Stop, "AIVEDIO_TEST_REDIS_ADDR="+s.Addr())
	case "rocketmq":
		s, err := services.StartRocketMQ(ctx, services.RocketMQOptions{SyncFlush: fsync})
		if err != nil {
			return err
		}
		f.add(s.Stop, "AIVEDIO_TEST_ROCKETMQ_NAMESRV="+s.NameServer(), "AIVEDIO_TEST_ROCKETMQ_BROKER="+s.BrokerAddr())
	default:
		return fmt.Errorf("unknown service %q: want postgres, redis or rocketmq", name)
	}
	return nil
}

func (f *fleet) add(stop func() error, env ...string) {
	f.stops = append(f.stops, stop)
	f.env = append(f.env, env...)
}

// stop ends everything, the last one started first.
func (f *fleet) stop() error {
	var errs []error
	for i := len(f.stops) - 1; i >= 0; i-- {
		errs = append(errs, f.stops[i]())
	}
	return errors.Join(errs...)
}

func (f *fleet) execute(ctx context.Context, command []string) (int, error) {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env = append(os.Environ(), f.env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 30 * time.Second
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode(), nil
	}
	return 0, err
}
