package main

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"time"

	"github.com/jackc/pgx/v5"
)

// The peers.
const (
	// peerInsert inserts single rows into an inbox like ours.
	peerInsert = "pgbench"
	// peerNaive does the state transition one by one.
	peerNaive = "naive"
)

// The scripts of the peers.
var (
	//go:embed insert.pgbench
	insertScript string
	//go:embed naive.pgbench
	naiveScript string
	//go:embed fill.sql
	fillSQL string
)

// insertClients is the number of connections of the insert that counts,
// otherClients are those that are measured, too; naiveClients is that of the
// transitions.
const insertClients = 32

var otherClients = []int{8, 64}

const naiveClients = 32

// pgbench runs scripts against the peer's database.
type pgbench struct {
	path string
	dir  string
	url  *url.URL
	like inboxRow

	commands []string
	pids     []int
}

// newPgbench finds the program; without it nothing can be compared.
func newPgbench(dir, database string) (*pgbench, error) {
	u, err := url.Parse(database)
	if err != nil {
		return nil, err
	}
	// The newest installation first; the pgbench in PATH may be a wrapper.
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/pgbench")
	if err != nil {
		return nil, err
	}
	slices.Sort(found)
	if len(found) > 0 {
		return &pgbench{path: found[len(found)-1], dir: dir, url: u}, nil
	}
	path, err := exec.LookPath("pgbench")
	if err != nil {
		return nil, invalid("pgbench is not installed (Debian: postgresql-contrib; or leave it out with --peers '')")
	}
	return &pgbench{path: path, dir: dir, url: u}, nil
}

// prepare writes the scripts for rows like the one that the product stored.
func (b *pgbench) prepare(like inboxRow) error {
	b.like = like
	// A colon would begin a variable of pgbench, even within quotes.
	like.DedupPrefix = strings.ReplaceAll(like.DedupPrefix, ":", `\x3a`)
	for name, text := range map[string]string{peerInsert: insertScript, peerNaive: naiveScript} {
		var out bytes.Buffer
		t, err := template.New(name).Parse(text)
		if err == nil {
			err = t.Execute(&out, like)
		}
		if err == nil {
			err = os.WriteFile(b.file(name), out.Bytes(), 0o644)
		}
		if err != nil {
			return fmt.Errorf("script of %s: %w", name, err)
		}
	}
	return nil
}

func (b *pgbench) file(name string) string { return filepath.Join(b.dir, name+".pgbench") }

// likeOurs makes the peer whose rows are as long as one that the product has
// stored on this bed, for a database of the cluster.
func (b *bed) likeOurs(ctx context.Context, database string) (*pgbench, error) {
	p, err := newPgbench(b.dir, b.cluster.URL(database))
	if err != nil {
		return nil, err
	}
	like, err := storedRow(ctx, b.observer)
	if err != nil {
		return nil, err
	}
	return p, p.prepare(like)
}

// inboxRow is a row as the product stored it: the peer's rows are as long.
type inboxRow struct {
	PayloadHex, HashHex, TokenHex, KeyVersion, PayloadKeyVersion, DedupPrefix string
}

// storedRow reads one that the product has written.
func storedRow(ctx context.Context, o *observer) (inboxRow, error) {
	var r inboxRow
	var dedup, event string
	err := o.conn.QueryRow(ctx, `SELECT encode(payload, 'hex'), encode(payload_hash, 'hex'), encode(token_hash, 'hex'),
		signature_key_version, payload_key_version, dedup_key, provider_event_id FROM provider_callback_inbox LIMIT 1`).
		Scan(&r.PayloadHex, &r.HashHex, &r.TokenHex, &r.KeyVersion, &r.PayloadKeyVersion, &dedup, &event)
	if err != nil {
		return r, fmt.Errorf("the row that the peer copies: %w", err)
	}
	r.DedupPrefix = strings.TrimSuffix(dedup, event)
	return r, nil
}

