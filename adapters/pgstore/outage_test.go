package pgstore_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/aivedio/aivedio/adapters/pgstore"
	"github.com/aivedio/aivedio/internal/testenv"
	"github.com/aivedio/aivedio/ports"
)

// TestOutage: while the server is away calls fail as unavailable, and the same
// store works when it is back.
func TestOutage(t *testing.T) {
	t.Parallel()
	server := testenv.PostgresServer(t, testenv.PGOptions{Fsync: true})
	url := server.Database("outage")
	if _, err := pgstore.Migrate(t.Context(), url, pgstore.MigrateOptions{}); err != nil {
		t.Fatal(err)
	}
	s := openShop(t, pgstore.Config{URL: url})
	p := s.submitted(t)
	before := s.version(t, p)
	row := s.delivery(p, "one")
	server.Stop()
	calls := map[string]func() error{
		"Receive": func() error { _, err := s.Receive(t.Context(), []ports.InboxRow{row}); return err },
		"Process": func() error {
			_, err := s.Process(t.Context(), ports.ProcessParams{Limit: 1, Now: time.Now()}, decodeRunning)
			return err
		},
		"Apply":  func() error { _, err := s.Apply(t.Context(), []ports.Item{running(p)}); return err },
		"Create": func() error { _, err := s.Create(t.Context(), s.params()); return err },
		"Head":   func() error { _, err := s.Head(t.Context(), s.project); return err },
		"Task":   func() error { _, _, err := s.Task(t.Context(), s.project, p.Task.ID); return err },
		"Ping":   func() error { return s.Ping(t.Context()) },
	}
	for name, call := range calls {
		if err := call(); !errors.Is(err, ports.ErrUnavailable) {
			t.Errorf("%s without a server: %v, want ErrUnavailable", name, err)
		}
	}
	server.Start()
	if got := s.version(t, p); got != before {
		t.Errorf("version %d after the outage, want %d", got, before)
	}
	for name, call := range calls {
		if err := call(); err != nil {
			t.Errorf("%s after the outage: %v", name, err)
		}
	}
}

// TestRefusesLazyCommits: a server that acknowledges before it stores is refused.
func TestRefusesLazyCommits(t *testing.T) {
	t.Parallel()
	db := database(t)
	conn := connect(t, db.URL)
	if _, err := conn.Exec(t.Context(), fmt.Sprintf("ALTER DATABASE %s SET synchronous_commit = off", pgx.Identifier{db.Name}.Sanitize())); err != nil {
		t.Fatal(err)
	}
	if _, err := pgstore.Open(t.Context(), pgstore.Config{URL: db.URL, Keyring: keyring}); err == nil || !strings.Contains(err.Error(), "synchronous_commit") {
		t.Errorf("Open: %v, want a refusal of synchronous_commit=off", err)
	}
}

// TestMissingPartition: when the sweep did not run for a week, the store makes the
// partition itself.
func TestMissingPartition(t *testing.T) {
	t.Parallel()
	db := database(t)
	s := openShop(t, pgstore.Config{URL: db.URL})
	p := s.submitted(t)
	before := s.version(t, p)
	admin := connect(t, db.URL)
	day := time.Now().UTC().AddDate(0, 0, 3).Format("20060102")
	if _, err := admin.Exec(t.Context(), "DROP TABLE task_events_p"+day+", observations_p"+day); err != nil {
		t.Fatal(err)
	}
	late := open(t, pgstore.Config{URL: db.URL, Now: func() time.Time { return time.Now().AddDate(0, 0, 3) }})
	results, err := late.Apply(t.Context(), []ports.Item{running(p)})
	if err != nil || results[0].Err != nil {
		t.Fatal(results, err)
	}
	if got := s.version(t, p); got != before+1 {
		t.Errorf("version %d, want %d", got, before+1)
	}
}

// TestPartitions: the coming days are there, and days past the retention go.
func TestPartitions(t *testing.T) {
	t.Parallel()
	db := database(t)
	s, admin := openShop(t, pgstore.Config{URL: db.URL, EventRetention: 48 * time.Hour}), connect(t, db.URL)
	if days, err := s.PartitionDaysAhead(t.Context()); err != nil || days != pgstore.PartitionDays {
		t.Errorf("%d days ahead, %v; want %d", days, err, pgstore.PartitionDays)
	}
	old := time.Now().UTC().AddDate(0, 0, -3)
	sql := fmt.Sprintf("CREATE TABLE task_events_p%s PARTITION OF task_events FOR VALUES FROM ('%s+00') TO ('%s+00')",
		old.Format("20060102"), old.Format(time.DateOnly), old.AddDate(0, 0, 1).Format(time.DateOnly))
	if _, err := admin.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
	before := partitions(t, admin)
	if _, err := s.CleanExpired(t.Context(), time.Now(), 100); err != nil {
		t.Fatal(err)
	}
	if after := partitions(t, admin); after != before-1 {
		t.Errorf("%d partitions after the sweep, want %d", after, before-1)
	}
	p := s.submitted(t)
	if got := s.version(t, p); got != 2 {
		t.Errorf("version %d, want 2", got)
	}
}

func partitions(t *testing.T, conn *pgx.Conn) (n int) {
	t.Helper()
	if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM pg_inherits").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
