package pgstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"time"

	"ariga.io/atlas/sql/migrate"
	"ariga.io/atlas/sql/postgres"
	atlas "ariga.io/atlas/sql/schema"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/aivedio/aivedio/schema"
)

// PartitionDays is how many days ahead the daily partitions are made.
const PartitionDays = 7

// migrateLock is how long a process waits while another one migrates.
const migrateLock = 5 * time.Minute

// MigrateOptions says how Migrate works.
type MigrateOptions struct {
	// DryRun only reports what is pending.
	DryRun bool
	// Log gets a line per file; nil for none.
	Log *slog.Logger
}

// MigrateReport says what was done, or would be done in a dry run.
type MigrateReport struct {
	// Files are the names of the migrations, in their order.
	Files []string
	// Partitions is how many daily partitions were made.
	Partitions int
}

// Migrate brings the database to the embedded schema and makes the partitions of
// the coming days. Files are checked against atlas.sum first; each runs in a
// transaction of its own together with its revision row, unless it says
// "-- atlas:txmode none". An advisory lock lets several processes call it at once:
// one works, the others find nothing to do.
func Migrate(ctx context.Context, url string, opts MigrateOptions) (MigrateReport, error) {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return MigrateReport{}, fmt.Errorf("database URL: %w", err)
	}
	config.RuntimeParams["application_name"] = "aivedio migrate"
	db := stdlib.OpenDB(*config)
	defer db.Close()
	report, err := migrateDB(ctx, db, opts)
	if err != nil {
		return report, fmt.Errorf("migrate: %w", err)
	}
	return report, nil
}

func migrateDB(ctx context.Context, db *sql.DB, opts MigrateOptions) (report MigrateReport, err error) {
	dir, err := migrationDir()
	if err != nil {
		return report, err
	}
	driver, err := postgres.Open(db)
	if err != nil {
		return report, err
	}
	if opts.DryRun {
		files, err := pending(ctx, driver, dir, revisions{db})
		return MigrateReport{Files: names(files)}, err
	}
	unlock, err := driver.(atlas.Locker).Lock(ctx, "aivedio_migrate", migrateLock)
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	if _, err := db.ExecContext(ctx, revisionTable); err != nil {
		return report, err
	}
	files, err := pending(ctx, driver, dir, revisions{db})
	if err != nil {
		return report, err
	}
	for _, file := range files {
		if err := applyFile(ctx, db, dir, file); err != nil {
			return report, fmt.Errorf("%s: %w", file.Name(), err)
		}
		report.Files = append(report.Files, file.Name())
		if opts.Log != nil {
			opts.Log.InfoContext(ctx, "applied migration", "file", file.Name())
		}
	}
	err = db.QueryRowContext(ctx, "SELECT aivedio_make_partitions($1)", PartitionDays).Scan(&report.Partitions)
	return report, err
}

// migrationDir copies the embedded files, since the library wants a directory
// that it could write to.
func migrationDir() (migrate.Dir, error) {
	dir := &migrate.MemDir{}
	entries, err := fs.ReadDir(schema.Migrations, ".")
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		data, err := fs.ReadFile(schema.Migrations, entry.Name())
		if err != nil {
			return nil, err
		}
		if err := dir.WriteFile(entry.Name(), data); err != nil {
			return nil, err
		}
	}
	return dir, migrate.Validate(dir)
}

func pending(ctx context.Context, driver migrate.Driver, dir migrate.Dir, rrw migrate.RevisionReadWriter) ([]migrate.File, error) {
	executor, err := newExecutor(driver, dir, rrw)
	if err != nil {
		return nil, err
	}
	files, err := executor.Pending(ctx)
	if errors.Is(err, migrate.ErrNoPendingFiles) {
		return nil, nil
	}
	return files, err
}

func newExecutor(driver migrate.Driver, dir migrate.Dir, rrw migrate.RevisionReadWriter) (*migrate.Executor, error) {
	// Other schemas and extensions may live in the database: a name that is taken
	// fails by itself.
	return migrate.NewExecutor(driver, dir, rrw, migrate.WithAllowDirty(true), migrate.WithOperatorVersion("aivedio"))
}

// applyFile runs one file and its revision row, in one transaction where the
// file allows it.
func applyFile(ctx context.Context, db *sql.DB, dir migrate.Dir, file migrate.File) error {
	if noTransaction(file) {
		return execute(ctx, db, dir, file)
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := execute(ctx, tx, dir, file); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

func execute(ctx context.Context, on atlas.ExecQuerier, dir migrate.Dir, file migrate.File) error {
	driver, err := postgres.Open(on)
	if err != nil {
		return err
	}
	executor, err := newExecutor(driver, dir, revisions{on})
	if err != nil {
		return err
	}
	return executor.Execute(ctx, file)
}

func noTransaction(file migrate.File) bool {
	local, ok := file.(interface{ Directive(name string) []string })
	if !ok {
		return false
	}
	modes := local.Directive("txmode")
	return len(modes) == 1 && modes[0] == "none"
}

func names(files []migrate.File) []string {
	var out []string
	for _, f := range files {
		out = append(out, f.Name())
	}
	return out
}
