package services

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// RocketMQOptions says what StartRocketMQ runs.
type RocketMQOptions struct {
	// SyncFlush makes the broker acknowledge a message after fsync.
	SyncFlush bool
	// Settings are further lines of broker.conf; they win over the defaults.
	Settings map[string]string
}

// RocketMQ is a name server and one broker. Topics are not created by
// themselves. Methods may be called from any goroutine; they are serialised.
type RocketMQ struct {
	opts       RocketMQOptions
	java, jars string
	dir        string
	namePort   int
	brokerPort int

	mu     sync.Mutex
	name   *process
	broker *process
}

// StartRocketMQ starts both servers and returns when the broker has
// registered with the name server, usually after five seconds. It needs Java
// 11 or later. ctx bounds the start, the first download included.
func StartRocketMQ(ctx context.Context, opts RocketMQOptions) (*RocketMQ, error) {
	java, err := findJava()
	if err != nil {
		return nil, err
	}
	jars, err := rocketJars(ctx)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "aivedio-rocketmq-")
	if err != nil {
		return nil, err
	}
	r := &RocketMQ{opts: opts, java: java, jars: jars, dir: dir}
	if err := r.startAll(ctx); err != nil {
		return nil, errors.Join(err, r.Stop())
	}
	return r, nil
}

func (r *RocketMQ) startAll(ctx context.Context) error {
	// The broker refuses to start without a ROCKETMQ_HOME that has a conf.
	if err := os.MkdirAll(filepath.Join(r.dir, "home", "conf"), 0o755); err != nil {
		return err
	}
	var err error
	for range 3 { // a port can be taken between its choice and its use
		if err = r.startNameServer(ctx); err == nil || ctx.Err() != nil {
			break
		}
	}
	if err != nil {
		return err
	}
	for range 3 {
		// The broker listens on two neighbours too: a fast lane two below
		// and replication one above.
		if r.brokerPort, err = FreePort(-2, 1); err != nil {
			return err
		}
		if err = r.StartBroker(ctx); err == nil || ctx.Err() != nil {
			break
		}
	}
	return err
}

// NameServer returns the name server's host:port.
func (r *RocketMQ) NameServer() string { return loopback(r.namePort) }

// BrokerAddr returns the broker's host:port, which the admin API wants for
// creating topics.
func (r *RocketMQ) BrokerAddr() string { return loopback(r.brokerPort) }

func (r *RocketMQ) startNameServer(ctx context.Context) error {
	port := r.namePort
	if port == 0 {
		var err error
		if port, err = FreePort(); err != nil {
			return err
		}
	}
	conf := filepath.Join(r.dir, "namesrv.conf")
	if err := os.WriteFile(conf, fmt.Appendf(nil, "listenPort=%d\n", port), 0o644); err != nil {
		return err
	}
	proc, err := r.runJava(ctx, "namesrv", "The Name Server boot success",
		"-Xms64m", "-Xmx128m", "-XX:MaxDirectMemorySize=128m",
		"org.apache.rocketmq.namesrv.NamesrvStartup", "-c", conf)
	if err != nil {
		return err
	}
	r.name, r.namePort = proc, port
	return nil
}

// StartNameServer starts a stopped name server again on its port. Brokers register
// anew within 30 s; until then it knows no route, and clients keep the one they
// have. On a running one it does nothing.
func (r *RocketMQ) StartNameServer(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.name != nil && r.name.alive() {
		return nil
	}
	return r.startNameServer(ctx)
}

// StopNameServer ends the name server with SIGKILL; what brokers had told it is
// lost.
func (r *RocketMQ) StopNameServer() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.name == nil {
		return nil
	}
	err := r.name.stop(syscall.SIGKILL, 10*time.Second)
	r.name = nil
	return err
}

// StartBroker starts a stopped broker again with its messages and its port,
// and returns when it has registered. On a running one it does nothing.
func (r *RocketMQ) StartBroker(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.broker != nil && r.broker.alive() {
		return nil
	}
	conf := filepath.Join(r.dir, "broker.conf")
	if err := os.WriteFile(conf, r.brokerConf(), 0o644); err != nil {
		return err
	}
	proc, err := r.runJava(ctx, "broker", "boot success",
		"-Xms256m", "-Xmx512m", "-XX:MaxDirectMemorySize=512m",
		"--add-exports=java.base/jdk.internal.ref=ALL-UNNAMED", "--add-exports=java.base/sun.nio.ch=ALL-UNNAMED",
		"--add-opens=java.base/java.nio=ALL-UNNAMED",
		"-Drocketmq.broker.diskSpaceWarningLevelRatio=0.98",
		"org.apache.rocketmq.broker.BrokerStartup", "-c", conf)
	if err != nil {
		return err
	}
	probe := func(ctx context.Context) error { return BrokerRegistered(ctx, r.NameServer(), r.BrokerAddr()) }
	if err := proc.awaitReady(ctx, probe); err != nil {
		return errors.Join(err, proc.stop(syscall.SIGKILL, 10*time.Second))
	}
	r.broker = proc
	return nil
}

