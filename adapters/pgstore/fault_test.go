package pgstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/aivedio/aivedio/ports"
)

func state(code string) error { return &pgconn.PgError{Code: code, ConstraintName: "c"} }

func TestFaultOf(t *testing.T) {
	t.Parallel()
	cases := []struct {
		err  error
		want fault
	}{
		{nil, faultOther},
		{state("40001"), faultRetry}, {state("40P01"), faultRetry}, {state("55P03"), faultRetry}, {state("57014"), faultRetry},
		{state("53300"), faultRetry}, {state("53100"), faultRetry},
		{state("57P01"), faultConn}, {state("57P03"), faultConn}, {state("08006"), faultConn},
		{io.ErrUnexpectedEOF, faultConn}, {context.DeadlineExceeded, faultConn},
		{state("22021"), faultData}, {state("22P05"), faultData}, {state("23505"), faultData}, {state("23514"), faultData}, {state("AV001"), faultData},
		{&pgconn.PgError{Code: "23505", ConstraintName: constraintIdempotency}, faultRetry},
		{&pgconn.PgError{Code: "23514"}, faultPartition},
		{state("42P01"), faultAway}, {state("25006"), faultAway}, {state("28P01"), faultAway}, {state("XX000"), faultAway},
		{lostCommit(io.EOF), faultUnknown}, {lostCommit(state("57P01")), faultUnknown},
		{lostCommit(state("40P01")), faultRetry}, {lostCommit(state("23505")), faultData},
		{ports.ErrNotFound, faultOther}, {fmt.Errorf("x: %w", ports.ErrCredits), faultOther}, {missing("task", pgx.ErrNoRows), faultOther},
		{&failpointError{io.EOF}, faultOther},
	}
	for _, c := range cases {
		if got := faultOf(c.err); got != c.want {
			t.Errorf("faultOf(%v) = %d, want %d", c.err, got, c.want)
		}
		if got := faultOf(fmt.Errorf("wrapped: %w", c.err)); c.err != nil && got != c.want {
			t.Errorf("faultOf(wrapped %v) = %d, want %d", c.err, got, c.want)
		}
	}
}

func TestOutward(t *testing.T) {
	t.Parallel()
	for _, err := range []error{state("40P01"), state("57P01"), state("42P01"), io.EOF, lostCommit(io.EOF), context.Canceled} {
		if !errors.Is(outward("x", err), ports.ErrUnavailable) {
			t.Errorf("outward(%v) is not ErrUnavailable", err)
		}
	}
	for _, err := range []error{state("23505"), ports.ErrNotFound, ports.ErrLeaseLost, &failpointError{io.EOF}} {
		if got := outward("x", err); errors.Is(got, ports.ErrUnavailable) {
			t.Errorf("outward(%v) says that a repetition may help: %v", err, got)
		}
	}
	if err := outward("x", &failpointError{io.EOF}); err != io.EOF {
		t.Errorf("a failpoint's error comes out as %v", err)
	}
}

func TestRetryDelay(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{0: "1s", 1: "1s", 2: "2s", 5: "16s", 9: "4m16s", 10: "5m0s", 1000: "5m0s"} {
		if got := retryDelay(n).String(); got != want {
			t.Errorf("retryDelay(%d) = %s, want %s", n, got, want)
		}
	}
}

func TestConfigFaults(t *testing.T) {
	t.Parallel()
	good := Config{URL: "postgres://localhost/x", Keyring: testKeyring()}.WithDefaults()
	if err := good.Validate(); err != nil {
		t.Errorf("a good configuration: %v", err)
	}
	bad := good
	bad.URL, bad.Conns, bad.LockTimeout, bad.StatementTimeout, bad.Keyring = "", 1, 20e9, 20e9, Keyring{}
	err := bad.Validate()
	if err == nil {
		t.Fatal("a bad configuration is accepted")
	}
	if n := len(err.(interface{ Unwrap() []error }).Unwrap()); n != 5 {
		t.Errorf("%d faults are reported at once, want 5: %v", n, err)
	}
}
