package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aivedio/aivedio/adapters/pgstore"
	"github.com/aivedio/aivedio/app"
	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/internal/wire"
	"github.com/aivedio/aivedio/ports"
)

// keyCmd works on the database itself: the first key cannot come from the API.
type keyCmd struct {
	Create keyCreateCmd `cmd:"" help:"Create a key, with its tenant and project when they are new."`
	List   keyListCmd   `cmd:"" help:"List keys."`
	Revoke keyRevokeCmd `cmd:"" help:"End a key at once."`
}

type keyCreateCmd struct {
	databaseFlag
	Tenant      label         `required:"" help:"Name of the tenant."`
	Project     label         `help:"Name of a project to create or find; its id is printed."`
	OnlyProject bool          `help:"Limit the key to that project."`
	Name        label         `default:"key" help:"What the key is for."`
	Scopes      []ports.Scope `default:"read,write" enum:"${scopes}" help:"read and write for an application, operator to see the timelines of its tasks too, platform for whoever runs it all: the rows of every tenant (/admin)."`
	Credits     int64         `default:"1000000" help:"Credits granted to a new tenant."`
	LateSuccess string        `default:"keep" enum:"keep,discard" help:"What a new project does with a result after a cancel."`
	JSON        bool          `help:"Print JSON."`
}

// openAccess opens the store for a command.
func (f databaseFlag) openAccess(ctx context.Context) (*pgstore.Store, *app.Access, error) {
	url, err := f.url()
	if err != nil {
		return nil, nil, err
	}
	// Access holds no payloads: a key that is thrown away serves.
	nothing := pgstore.Keyring{Current: "none", Keys: map[string][]byte{"none": make([]byte, 32)}}
	store, err := pgstore.Open(ctx, pgstore.Config{URL: url, Keyring: nothing})
	if err != nil {
		return nil, nil, err
	}
	access, err := app.NewAccess(app.AccessDeps{Env: app.Env{NewID: wire.NewID}, Access: store}, app.AccessConfig{})
	if err != nil {
		store.Close()
		return nil, nil, err
	}
	return store, access, nil
}

// Run creates the key and prints it, the only time that it can be seen.
func (cmd keyCreateCmd) Run(ctx context.Context, std streams) error {
	if cmd.OnlyProject && cmd.Project == "" {
		return errors.New("--only-project needs --project: without a name the key would open every project of the tenant")
	}
	store, access, err := cmd.openAccess(ctx)
	if err != nil {
		return err
	}
	defer store.Close()
	tenant, err := store.CreateTenant(ctx, ports.Tenant{ID: domain.TenantID{ID: wire.NewID()}, Name: string(cmd.Tenant), Credits: cmd.Credits, CreatedAt: time.Now()})
	if err != nil {
		return fmt.Errorf("tenant: %w", err)
	}
	var project ports.Project
	if cmd.Project != "" {
		project, err = store.CreateProject(ctx, ports.Project{ID: domain.ProjectID{ID: wire.NewID()}, TenantID: tenant.ID, Name: string(cmd.Project), OnLateSuccess: domain.LateSuccess(cmd.LateSuccess), CreatedAt: time.Now()})
		if err != nil {
			return fmt.Errorf("project: %w", err)
		}
	}
	k := app.KeyCommand{TenantID: tenant.ID, Name: string(cmd.Name), Scopes: cmd.Scopes}
	if cmd.OnlyProject {
		k.ProjectID = project.ID
	}
	raw, key, err := access.CreateKey(ctx, k)
	if err != nil {
		return err
	}
	if cmd.JSON {
		return std.json(map[string]string{"id": wire.FormatID(wire.PrefixKey, key.ID), "key": raw, "tenant": wire.TenantID(tenant.ID), "project": wire.ProjectID(project.ID)})
	}
	return std.table([][]string{
		{"key", raw}, {"id", wire.FormatID(wire.PrefixKey, key.ID)}, {"tenant", wire.TenantID(tenant.ID)}, {"project", wire.ProjectID(project.ID)},
		{"note", "the key is not stored: keep it now"},
	})
}

type keyListCmd struct {
	databaseFlag
	Tenant string `help:"Only keys of this tenant id." placeholder:"ten_…"`
	JSON   bool   `help:"Print JSON."`
}

// keyView is a key as `key list --json` prints it; its text is stored nowhere.
type keyView struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	Prefix string `json:"prefix"`
	Tenant string `json:"tenant"`
	// Project is null for a key of the whole tenant.
	Project   *string       `json:"project"`
	Scopes    []ports.Scope `json:"scopes"`
	CreatedAt string        `json:"created_at"`
	RevokedAt *string       `json:"revoked_at"`
}

func viewOfKey(k ports.APIKey) keyView {
	v := keyView{
		ID: wire.FormatID(wire.PrefixKey, k.ID), Name: k.Name, Prefix: k.Prefix, Tenant: wire.TenantID(k.TenantID),
		Scopes: k.Scopes, CreatedAt: wire.FormatTime(k.CreatedAt),
	}
	if !k.ProjectID.IsZero() {
		v.Project = new(wire.ProjectID(k.ProjectID))
	}
	if k.RevokedAt != nil {
		v.RevokedAt = new(wire.FormatTime(*k.RevokedAt))
	}
	return v
}

// Run lists keys without their text.
func (cmd keyListCmd) Run(ctx context.Context, std streams) error {
	var tenant domain.TenantID
	var err error
	if cmd.Tenant != "" {
		if tenant.ID, err = wire.ParseID(wire.PrefixTenant, cmd.Tenant); err != nil {
			return fmt.Errorf("--tenant: %w", err)
		}
	}
	store, access, err := cmd.openAccess(ctx)
	if err != nil {
		return err
	}
	defer store.Close()
	keys, err := access.ListKeys(ctx, tenant)
	if err != nil {
		return err
	}
	views := make([]keyView, 0, len(keys))
	for _, k := range keys {
		views = append(views, viewOfKey(k))
	}
	if cmd.JSON {
		return std.json(map[string]any{"keys": views})
	}
	rows := [][]string{{"ID", "NAME", "PREFIX", "TENANT", "PROJECT", "SCOPES", "CREATED", "REVOKED"}}
	for _, v := range views {
		rows = append(rows, []string{v.ID, v.Name, v.Prefix + "…", v.Tenant, orElse(v.Project, "all"), words(v.Scopes), v.CreatedAt, orElse(v.RevokedAt, "–")})
	}
	return std.table(rows)
}

func orElse(s *string, none string) string {
	if s == nil {
		return none
	}
	return *s
}

// words lists scopes as --scopes takes them.
func words(scopes []ports.Scope) string {
	var texts []string
	for _, s := range scopes {
		texts = append(texts, string(s))
	}
	return strings.Join(texts, ",")
}

type keyRevokeCmd struct {
	databaseFlag
	ID string `arg:"" help:"Key id." placeholder:"key_…"`
}

// Run revokes the key.
func (cmd keyRevokeCmd) Run(ctx context.Context, std streams) error {
	id, err := wire.ParseID(wire.PrefixKey, cmd.ID)
	if err != nil {
		return err
	}
	store, access, err := cmd.openAccess(ctx)
	if err != nil {
		return err
	}
	defer store.Close()
	switch err := access.RevokeKey(ctx, id); {
	case errors.Is(err, ports.ErrNotFound):
		return fmt.Errorf("there is no live key %s; `aivedio key list` shows all", cmd.ID)
	case err != nil:
		return err
	}
	_, err = fmt.Fprintln(std.out, "revoked")
	return err
}
