package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/aivedio/aivedio/adapters/pgstore"
	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/internal/e2e/backlog"
	"github.com/aivedio/aivedio/internal/e2e/backlog/topic"
	"github.com/aivedio/aivedio/internal/e2e/launch"
	"github.com/aivedio/aivedio/internal/testenv"
	"github.com/aivedio/aivedio/internal/wire"
)

// relayTimeout bounds the draining of one backlog.
const relayTimeout = 2 * time.Minute

// relayRig is a backlog, a broker and relays.
type relayRig struct {
	t      *testing.T
	db     *pgx.Conn
	rocket *testenv.RocketMQServer
	topic  string
	want   map[domain.ProjectID]int64
	rows   int
	relays []*launch.Process
	rng    *rand.Rand
}

// newRelayRig fills the outbox over many projects and starts the relays.
func newRelayRig(t *testing.T, relays int, shape backlog.Shape) *relayRig {
	t.Helper()
	Binary(t)
	seed := runSeed(t)
	t.Logf("seed %d", seed)
	r := &relayRig{t: t, rocket: testenv.RocketMQ(t), topic: "relay-" + strings.ReplaceAll(wire.NewID().String(), "-", ""), rng: rand.New(rand.NewPCG(seed, 7))}
	url := testenv.EmptyPostgres(t).URL
	if _, err := pgstore.Migrate(t.Context(), url, pgstore.MigrateOptions{}); err != nil {
		t.Fatal(err)
	}
	var err error
	if r.db, err = pgx.Connect(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.db.Close(context.Background()) }) // nothing is under way
	if r.want, err = backlog.Fill(t.Context(), r.db, shape); err != nil {
		t.Fatal(err)
	}
	r.rows = shape.Rows
	config := Deploy(t, launch.Deployment{
		Secrets: launch.NewSecrets(), Database: url, NameServers: []string{r.rocket.NameServer}, Topic: r.topic,
		Vendor: "http://127.0.0.1:9", Public: "http://127.0.0.1:9",
	})
	for i := range relays {
		p := launch.New(launch.Spec{
			Name: fmt.Sprintf("relay-%d", i+1), Path: Binary(t), Env: []string{"GOMAXPROCS=1", "AIVEDIO_DATABASE_CONNS=4"},
			Args: []string{"serve", "--config", config, "--listen", "127.0.0.1:0", "--roles", "relay"},
		})
		r.relays = append(r.relays, p)
		t.Cleanup(func() {
			if err := p.Kill(); err != nil {
				t.Error(err)
			}
			if t.Failed() {
				t.Logf("output of %s:\n%s", p.Name(), p.Tail(4<<10))
			}
		})
		r.start(p)
	}
	return r
}

func (r *relayRig) start(p *launch.Process) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), startTimeout)
	defer cancel()
	if err := p.Start(ctx); err != nil {
		r.t.Fatal(err)
	}
}

func (r *relayRig) any() *launch.Process { return r.relays[r.rng.IntN(len(r.relays))] }

// until waits for the backlog to be down to so many rows.
func (r *relayRig) until(rows int) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), relayTimeout)
	defer cancel()
	err := await(ctx, fmt.Sprintf("the backlog to fall to %d rows", rows), func() (bool, error) {
		left, err := backlog.Left(ctx, r.db)
		return left <= rows, err
	})
	if err != nil {
		r.t.Fatal(err)
	}
}

// audit reads the topic with a client of its own.
func (r *relayRig) audit() backlog.Finding {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), relayTimeout)
	defer cancel()
	a := backlog.NewAudit(r.want)
	if err := topic.Read(ctx, r.rocket.NameServer, r.topic, r.topic+"-audit", int64(r.rows), a); err != nil {
		r.t.Error(err)
	}
	f := a.Finding()
	r.t.Logf("%d events: %d messages in %v, %d repeats", r.rows, f.Messages, f.Took, f.Repeats)
	if f.Lost != 0 || f.Violations() != 0 {
		r.t.Errorf("%+v", f)
	}
	return f
}

// TestRelaysUnderKills drains a backlog through a real broker with four relay
// processes. They are killed, one is frozen for longer than its lease while another
// takes its shards, and the broker is stopped and started: every event arrives, and
// the first occurrences of each project are in order and without a gap.
func TestRelaysUnderKills(t *testing.T) {
	r := newRelayRig(t, 4, backlog.Shape{Projects: 150, Rows: 60_000})
	for n := range 5 { // kills at moments of the backlog, so that they mean the same on a slow machine
		r.until(r.rows - 3_000*(n+1) - r.rng.IntN(2_000))
		p := r.any()
		if err := p.Kill(); err != nil {
			t.Fatal(err)
		}
		r.start(p)
	}
	frozen := r.freeze()
	if r.rocket.Own() {
		r.rocket.StopBroker()
		r.rocket.StartBroker()
	}
	r.until(0)
	r.thaw(frozen)
	f := r.audit()
	if f.Messages < r.rows {
		t.Errorf("%d messages of %d events", f.Messages, r.rows)
	}
}

// freeze stops a relay that holds shards, in whatever it does, until others hold
// them.
func (r *relayRig) freeze() *launch.Process {
	r.t.Helper()
	p := r.any()
	if err := syscall.Kill(p.PID(), syscall.SIGSTOP); err != nil {
		r.t.Fatal(err)
	}
	return p
}

// thaw lets it go on after its lease, and waits for another end of the backlog: what
// it does then is in the topic.
func (r *relayRig) thaw(p *launch.Process) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), relayTimeout)
	defer cancel()
	err := await(ctx, "the frozen relay's lease to end", func() (bool, error) {
		var live int
		err := r.db.QueryRow(ctx, "SELECT count(*) FROM relay_owners WHERE live_until > now()").Scan(&live)
		return live < len(r.relays), err
	})
	if err != nil {
		r.t.Fatal(err)
	}
	if err := syscall.Kill(p.PID(), syscall.SIGCONT); err != nil {
		r.t.Fatal(err)
	}
	err = await(ctx, "the relay to hold shards again", func() (bool, error) {
		var holders, least int
		err := r.db.QueryRow(ctx, "SELECT count(*), coalesce(min(n), 0) FROM (SELECT count(*) AS n FROM relay_shards WHERE lease_until > now() GROUP BY owner) s").Scan(&holders, &least)
		return holders == len(r.relays) && least == 64/len(r.relays), err
	})
	if err != nil {
		r.t.Fatal(err)
	}
}
