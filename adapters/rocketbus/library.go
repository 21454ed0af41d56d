package rocketbus

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	rocketmq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
	"github.com/apache/rocketmq-client-go/v2/rlog"
)

// The library's remoting time-outs. Its own are 15 s for a dial, during which a
// lock stops every other send, and 2 minutes for a read. A read must outlast the
// 30 s between heartbeats.
const (
	dialTimeout  = time.Second
	readTimeout  = time.Minute
	writeTimeout = 3 * time.Second
)

// libraryLog is where the library's lines go; a later bus replaces it.
var (
	libraryOnce sync.Once
	libraryLog  atomic.Pointer[slog.Logger]
)

// setUpLibrary sets what the library keeps in unguarded globals: its logger
// (logrus to standard error otherwise) and its time-outs, which an option of any
// client writes for all. Both are set once, before the first client reads them.
func setUpLibrary(resolver primitive.NsResolver, logger *slog.Logger) error {
	libraryLog.Store(logger)
	var err error
	libraryOnce.Do(func() {
		rlog.SetLogger(logBridge{})
		var p rocketmq.Producer
		p, err = rocketmq.NewProducer(
			producer.WithInstanceName(fmt.Sprintf("aivedio-setup-%d", time.Now().UnixNano())),
			producer.WithNsResolver(resolver),
			producer.WithRemotingTimeout(dialTimeout, readTimeout, writeTimeout),
		)
		if err == nil {
			err = p.Shutdown()
		}
	})
	return err
}

// logBridge passes the library's lines to slog, one level lower than it thinks:
// what matters is returned as an error or logged by this package.
type logBridge struct{}

var _ rlog.Logger = logBridge{}

// Debug drops a line per pull.
func (logBridge) Debug(string, map[string]any) {}

// Info logs at debug level.
func (logBridge) Info(msg string, fields map[string]any) { logLine(slog.LevelDebug, msg, fields) }

// Warning logs at info level.
func (logBridge) Warning(msg string, fields map[string]any) { logLine(slog.LevelInfo, msg, fields) }

// Error logs at warn level.
func (logBridge) Error(msg string, fields map[string]any) { logLine(slog.LevelWarn, msg, fields) }

// Fatal logs at error level and does not exit.
func (logBridge) Fatal(msg string, fields map[string]any) { logLine(slog.LevelError, msg, fields) }

// Level is fixed by the slog handler.
func (logBridge) Level(string) {}

// OutputPath is the slog handler's.
func (logBridge) OutputPath(string) error { return nil }

func logLine(level slog.Level, msg string, fields map[string]any) {
	logger := libraryLog.Load()
	ctx := context.Background()
	if logger == nil || !logger.Enabled(ctx, level) {
		return
	}
	attrs := []slog.Attr{slog.String("library", "rocketmq")}
	for key, value := range fields {
		switch key {
		case rlog.LogKeyMessages, "message", "msg", rlog.LogKeyStack: // bodies
			continue
		}
		text := fmt.Sprint(value)
		attrs = append(attrs, slog.String(key, text[:min(len(text), 200)]))
	}
	logger.LogAttrs(ctx, level, msg, attrs...)
}

// nameResolver gives the library addresses: it refuses host names.
type nameResolver struct{ servers []string }

var _ primitive.NsResolver = nameResolver{}

// Resolve looks every host up; what cannot be looked up is left out.
func (r nameResolver) Resolve() []string {
	var addrs []string
	for _, server := range r.servers {
		host, port, err := net.SplitHostPort(server)
		if err != nil {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), dialTimeout)
		ips, err := net.DefaultResolver.LookupHost(ctx, host)
		cancel()
		if err != nil {
			continue
		}
		for _, ip := range ips {
			addrs = append(addrs, net.JoinHostPort(ip, port))
		}
	}
	slices.Sort(addrs)
	return slices.Compact(addrs)
}

// Description names the servers for the library's errors.
func (r nameResolver) Description() string { return strings.Join(r.servers, ";") }
