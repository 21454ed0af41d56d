package main

import (
	"context"
	"errors"
	"fmt"
	"os/user"
	"strconv"
	"strings"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/internal/wire"
	"github.com/aivedio/aivedio/ports"
)

// creditCmd works on the database itself, like keyCmd: whoever may grant credits
// runs the platform.
type creditCmd struct {
	Grant creditGrantCmd `cmd:"" help:"Add credits to a tenant's balance."`
	Show  creditShowCmd  `cmd:"" help:"Show a tenant's balance."`
}

// tenantFlag names a tenant that exists.
type tenantFlag struct {
	Tenant label `required:"" help:"Name or id of the tenant." placeholder:"NAME|ten_…"`
}

// find returns the tenant's id. A name may look like an id, so an id that does
// not parse is looked up as a name.
func (f tenantFlag) find(ctx context.Context, access ports.Access) (domain.TenantID, error) {
	name := string(f.Tenant)
	if id, err := wire.ParseID(wire.PrefixTenant, name); err == nil {
		return domain.TenantID{ID: id}, nil
	}
	tenant, err := access.TenantByName(ctx, name)
	if errors.Is(err, ports.ErrNotFound) {
		return domain.TenantID{}, noTenant(name)
	}
	if err != nil {
		return domain.TenantID{}, fmt.Errorf("tenant %s: %w", name, err)
	}
	return tenant.ID, nil
}

func noTenant(name string) error {
	return fmt.Errorf("there is no tenant %q; `aivedio key list` shows the ids, `aivedio key create --tenant NAME` makes a new one", name)
}

type creditGrantCmd struct {
	databaseFlag
	tenantFlag
	Credits int64  `required:"" help:"How many, in the platform's unit." placeholder:"N"`
	Reason  string `required:"" help:"Why; it is kept in the audit log." placeholder:"TEXT"`
	Action  string `help:"Id of an earlier grant of which it is not known whether it was stored: repeating it grants nothing twice." placeholder:"act_…"`
	JSON    bool   `help:"Print JSON."`
}

// maxReason bounds the reason of a grant, in bytes.
const maxReason = 1000

// audit checks what was typed and names the action.
func (cmd creditGrantCmd) audit() (ports.Audit, error) {
	reason := strings.TrimSpace(cmd.Reason)
	switch {
	case cmd.Credits <= 0:
		return ports.Audit{}, errors.New("--credits must be above 0; credits are taken back with an adjust entry, not with a grant")
	case reason == "" || len(reason) > maxReason || strings.ToValidUTF8(reason, "") != reason || strings.ContainsRune(reason, 0):
		return ports.Audit{}, fmt.Errorf("--reason must say why, in 1 to %d bytes of UTF-8", maxReason)
	}
	action := domain.ActionID{ID: wire.NewID()}
	if cmd.Action != "" {
		id, err := wire.ParseID(wire.PrefixAction, cmd.Action)
		if err != nil {
			return ports.Audit{}, fmt.Errorf("--action: %w", err)
		}
		action.ID = id
	}
	return ports.Audit{ActionID: action, Actor: "cli:" + localUser(), Action: "credit.grant", Reason: reason}, nil
}

// localUser is who runs the command, as far as the system knows.
func localUser() string {
	u, err := user.Current()
	if err != nil {
		return "unknown"
	}
	return u.Username
}

// Run grants and prints the balance.
func (cmd creditGrantCmd) Run(ctx context.Context, std streams) error {
	audit, err := cmd.audit()
	if err != nil {
		return err
	}
	store, _, err := cmd.openAccess(ctx)
	if err != nil {
		return err
	}
	defer store.Close()
	tenant, err := cmd.find(ctx, store)
	if err != nil {
		return err
	}
	action := wire.FormatID(wire.PrefixAction, audit.ActionID.ID)
	balance, err := store.GrantCredits(ctx, tenant, cmd.Credits, audit)
	switch {
	case errors.Is(err, ports.ErrNotFound):
		return noTenant(string(cmd.Tenant))
	case errors.Is(err, ports.ErrIdempotencyMismatch):
		return fmt.Errorf("--action %s was a grant of another amount or to another tenant", action)
	case errors.Is(err, ports.ErrUnavailable):
		return fmt.Errorf("%w; nobody knows whether it was stored: repeat the command with --action %s", err, action)
	case err != nil:
		return err
	}
	return printBalance(std, cmd.JSON, balance, map[string]string{"tenant": wire.TenantID(tenant), "action": action})
}

type creditShowCmd struct {
	databaseFlag
	tenantFlag
	JSON bool `help:"Print JSON."`
}

// Run prints the balance.
func (cmd creditShowCmd) Run(ctx context.Context, std streams) error {
	store, _, err := cmd.openAccess(ctx)
	if err != nil {
		return err
	}
	defer store.Close()
	tenant, err := cmd.find(ctx, store)
	if err != nil {
		return err
	}
	balance, err := store.Balance(ctx, tenant)
	if errors.Is(err, ports.ErrNotFound) {
		return noTenant(string(cmd.Tenant))
	}
	if err != nil {
		return err
	}
	return printBalance(std, cmd.JSON, balance, map[string]string{"tenant": wire.TenantID(tenant)})
}

// printBalance prints the four figures, with what else there is to say first.
func printBalance(std streams, asJSON bool, b ports.Balance, more map[string]string) error {
	if asJSON {
		out := map[string]any{"granted": b.Granted, "available": b.Available, "reserved": b.Reserved, "spent": b.Spent}
		for key, value := range more {
			out[key] = value
		}
		return std.json(out)
	}
	var rows [][]string
	for _, key := range []string{"tenant", "action"} {
		if more[key] != "" {
			rows = append(rows, []string{key, more[key]})
		}
	}
	for _, f := range []struct {
		name  string
		value int64
	}{{"granted", b.Granted}, {"available", b.Available}, {"reserved", b.Reserved}, {"spent", b.Spent}} {
		rows = append(rows, []string{f.name, strconv.FormatInt(f.value, 10)})
	}
	return std.table(rows)
}
