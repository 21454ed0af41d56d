package main

import (
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/aivedio/aivedio/adapters/pgstore"
	"github.com/aivedio/aivedio/adapters/providers"
	"github.com/aivedio/aivedio/app"
	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/internal/e2e/launch"
	"github.com/aivedio/aivedio/internal/wire"
	"github.com/aivedio/aivedio/ports"
)

// vendor is the provider whose webhooks are sent.
const vendor = "replicate"

// population is what the database holds before anything is measured.
type population struct {
	projects []domain.ProjectID
	tasks    []seededTask
	// key may read every stream.
	key string
}

// seededTask is a task whose attempt the vendor has accepted.
type seededTask struct {
	target
	id domain.TaskID
}

// cloneSQL multiplies the one task that the use cases made.
//
//go:embed seed.sql
var cloneSQL string

// copiedJob is the vendor's name of the job whose task is copied.
const copiedJob = "bench"

// seed makes one task through the use cases, submitted and accepted, and copies
// its rows until each project has its share. So the rows are those that the
// product writes, at the speed of the database.
// The steps come after the vendor has accepted the one task.
func seed(ctx context.Context, url string, secrets launch.Secrets, projects, tasks int, steps ...func(*seeder, context.Context) error) (*population, error) {
	s, err := newSeeder(ctx, url, secrets)
	if err != nil {
		return nil, err
	}
	defer s.store.Close()
	if err := s.template(ctx, copiedJob, int64(tasks)); err != nil {
		return nil, fmt.Errorf("the task that is copied: %w", err)
	}
	for _, step := range steps {
		if err := step(s, ctx); err != nil {
			return nil, fmt.Errorf("the task that is copied: %w", err)
		}
	}
	p := &population{}
	if p.key, err = s.readKey(ctx); err != nil {
		return nil, err
	}
	if err := s.clone(ctx, url, p, projects, tasks); err != nil {
		return nil, fmt.Errorf("copy tasks: %w", err)
	}
	return p, nil
}

type seeder struct {
	store   *pgstore.Store
	env     app.Env
	tokens  *app.CallbackTokens
	vendors app.Vendors
	project ports.Project
	task    domain.Task
	job     string        // the vendor's name of the task that is copied
	policy  domain.Policy // of the vendor
}

// newSeeder opens the store with the keys of the product; the caller closes it.
func newSeeder(ctx context.Context, url string, secrets launch.Secrets) (*seeder, error) {
	s := &seeder{env: app.Env{NewID: wire.NewID, Bells: app.NewBells()}}
	var err error
	if s.tokens, err = app.NewCallbackTokens(secrets.CallbackKey); err != nil {
		return nil, err
	}
	registry, err := providers.New(providers.Config{Accounts: map[string][]ports.Account{vendor: {{
		ID: launch.Account, APIKey: secrets.VendorKey, Secrets: []ports.Secret{{Version: "1", Value: secrets.WebhookSecret}},
	}}}})
	if err != nil {
		return nil, err
	}
	s.vendors = app.NewVendors(registry)
	s.policy = s.vendors.Policy(vendor)
	s.store, err = pgstore.Open(ctx, pgstore.Config{URL: url, NewID: wire.NewID, Keyring: pgstore.Keyring{Current: "seed", Keys: map[string][]byte{"seed": secrets.PayloadKey}}})
	return s, err
}