// run runs a script for the time and returns transactions per second without the
// time to connect, and their number.
func (b *pgbench) run(ctx context.Context, name string, clients int, d time.Duration) (figure, int, error) {
	port := b.url.Port()
	args := []string{
		"-h", b.url.Hostname(), "-p", port, "-U", b.url.User.Username(), "-n", "-M", "prepared", "-c", strconv.Itoa(clients), "-j", "2",
		"-T", strconv.Itoa(max(int(d.Round(time.Second)/time.Second), 1)), "-f", b.file(name), strings.TrimPrefix(b.url.Path, "/"),
	}
	cmd := exec.CommandContext(ctx, b.path, args...)
	password, _ := b.url.User.Password()
	cmd.Env = append(os.Environ(), "PGPASSWORD="+password, "PGSSLMODE=disable")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		return 0, 0, fmt.Errorf("pgbench: %w", err)
	}
	b.note(strings.Join(append([]string{b.path}, args...), " "), cmd.Process.Pid)
	if err := cmd.Wait(); err != nil {
		return 0, 0, invalid("pgbench %s: %v\n%.2000s", name, err, errs.String())
	}
	return parsePgbench(out.String())
}

// report tells who took part.
func (b *pgbench) report(r *report) {
	r.Commands = append(r.Commands, b.commands...)
	r.ran("", b.pids...)
}

func (b *pgbench) note(command string, pid int) {
	if !slices.Contains(b.commands, command) {
		b.commands = append(b.commands, command)
	}
	b.pids = append(b.pids, pid)
}

var (
	tpsLine   = regexp.MustCompile(`(?m)^tps = ([0-9.]+) \(without initial connection time\)`)
	countLine = regexp.MustCompile(`(?m)^number of transactions actually processed: ([0-9]+)`)
)

// parsePgbench reads the summary of a run.
func parsePgbench(text string) (perSecond figure, count int, err error) {
	tps, n := tpsLine.FindStringSubmatch(text), countLine.FindStringSubmatch(text)
	if n != nil && n[1] == "0" {
		return 0, 0, nil // it then names no rate: all of its time went into connections
	}
	if tps == nil || n == nil {
		return 0, 0, fmt.Errorf("pgbench said nothing that is known: %.400s", text)
	}
	f, errF := strconv.ParseFloat(tps[1], 64)
	count, errN := strconv.Atoi(n[1])
	if errF != nil || errN != nil {
		return 0, 0, fmt.Errorf("pgbench gave numbers that are none: %s, %s", tps[1], n[1])
	}
	return figure(f), count, nil
}

// insert measures single-row inserts.
func (b *pgbench) insert(ctx context.Context, clients int, d time.Duration) (peerRun, error) {
	perSecond, _, err := b.run(ctx, peerInsert, clients, d)
	return peerRun{PerSecond: perSecond, Clients: clients}, err
}

// naiveRows is how many deliveries per second of a round wait for the naive peer:
// more than it can do.
const naiveRows = 8000

// naive fills the peer's inbox and measures transitions one by one. The count
// comes from the database, as ours does.
func (b *pgbench) naive(ctx context.Context, d time.Duration) (peerRun, error) {
	conn, err := pgx.Connect(ctx, b.url.String())
	if err != nil {
		return peerRun{}, fmt.Errorf("connect to %s: %w", peerDatabase, err)
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // every statement has been answered
	if err := b.fill(ctx, conn, int(naiveRows*d.Seconds())); err != nil {
		return peerRun{}, err
	}
	const events = "SELECT coalesce(sum(last_event_id), 0)::bigint FROM project_streams"
	var before, after int
	if err := conn.QueryRow(ctx, events).Scan(&before); err != nil {
		return peerRun{}, err
	}
	perSecond, count, err := b.run(ctx, peerNaive, naiveClients, d)
	if err != nil {
		return peerRun{}, err
	}
	if err := conn.QueryRow(ctx, events).Scan(&after); err != nil {
		return peerRun{}, err
	}
	if after-before != count {
		return peerRun{}, invalid("the naive peer claims %d transitions and made %d events", count, after-before)
	}
	return peerRun{PerSecond: perSecond, Clients: naiveClients}, nil
}

// fill replaces what waits in the peer's inbox by a delivery for each of that
// many tasks.
func (b *pgbench) fill(ctx context.Context, conn *pgx.Conn, rows int) error {
	if _, err := conn.Exec(ctx, "TRUNCATE inbox_queue"); err != nil {
		return fmt.Errorf("empty the peer's queue: %w", err)
	}
	l := b.like
	if _, err := conn.Exec(ctx, fillSQL, rows, l.DedupPrefix, l.HashHex, l.PayloadHex, l.KeyVersion, l.PayloadKeyVersion); err != nil {
		return fmt.Errorf("fill the peer's inbox: %w", err)
	}
	if _, err := conn.Exec(ctx, "VACUUM ANALYZE inbox_queue"); err != nil {
		return fmt.Errorf("fill the peer's inbox: %w", err)
	}
	return nil
}
