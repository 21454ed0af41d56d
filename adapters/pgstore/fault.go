package pgstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/aivedio/aivedio/ports"
)

// fault sorts what can go wrong in a transaction, by what may be done about it.
type fault int

const (
	// faultOther is none of the database's: a domain error, a failpoint, ErrNotFound.
	faultOther fault = iota
	// faultRetry: nothing was committed and the same may pass now: a deadlock, a
	// time-out, a server that is short of something.
	faultRetry
	// faultConn: the connection failed before COMMIT was sent.
	faultConn
	// faultData: the rows themselves are refused; the batch is cut in halves.
	faultData
	// faultUnknown: COMMIT was sent and its answer lost.
	faultUnknown
	// faultAway: the server cannot be used as it is: not migrated, read-only, wrong
	// password.
	faultAway
	// faultPartition: the partition of the day is missing.
	faultPartition
)

// errLostCommit marks a connection that failed with COMMIT under way.
var errLostCommit = errors.New("the outcome of COMMIT is not known")

// codeExpect is raised by aivedio_expect.
const codeExpect = "AV001"

// constraintIdempotency is violated by a concurrent request with the same key,
// whose retry finds the key.
const constraintIdempotency = "pk_idempotency"

// faultOf sorts an error. Only SQLSTATE and constraint names count, never text.
func faultOf(err error) fault {
	var pg *pgconn.PgError
	switch {
	case err == nil:
		return faultOther
	case errors.Is(err, errLostCommit):
		return faultUnknown
	case errors.As(err, &pg):
		return faultOfState(pg)
	case own(err):
		return faultOther
	default:
		return faultConn
	}
}

func faultOfState(pg *pgconn.PgError) fault {
	if pg.Code == "23505" && pg.ConstraintName == constraintIdempotency {
		return faultRetry
	}
	if pg.Code == "23514" && pg.ConstraintName == "" {
		return faultPartition // a CHECK has a name; only a missing partition has none
	}
	switch pg.Code {
	case "40001", "40P01", "55P03", "57014":
		return faultRetry
	case codeExpect:
		return faultData
	}
	switch pg.Code[:2] {
	case "53":
		return faultRetry
	case "57", "08":
		return faultConn
	case "22", "23":
		return faultData
	default:
		return faultAway
	}
}

// own reports errors that the store itself made, or passes on.
func own(err error) bool {
	var failpoint *failpointError
	return errors.Is(err, ports.ErrNotFound) || errors.Is(err, ports.ErrIdempotencyMismatch) || errors.Is(err, ports.ErrCredits) ||
		errors.Is(err, ports.ErrLeaseLost) || errors.Is(err, errSealed) || errors.Is(err, errData) || errors.As(err, &failpoint)
}

// errData stands for values that the database refuses.
var errData = errors.New("the data is refused")

// failpointError carries the error of a failpoint through the retries.
type failpointError struct{ err error }

func (e *failpointError) Error() string { return e.err.Error() }
func (e *failpointError) Unwrap() error { return e.err }

// outward translates an error into the vocabulary of the ports.
func outward(what string, err error) error {
	if err == nil {
		return nil
	}
	var failpoint *failpointError
	if errors.As(err, &failpoint) {
		return failpoint.err
	}
	switch faultOf(err) {
	case faultOther:
		return fmt.Errorf("%s: %w", what, err)
	case faultData:
		return fmt.Errorf("%s: %w: %w", what, errData, err)
	default:
		return fmt.Errorf("%s: %w: %w", what, ports.ErrUnavailable, err)
	}
}

// missing turns "no rows" into ErrNotFound.
func missing(what string, err error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return fmt.Errorf("%s: %w", what, ports.ErrNotFound)
	}
	return err
}

// lostCommit marks an error that came while COMMIT was under way and does not
// prove a rollback. A FATAL counts too: a server that is told to stop while it
// waits for its standby has committed already.
func lostCommit(err error) error {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		if f := faultOfState(pg); f != faultConn {
			return err
		}
	}
	return fmt.Errorf("%w: %w", errLostCommit, err)
}

// ended reports whether the caller's context is the reason.
func ended(ctx context.Context) bool { return ctx.Err() != nil }