// template makes the task, in a tenant of the name, and brings it to the vendor.
func (s *seeder) template(ctx context.Context, name string, credits int64) error {
	now := time.Now()
	tenant, err := s.store.CreateTenant(ctx, ports.Tenant{ID: domain.TenantID{ID: wire.NewID()}, Name: name, Credits: 2 * (credits + 1), CreatedAt: now})
	if err != nil {
		return err
	}
	s.project, err = s.store.CreateProject(ctx, ports.Project{ID: domain.ProjectID{ID: wire.NewID()}, TenantID: tenant.ID, Name: "template", OnLateSuccess: domain.LateSuccessKeep, CreatedAt: now})
	if err != nil {
		return err
	}
	submit, err := app.NewSubmit(app.SubmitDeps{Env: s.env, Transitions: s.store, Vendors: s.vendors, Tokens: s.tokens}, app.SubmitConfig{})
	if err != nil {
		return err
	}
	made, err := submit.Create(ctx, app.CreateCommand{Project: s.project, Provider: vendor, Model: "sim/video", Input: ports.TaskInput{Prompt: "a red kite over the sea"}})
	if err != nil {
		return err
	}
	s.task, s.job = made.View.Task, name
	lease := wire.NewID()
	return s.apply(ctx,
		domain.Input{Kind: domain.InputSubmitStarted, Policy: s.policy, Lease: lease, LeaseUntil: time.Now().Add(time.Minute)},
		domain.Input{Kind: domain.InputSubmitAccepted, Policy: s.policy, Lease: lease, ProviderTaskID: name},
	)
}

// apply brings the task further.
func (s *seeder) apply(ctx context.Context, inputs ...domain.Input) error {
	for _, in := range inputs {
		results, err := s.store.Apply(ctx, []ports.Item{{Ref: ports.Ref{TaskID: s.task.ID}, Input: in}})
		if err == nil {
			err = results[0].Err
		}
		if err != nil {
			return fmt.Errorf("%s: %w", in.Kind, err)
		}
	}
	return nil
}

func (s *seeder) readKey(ctx context.Context) (string, error) {
	access, err := app.NewAccess(app.AccessDeps{Env: s.env, Access: s.store}, app.AccessConfig{})
	if err != nil {
		return "", err
	}
	raw, _, err := access.CreateKey(ctx, app.KeyCommand{TenantID: s.project.TenantID, Name: "bench", Scopes: []ports.Scope{ports.ScopeRead}})
	return raw, err
}

// clone names the copies here, where ids and tokens are made, and lets the
// database do the rest. Task n belongs to project n modulo their number, so that
// neighbours in time are neighbours nowhere else.
func (s *seeder) clone(ctx context.Context, url string, p *population, projects, tasks int) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // every statement has been answered
	if _, err := conn.Exec(ctx, `CREATE SCHEMA bench;
		CREATE TABLE bench.project (n INT PRIMARY KEY, project_id UUID NOT NULL);
		CREATE TABLE bench.task (n INT PRIMARY KEY, project INT NOT NULL, place INT NOT NULL, task_id UUID NOT NULL, attempt_id UUID NOT NULL, provider_task_id TEXT NOT NULL, token_hash BYTEA NOT NULL)`); err != nil {
		return err
	}
	if _, err := conn.CopyFrom(ctx, pgx.Identifier{"bench", "project"}, []string{"n", "project_id"}, pgx.CopyFromSlice(projects, func(n int) ([]any, error) {
		id := wire.NewID()
		p.projects = append(p.projects, domain.ProjectID{ID: id})
		return []any{n, [16]byte(id)}, nil
	})); err != nil {
		return err
	}
	columns := []string{"n", "project", "place", "task_id", "attempt_id", "provider_task_id", "token_hash"}
	if _, err := conn.CopyFrom(ctx, pgx.Identifier{"bench", "task"}, columns, pgx.CopyFromSlice(tasks, func(n int) ([]any, error) {
		attempt := domain.AttemptID{ID: wire.NewID()}
		token := s.tokens.Make(attempt)
		t := seededTask{target: target{Task: randomHex(13), Path: "/callbacks/" + vendor + "/" + token}, id: domain.TaskID{ID: wire.NewID()}}
		p.tasks = append(p.tasks, t)
		return []any{n, n % projects, n / projects, [16]byte(t.id.ID), [16]byte(attempt.ID), t.Task, app.TokenHash(token)}, nil
	})); err != nil {
		return err
	}
	_, err = conn.Exec(ctx, cloneSQL)
	return errors.Join(err, analyze(ctx, conn))
}

// analyze makes the planner know what was copied.
func analyze(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(ctx, "VACUUM ANALYZE")
	return err
}

func randomHex(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails: crypto/rand ends the process instead
	return hex.EncodeToString(b)
}
