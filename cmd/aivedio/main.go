// Command aivedio is the status control plane of AI video generation: the
// server in all its roles, and the command line of its users.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/aivedio/aivedio/ports"
)

// cli is the command line.
type cli struct {
	Dev      devCmd      `cmd:"" help:"Run everything in one process: PostgreSQL, all roles, a simulated vendor, a demo project and a key."`
	Serve    serveCmd    `cmd:"" help:"Run the roles of one process."`
	Migrate  migrateCmd  `cmd:"" help:"Bring the database to this version's schema."`
	Simulate simulateCmd `cmd:"" help:"Run a simulated vendor that speaks the real wire shapes, with faults."`
	Task     taskCmd     `cmd:"" help:"Submit, watch and steer tasks."`
	Doctor   doctorCmd   `cmd:"" help:"Check the invariants against a database; exit 5 when one is broken."`
	Config   configCmd   `cmd:"" help:"Check the configuration."`
	Key      keyCmd      `cmd:"" help:"Create, list and revoke API keys."`
	Credit   creditCmd   `cmd:"" help:"Grant credits to a tenant and show its balance."`
	Inbox    inboxCmd    `cmd:"" help:"List, show and requeue webhook deliveries that were given up or wait."`
	Conflict conflictCmd `cmd:"" help:"List, show and resolve contradictions."`
	Case     caseCmd     `cmd:"" help:"List, show and resolve what needs a person."`
	Outbox   outboxCmd   `cmd:"" help:"Show what waits for the bus, and release parked projects."`
	Provider providerCmd `cmd:"" help:"Show the vendors and their capabilities."`
	Plan     planCmd     `cmd:"" help:"Calculate what a load takes: tasks, events, queries, streams, memory, processes and machines, each with its formula."`
	Version  versionCmd  `cmd:"" help:"Print the version."`
}

// The exit codes of the contract.
const (
	exitOK          = 0
	exitUsage       = 1
	exitFailed      = 2
	exitCanceled    = 3
	exitRunning     = 4
	exitViolations  = 5
	exitUnmeasured  = 6
	exitInterrupted = 130
)

// exitError carries an exit code to main; a nil Err prints nothing.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	dropEmptyVariables()
	os.Exit(run(ctx, os.Args[1:], streams{out: os.Stdout, err: os.Stderr}))
}

// dropEmptyVariables makes an empty variable mean what an absent one does: as a
// path it would be the current folder.
func dropEmptyVariables() {
	for _, kv := range os.Environ() {
		if name, value, _ := strings.Cut(kv, "="); value == "" && strings.HasPrefix(name, "AIVEDIO_") {
			_ = os.Unsetenv(name) // its only fault is a bad name
		}
	}
}

// run is main with its surroundings as arguments.
func run(ctx context.Context, args []string, std streams) int {
	var c cli
	parser, err := kong.New(&c,
		kong.Name("aivedio"),
		kong.Description("The status control plane of AI video generation."),
		kong.UsageOnError(),
		kong.Writers(std.out, std.err),
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Bind(std),
		kong.Vars{"scopes": words(ports.Scopes())},
	)
	if err != nil {
		fmt.Fprintln(std.err, "aivedio:", err)
		return exitUsage
	}
	parsed, err := parser.Parse(args)
	if err != nil {
		fmt.Fprintln(std.err, "aivedio:", usageFault(err))
		return exitUsage
	}
	return exitCode(parsed.Run(), std)
}

// exitCode prints an error once and chooses the code.
func exitCode(err error, std streams) int {
	var exit *exitError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &exit):
		if exit.err != nil {
			fmt.Fprintln(std.err, "aivedio:", plain(exit.err))
		}
		return exit.code
	default:
		fmt.Fprintln(std.err, "aivedio:", plain(err))
		return exitUsage
	}
}
