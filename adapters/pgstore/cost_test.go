package pgstore_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/aivedio/aivedio/adapters/pgstore"
	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/internal/testenv"
	"github.com/aivedio/aivedio/ports"
)

// BenchmarkCost measures what a delivery and a transition cost in CPU time of the
// server and of this process, and in bytes of WAL, over many projects and in one
// hot project. CPU time says the same on a busy machine as on a quiet one, which a
// rate does not. One iteration is all of it, once: run with -benchtime 1x.
func BenchmarkCost(b *testing.B) {
	server := testenv.PostgresServer(b, testenv.PGOptions{Fsync: true, Extra: map[string]string{"shared_buffers": "1GB", "max_wal_size": "4GB"}})
	for _, projects := range []int{500, 1} {
		b.Run(fmt.Sprintf("projects=%d", projects), func(b *testing.B) {
			for i := range b.N {
				benchCost(b, server, server.Database(fmt.Sprintf("cost_%d_%d_%d", projects, b.N, i)), projects)
			}
		})
	}
}

// benchCost raises the progress of every task a few times: what most deliveries do.
func benchCost(b *testing.B, server *testenv.PGServer, url string, projects int) {
	b.Helper()
	const tasks, batch, workers, volleys = 20_000, 128, 2, 3
	if _, err := pgstore.Migrate(b.Context(), url, pgstore.MigrateOptions{}); err != nil {
		b.Fatal(err)
	}
	seed(b, url, projects, tasks)
	var ahead atomic.Int64
	store := open(b, pgstore.Config{URL: url, Now: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }})
	conn, err := pgx.Connect(b.Context(), url)
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(b.Context())) //nolint:errcheck // only read
	var intake, digest cost
	for v := range volleys + 1 { // the first one warms up
		rows := progressDeliveries(tasks, 10*v)
		before := readCost(b, conn, server.PID())
		receiveAll(b, store, rows, 256)
		between := readCost(b, conn, server.PID())
		if applied := processAll(b, store, batch, workers); applied != tasks {
			b.Fatalf("%d transitions, want %d", applied, tasks)
		}
		if v > 0 {
			intake, digest = intake.plus(between.minus(before)), digest.plus(readCost(b, conn, server.PID()).minus(between))
		} else { // a poller would have kept the next query in the future
			mustExec(b, conn, "UPDATE task_attempts SET next_poll_at = now() + interval '1 hour'", "VACUUM ANALYZE")
		}
		ahead.Add(int64(2 * domain.DefaultPolicy().ProgressGap))
	}
	const n = volleys * tasks
	intake.report(b, n, "ack")
	digest.report(b, n, "transition")
}

// progressDeliveries are callbacks of 600 bytes, one for each task, with the ids
// that vendors draw at random.
func progressDeliveries(tasks, percent int) []ports.InboxRow {
	rows := benchDeliveries(tasks, domain.ObservedRunning)
	for i := range rows {
		rows[i].DedupKey = fmt.Sprintf("main|authentic||msg_%024d", rand.Int64N(9e18))
		rows[i].ProviderEventID = rows[i].DedupKey[17:]
		rows[i].Payload[len(domain.ObservedRunning)] = byte(percent)
	}
	return rows
}

// cost is CPU time and written bytes.
type cost struct {
	server, own time.Duration
	wal         int64
}

func (c cost) minus(d cost) cost { return cost{c.server - d.server, c.own - d.own, c.wal - d.wal} }
func (c cost) plus(d cost) cost  { return cost{c.server + d.server, c.own + d.own, c.wal + d.wal} }

func (c cost) report(b *testing.B, n int, unit string) {
	per := func(v float64) float64 { return v / float64(n) }
	b.ReportMetric(per(float64(c.server.Microseconds())), "server-µs/"+unit)
	b.ReportMetric(per(float64(c.own.Microseconds())), "own-µs/"+unit)
	b.ReportMetric(per(float64(c.wal)), "wal-B/"+unit)
}

func readCost(b *testing.B, conn *pgx.Conn, postmaster int) cost {
	b.Helper()
	var c cost
	if err := conn.QueryRow(b.Context(), "SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint").Scan(&c.wal); err != nil {
		b.Fatal(err)
	}
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	c.own, c.server = time.Duration(usage.Utime.Nano()+usage.Stime.Nano()), serverTime(postmaster)
	return c
}

// serverTime adds up the CPU of the postmaster, its children and those that it has
// waited for; 0 where there is no /proc.
func serverTime(postmaster int) time.Duration {
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	ticks := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		f := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		parent, _ := strconv.Atoi(f[1])
		if pid != postmaster && parent != postmaster {
			continue
		}
		for _, field := range f[11:15] { // user, system, and both of the children waited for
			n, _ := strconv.Atoi(field)
			ticks += n
		}
	}
	return time.Duration(ticks) * (time.Second / 100) // USER_HZ is 100 everywhere that Go runs on Linux
}

func mustExec(b *testing.B, conn *pgx.Conn, statements ...string) {
	b.Helper()
	for _, s := range statements {
		if _, err := conn.Exec(b.Context(), s); err != nil {
			b.Fatal(err)
		}
	}
}