func (r *RocketMQ) brokerConf() []byte {
	flush := "ASYNC_FLUSH"
	if r.opts.SyncFlush {
		flush = "SYNC_FLUSH"
	}
	settings := map[string]string{
		"brokerClusterName": "aivedio", "brokerName": "broker-a", "brokerId": "0", "brokerIP1": "127.0.0.1",
		"listenPort": fmt.Sprint(r.brokerPort), "haListenPort": fmt.Sprint(r.brokerPort + 1),
		"namesrvAddr": r.NameServer(), "storePathRootDir": filepath.Join(r.dir, "store"),
		"autoCreateTopicEnable": "false",
		"flushDiskType":         flush, "diskMaxUsedSpaceRatio": "95",
		// Small files: the defaults allocate gigabytes.
		"mappedFileSizeCommitLog": "67108864", "mappedFileSizeConsumeQueue": "300000", "maxIndexNum": "400000",
		// A busy two-core machine lets a send wait longer than the broker's
		// 200 ms, after which it answers "busy".
		"waitTimeMillsInSendQueue": "10000", "osPageCacheBusyTimeOutMills": "10000",
	}
	maps.Copy(settings, r.opts.Settings)
	var b bytes.Buffer
	for _, k := range slices.Sorted(maps.Keys(settings)) {
		fmt.Fprintf(&b, "%s=%s\n", k, settings[k])
	}
	return b.Bytes()
}

// runJava starts a main class and waits until its output contains ready.
func (r *RocketMQ) runJava(ctx context.Context, name, ready string, args ...string) (*process, error) {
	out := filepath.Join(r.dir, name+".out")
	if err := os.RemoveAll(out); err != nil { // or the last run's line counts
		return nil, err
	}
	base := []string{"-cp", filepath.Join(r.jars, "*"), "-Duser.home=" + r.dir, "-XX:+UseSerialGC"}
	proc, err := start(spec{name: "RocketMQ " + name, path: r.java, args: append(base, args...),
		env: append(os.Environ(), "ROCKETMQ_HOME="+filepath.Join(r.dir, "home")),
		log: out, orphan: syscall.SIGKILL, scratch: r.dir})
	if err != nil {
		return nil, err
	}
	probe := func(context.Context) error {
		content, err := os.ReadFile(out)
		if err == nil && !strings.Contains(string(content), ready) {
			err = errors.New("the line of success is not there yet")
		}
		return err
	}
	if err := proc.awaitReady(ctx, probe); err != nil {
		if proc.alive() {
			err = errors.Join(err, proc.stop(syscall.SIGKILL, 10*time.Second))
		}
		return nil, err
	}
	return proc, nil
}

// StopBroker ends the broker with SIGKILL and keeps its messages; the name
// server sees the connection close and forgets it. An orderly shutdown takes
// RocketMQ a quarter of a minute and tells the clients nothing else.
func (r *RocketMQ) StopBroker() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.broker == nil {
		return nil
	}
	err := r.broker.stop(syscall.SIGKILL, 10*time.Second)
	r.broker = nil
	return err
}

// PauseBroker freezes the broker: connections stay open, nothing answers.
func (r *RocketMQ) PauseBroker() error { return r.signalBroker(syscall.SIGSTOP) }

// ResumeBroker ends PauseBroker.
func (r *RocketMQ) ResumeBroker() error { return r.signalBroker(syscall.SIGCONT) }

func (r *RocketMQ) signalBroker(s syscall.Signal) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.broker == nil {
		return fmt.Errorf("broker: %w", ErrNotRunning)
	}
	return r.broker.signal(s)
}

// Stop ends both servers for good and removes their folder. Stopping twice is
// no error.
func (r *RocketMQ) Stop() error {
	return errors.Join(r.StopBroker(), r.StopNameServer(), os.RemoveAll(r.dir))
}

// PIDs returns the process ids of the name server and the broker, without those
// that do not run.
func (r *RocketMQ) PIDs() []int {
	r.mu.Lock()
	defer r.mu.Unlock()
	var pids []int
	for _, p := range []*process{r.name, r.broker} {
		if p != nil && p.alive() {
			pids = append(pids, p.cmd.Process.Pid)
		}
	}
	return pids
}
