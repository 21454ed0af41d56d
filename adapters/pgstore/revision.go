package pgstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"ariga.io/atlas/sql/migrate"
	atlas "ariga.io/atlas/sql/schema"
)

// revisionTable holds what was applied. It is made here and not by a migration,
// since the first migration already needs it.
const revisionTable = `CREATE TABLE IF NOT EXISTS aivedio_schema_revisions (
	version          TEXT        PRIMARY KEY,
	description      TEXT        NOT NULL,
	type             BIGINT      NOT NULL,
	applied          BIGINT      NOT NULL,
	total            BIGINT      NOT NULL,
	executed_at      TIMESTAMPTZ NOT NULL,
	execution_time   BIGINT      NOT NULL,
	error            TEXT        NOT NULL,
	error_stmt       TEXT        NOT NULL,
	hash             TEXT        NOT NULL,
	partial_hashes   JSON        NOT NULL,
	operator_version TEXT        NOT NULL
)`

const revisionColumns = `version, description, type, applied, total, executed_at, execution_time, error, error_stmt, hash, partial_hashes, operator_version`

// revisions keeps Atlas's record of applied files in a table of the product's
// own, inside the transaction of the file.
type revisions struct{ db atlas.ExecQuerier }

var _ migrate.RevisionReadWriter = revisions{}

// Ident names the table.
func (revisions) Ident() *migrate.TableIdent {
	return &migrate.TableIdent{Name: "aivedio_schema_revisions"}
}

// ReadRevisions returns all rows in the order of their versions; none when the
// table does not exist yet, as in a dry run on an empty database.
func (r revisions) ReadRevisions(ctx context.Context) ([]*migrate.Revision, error) {
	exists, err := r.exists(ctx)
	if err != nil || !exists {
		return nil, err
	}
	return r.read(ctx, "SELECT "+revisionColumns+" FROM aivedio_schema_revisions ORDER BY version")
}

// ReadRevision returns one row, or migrate.ErrRevisionNotExist.
func (r revisions) ReadRevision(ctx context.Context, version string) (*migrate.Revision, error) {
	found, err := r.read(ctx, "SELECT "+revisionColumns+" FROM aivedio_schema_revisions WHERE version = $1", version)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, migrate.ErrRevisionNotExist
	}
	return found[0], nil
}

// WriteRevision inserts or replaces a row.
func (r revisions) WriteRevision(ctx context.Context, rev *migrate.Revision) error {
	hashes, err := json.Marshal(rev.PartialHashes)
	if err != nil {
		return fmt.Errorf("encode the partial hashes: %w", err)
	}
	_, err = r.db.ExecContext(ctx, `INSERT INTO aivedio_schema_revisions (`+revisionColumns+`)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
		ON CONFLICT (version) DO UPDATE SET description = excluded.description, type = excluded.type, applied = excluded.applied,
			total = excluded.total, executed_at = excluded.executed_at, execution_time = excluded.execution_time,
			error = excluded.error, error_stmt = excluded.error_stmt, hash = excluded.hash,
			partial_hashes = excluded.partial_hashes, operator_version = excluded.operator_version`,
		rev.Version, rev.Description, int64(rev.Type), rev.Applied, rev.Total, rev.ExecutedAt, int64(rev.ExecutionTime),
		rev.Error, rev.ErrorStmt, rev.Hash, string(hashes), rev.OperatorVersion)
	return err
}

// DeleteRevision removes a row.
func (r revisions) DeleteRevision(ctx context.Context, version string) error {
	_, err := r.db.ExecContext(ctx, "DELETE FROM aivedio_schema_revisions WHERE version = $1", version)
	return err
}

func (r revisions) exists(ctx context.Context) (found bool, err error) {
	rows, err := r.db.QueryContext(ctx, "SELECT to_regclass('aivedio_schema_revisions') IS NOT NULL")
	if err != nil {
		return false, err
	}
	defer rows.Close()
	for rows.Next() {
		if err := rows.Scan(&found); err != nil {
			return false, err
		}
	}
	return found, rows.Err()
}

func (r revisions) read(ctx context.Context, query string, args ...any) ([]*migrate.Revision, error) {
	rows, err := r.db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []*migrate.Revision
	for rows.Next() {
		rev, err := scanRevision(rows)
		if err != nil {
			return nil, err
		}
		out = append(out, rev)
	}
	return out, rows.Err()
}

func scanRevision(rows *sql.Rows) (*migrate.Revision, error) {
	var rev migrate.Revision
	var kind, duration int64
	var hashes string
	err := rows.Scan(&rev.Version, &rev.Description, &kind, &rev.Applied, &rev.Total, &rev.ExecutedAt, &duration,
		&rev.Error, &rev.ErrorStmt, &rev.Hash, &hashes, &rev.OperatorVersion)
	if err != nil {
		return nil, err
	}
	rev.Type, rev.ExecutionTime = migrate.RevisionType(kind), time.Duration(duration)
	if err := json.Unmarshal([]byte(hashes), &rev.PartialHashes); err != nil {
		return nil, fmt.Errorf("decode the partial hashes of %s: %w", rev.Version, err)
	}
	return &rev, nil
}
