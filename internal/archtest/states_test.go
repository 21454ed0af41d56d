package archtest

import (
	"errors"
	"strings"
	"testing"
)

const fixtureDomain = `package domain

type (
	Phase string
	Other string
)

const (
	Queued Phase = "queued"
	Ready  Phase = "ready"
	Noise  Other = "noise"
)

const (
	A Cancel = "none"
	B Status = "queued"
	C Stage = "waiting"
	D AttemptStatus = "created"
	E LedgerType = "reserve"
	F OperationType = "fetch_output"
	G Breaker = "open"
	H BreakerReason = "auth"
)
`

const fixtureSchema = `
CREATE TABLE generation_tasks (
    phase  text NOT NULL CHECK (phase IN ('queued', 'ready')), -- CHECK (phase IN ('noise'))
    cancel text NOT NULL CHECK (cancel = 'none'),
    status text NOT NULL, CONSTRAINT legal CHECK ((status = 'queued') OR (status = ')')),
    stage  text CHECK (stage IN ('waiting'))
);
CREATE TABLE IF NOT EXISTS public.task_attempts (status text CHECK (status IN ('created')));
CREATE TABLE credit_ledger (ledger_type text CHECK (ledger_type IN ('reserve')));
CREATE TABLE operations (operation_type text CHECK (operation_type IN ('fetch_output')));
CREATE TABLE provider_accounts (breaker text CHECK (breaker IN ('open')), breaker_reason text CHECK (breaker_reason IN ('auth')));
`

func TestStates(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ domain, schema, want string }{
		"complete":      {fixtureDomain, fixtureSchema, ""},
		"missing state": {fixtureDomain, strings.Replace(fixtureSchema, "'queued', 'ready'", "'queued'", 1), `does not know domain.Phase "ready"`},
		"only in a comment": {fixtureDomain, strings.Replace(fixtureSchema, "('queued', 'ready'))", "('queued')) -- 'ready'", 1),
			`does not know domain.Phase "ready"`},
		"no check":    {fixtureDomain, strings.Replace(fixtureSchema, "CHECK (stage IN ('waiting'))", "", 1), "no CHECK on stage"},
		"no table":    {fixtureDomain, strings.Replace(fixtureSchema, "TABLE operations", "TABLE ops", 1), "table operations has no CHECK"},
		"other table": {fixtureDomain, strings.Replace(fixtureSchema, "'created'", "'queued'", 1), `does not know domain.AttemptStatus "created"`},
		"no constants": {strings.Replace(fixtureDomain, "E LedgerType", "E Foreign", 1), fixtureSchema,
			"has no constants of type LedgerType"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			problems, err := States(load(t, map[string]string{"domain/status.go": tt.domain, schemaPath: tt.schema}))
			if err != nil {
				t.Fatal(err)
			}
			expect(t, problems, tt.want)
		})
	}
}

func TestStatesWithoutSchema(t *testing.T) {
	t.Parallel()
	if _, err := States(load(t, map[string]string{"domain/status.go": fixtureDomain})); !errors.Is(err, ErrNoSchema) {
		t.Errorf("got %v, want ErrNoSchema", err)
	}
}
