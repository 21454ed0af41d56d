package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	// peerRiver is the job queue River: what a queue in PostgreSQL does of its own,
	// without a state, an event or an outbox beside its jobs.
	// Worked while others are inserted, as River's benchmark does unless it is told
	// otherwise; peerRiverBurn is the other way, jobs that were inserted before.
	peerRiver     = "river"
	peerRiverBurn = "river_burn_down"
	riverDatabase = "river"
	// riverTime is the shortest run that says anything: it begins with an election.
	riverTime = 4 * time.Second
	// riverJobs is how many jobs per second of a part are inserted for it.
	riverJobs = 8000
)

// river is a built tools/riverbench.
type river struct {
	path     string
	database *url.URL
	commands []string
	pids     []int
}

// newRiver builds the peer into dir; one that cannot be built makes the measurement
// invalid.
func newRiver(ctx context.Context, dir string) (*river, error) {
	gomod, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return nil, fmt.Errorf("find the module: %w", err)
	}
	source := filepath.Join(filepath.Dir(strings.TrimSpace(string(gomod))), "tools", "riverbench")
	path := filepath.Join(dir, "riverbench")
	build := exec.CommandContext(ctx, "go", "build", "-o", path, ".")
	build.Dir = source
	if out, err := build.CombinedOutput(); err != nil {
		return nil, invalid("River cannot be built (leave it out with --peers): %v\n%.2000s", err, out)
	}
	return &river{path: path}, nil
}

// riverResult is what riverbench prints.
type riverResult struct {
	Jobs      int     `json:"jobs"`
	PerSecond float64 `json:"jobs_per_s"`
}

// parseRiver reads the output of a run that had to work so many jobs; 0 is any
// number.
func parseRiver(text []byte, jobs int) (figure, error) {
	var r riverResult
	if err := json.Unmarshal(text, &r); err != nil {
		return 0, fmt.Errorf("riverbench said nothing that is known: %.400q", text)
	}
	if jobs > 0 && r.Jobs != jobs || r.PerSecond <= 0 {
		return 0, fmt.Errorf("riverbench worked %d of %d jobs at %v/s", r.Jobs, jobs, r.PerSecond)
	}
	return figure(r.PerSecond), nil
}

// both measures jobs per second in both ways.
func (p *river) both(ctx context.Context, d time.Duration) (steady, burn peerRun, err error) {
	if steady, err = p.work(ctx, 0, "-duration", max(d, riverTime).String()); err != nil {
		return steady, burn, err
	}
	jobs := int(riverJobs * d.Seconds())
	burn, err = p.work(ctx, jobs, "-jobs", strconv.Itoa(jobs))
	return steady, burn, err
}

func (p *river) work(ctx context.Context, jobs int, flags ...string) (peerRun, error) {
	bare := *p.database
	bare.User = url.User(p.database.User.Username()) // the password is no part of a command line
	args := append([]string{"-database-url", bare.String()}, flags...)
	cmd := exec.CommandContext(ctx, p.path, args...)
	password, _ := p.database.User.Password()
	cmd.Env = append(os.Environ(), "PGPASSWORD="+password)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		return peerRun{}, fmt.Errorf("riverbench: %w", err)
	}
	p.pids = append(p.pids, cmd.Process.Pid)
	if line := strings.Join(append([]string{p.path}, args...), " "); !slices.Contains(p.commands, line) {
		p.commands = append(p.commands, line)
	}
	if err := cmd.Wait(); err != nil {
		return peerRun{}, invalid("riverbench: %v\n%.2000s", err, errs.String())
	}
	perSecond, err := parseRiver(out.Bytes(), jobs)
	if err != nil {
		return peerRun{}, invalid("%v", err)
	}
	return peerRun{PerSecond: perSecond}, nil
}

// report tells who took part.
func (p *river) report(r *report) {
	r.Commands = append(r.Commands, p.commands...)
	r.ran("", p.pids...)
}
