// Command bench measures this system and, in the same run on the same machine,
// its peers. docs/performance.md says what each figure means.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
)

// cli is the command line.
type cli struct {
	Converge convergeCmd `cmd:"" help:"Webhooks over HTTP until the state, its event and the stream: acknowledged and converged per second, latency to the browser, beside pgbench."`
	Ingest   ingestCmd   `cmd:"" help:"Webhooks over HTTP until the 2xx: acknowledged per second beside pgbench and one commit per delivery, the answer time at a paced rate, and an overload."`
	Poll     pollCmd     `cmd:"" help:"A vendor that is only asked, inside the quota that it measures: lag, the worst second, leases, a killed worker, CPU per query, beside pgbench."`
	Hot      hotCmd      `cmd:"" name:"hot-project" help:"All load in one project: transitions per second beside the same work one by one, and beside many projects."`
	Profile  profileCmd  `cmd:"" help:"Where the time goes: functions of each role and statements of the server under load."`
	Growth   growthCmd   `cmd:"" help:"What a delivery and a transition cost with 1, 2 and 4 million events stored."`
	Relay    relayCmd    `cmd:"" help:"A backlog through the real broker by several relays: rows per second, order, gaps and losses, also under kill -9, beside the broker's client alone."`
	Load     loadCmd     `cmd:"" hidden:"" help:"Send what standard input says; the other scenarios start it."`
}

// The exit codes of the contract.
const (
	exitOK      = 0
	exitUsage   = 1
	exitInvalid = 6
)

// output is where a command writes: figures to out, progress to err.
type output struct{ out, err io.Writer }

// say tells a waiting person what is going on.
func (o output) say(format string, args ...any) {
	fmt.Fprintf(o.err, time.Now().Format("15:04:05 ")+format+"\n", args...)
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], output{os.Stdout, os.Stderr}))
}

// run is main with its surroundings as arguments.
func run(ctx context.Context, args []string, std output) int {
	parser, err := kong.New(&cli{}, kong.Name("bench"), kong.Description("Measure aivedio and its peers on this machine."),
		kong.UsageOnError(), kong.Writers(std.out, std.err), kong.BindTo(ctx, (*context.Context)(nil)), kong.Bind(std))
	if err != nil {
		fmt.Fprintln(std.err, "bench:", err)
		return exitUsage
	}
	parsed, err := parser.Parse(args)
	if err == nil {
		err = parsed.Run()
	}
	return exitCode(err, std)
}

// exitCode prints an error once and chooses the code.
func exitCode(err error, std output) int {
	var bad *invalidError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &bad):
		fmt.Fprintln(std.err, "bench:", err)
		return exitInvalid
	default:
		fmt.Fprintln(std.err, "bench:", err)
		return exitUsage
	}
}
