package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/aivedio/aivedio/internal/e2e/launch"
)

// profileCmd says where the time goes. It is no measurement: the figures of a run that
// is looked at so closely are not comparable with others.
type profileCmd struct {
	Seconds  int `default:"10" help:"How long each part runs."`
	Projects int `default:"500" help:"Projects, each with a stream of its own."`
	Conns    int `default:"256" help:"Deliveries that are under way at once."`
	Lines    int `default:"25" help:"Lines of each list."`
}

// Run prints the functions and the statements that take the most, of each role alone
// and of all together.
func (cmd profileCmd) Run(ctx context.Context, std output) (err error) {
	if cmd.Seconds < 1 || cmd.Projects < 1 || cmd.Conns < 1 || cmd.Lines < 1 {
		return errors.New("at least one second, project, connection and line are needed")
	}
	p := &profile{cmd: cmd, std: std}
	dir, remove, err := scratch()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close(), remove()) }()
	if err := p.run(ctx, dir); err != nil {
		std.say("%s", p.complaints())
		return err
	}
	return nil
}

type profile struct {
	bed
	cmd profileCmd
	std output
}

func (p *profile) run(ctx context.Context, dir string) error {
	d := time.Duration(p.cmd.Seconds) * time.Second
	err := p.open(ctx, p.std, dir, bedSpec{
		projects: p.cmd.Projects, tasks: int(tasksPerSecond * d.Seconds()), conns: p.cmd.Conns,
		settings: map[string]string{"shared_preload_libraries": "pg_stat_statements", "pg_stat_statements.max": "1000"},
	})
	if err != nil {
		return err
	}
	if err := p.cluster.exec(ctx, oursDatabase, "CREATE EXTENSION pg_stat_statements"); err != nil {
		return err
	}
	s := p.system
	for _, role := range []struct {
		name, roles string
		process     **launch.Process
		addr        *string
	}{{"callback", "callback", &s.callback, &s.callbackAddr}, {"process", "process", &s.process, new(string)}, {"delivery", "relay,dispatch,gateway", &s.delivery, &s.deliveryAddr}} {
		*role.process, *role.addr, err = s.serve(role.name, role.roles, launch.Deployment{Database: p.cluster.URL(oursDatabase)}, "AIVEDIO_CPU_PROFILE="+p.file(role.name))
		if err != nil {
			return err
		}
	}
	fmt.Fprintf(p.std.out, "%s\n", thisMachine())
	for _, part := range []struct {
		name  string
		roles []string
		run   func(context.Context) error
	}{
		{"intake: the callback role alone", []string{"callback"}, func(ctx context.Context) error { _, err := p.intake(ctx, d); return err }},
		{"drain: the process role alone", []string{"process"}, func(ctx context.Context) error { _, err := p.drain(ctx); return err }},
		{"together: all roles under full load", []string{"callback", "process", "delivery"}, func(ctx context.Context) error {
			_, err := p.together(ctx, order{Conns: p.conns, For: d})
			return err
		}},
	} {
		p.std.say("%s", part.name)
		if _, err := p.observer.conn.Exec(ctx, "SELECT pg_stat_statements_reset()"); err != nil {
			return err
		}
		if err := part.run(ctx); err != nil {
			return err
		}
		fmt.Fprintf(p.std.out, "\n== %s ==\n", part.name)
		for _, role := range part.roles {
			if err := p.functions(ctx, role); err != nil {
				return err
			}
		}
		if err := p.statements(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (p *profile) file(role string) string { return filepath.Join(p.dir, role+".pprof") }

// functions prints the top of a role's CPU profile.
func (p *profile) functions(ctx context.Context, role string) error {
	cmd := exec.CommandContext(ctx, "go", "tool", "pprof", "-top", "-cum", "-nodecount", strconv.Itoa(p.cmd.Lines), p.file(role))
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("go tool pprof: %w", err)
	}
	_, rest, _ := strings.Cut(string(out), "Duration:") // what stands before it is the file
	_, err = fmt.Fprintf(p.std.out, "\nCPU of the %s role\nDuration:%s", role, rest)
	return err
}

// statements prints what the server spent most of its time on, as the product's roles
// asked for it.
func (p *profile) statements(ctx context.Context) error {
	rows, err := p.observer.conn.Query(ctx, `SELECT calls, rows, total_exec_time AS ms, total_exec_time * 1000 / greatest(rows, 1) AS us_per_row,
			wal_bytes / greatest(calls, 1) AS wal, regexp_replace(query, '\s+', ' ', 'g') AS text
		FROM pg_stat_statements WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database()) AND query NOT LIKE '%pg_stat_statements%'
		ORDER BY total_exec_time DESC LIMIT $1`, p.cmd.Lines)
	if err != nil {
		return fmt.Errorf("statements: %w", err)
	}
	t := tabwriter.NewWriter(p.std.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "\ncalls\trows\tms\tµs per row\tWAL bytes per call\tstatement\t")
	var calls, n int64
	var ms, us, wal float64
	var text string
	if _, err := pgx.ForEachRow(rows, []any{&calls, &n, &ms, &us, &wal, &text}, func() error {
		_, err := fmt.Fprintf(t, "%d\t%d\t%.0f\t%.1f\t%.0f\t%.110s\t\n", calls, n, ms, us, wal, text)
		return err
	}); err != nil {
		return fmt.Errorf("statements: %w", err)
	}
	return t.Flush()
}
