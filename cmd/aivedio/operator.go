package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// The operator commands speak to /admin/ of a running server, so that every
// action is authorised and audited in one place.

// adminList prints rows of an admin collection.
func adminList(ctx context.Context, r remote, std streams, asJSON bool, path, field string, columns []string) error {
	c, err := r.client()
	if err != nil {
		return err
	}
	var raw json.RawMessage
	if err := c.call(ctx, http.MethodGet, path, nil, &raw); err != nil {
		return err
	}
	if asJSON {
		return std.json(raw)
	}
	var answer map[string]json.RawMessage
	var rows []map[string]any
	if err := json.Unmarshal(raw, &answer); err != nil {
		return fmt.Errorf("the server's answer does not parse: %w", err)
	}
	dec := json.NewDecoder(bytes.NewReader(answer[field]))
	dec.UseNumber()
	if err := dec.Decode(&rows); err != nil {
		return fmt.Errorf("the server's answer does not parse: %w", err)
	}
	table := [][]string{nil}
	for _, col := range columns {
		table[0] = append(table[0], strings.ToUpper(strings.ReplaceAll(col, "_", " ")))
	}
	for _, row := range rows {
		var cells []string
		for _, col := range columns {
			cell := "–"
			if v, ok := row[col]; ok && v != nil && v != "" {
				cell = fmt.Sprint(v)
			}
			cells = append(cells, cell)
		}
		table = append(table, cells)
	}
	return std.table(table)
}

// adminShow prints one admin row as indented JSON.
func adminShow(ctx context.Context, r remote, std streams, path string) error {
	raw, err := adminRow(ctx, r, path)
	if err != nil {
		return err
	}
	return std.indented(raw)
}

// adminRow reads one admin row.
func adminRow(ctx context.Context, r remote, path string) (json.RawMessage, error) {
	c, err := r.client()
	if err != nil {
		return nil, err
	}
	var raw json.RawMessage
	return raw, c.call(ctx, http.MethodGet, path, nil, &raw)
}

// indented prints JSON for a person.
func (s streams) indented(raw json.RawMessage) error {
	var out bytes.Buffer
	if err := json.Indent(&out, raw, "", "  "); err != nil {
		return fmt.Errorf("the server's answer does not parse: %w", err)
	}
	_, err := fmt.Fprintln(s.out, out.String())
	return err
}

// adminDo posts an action and says that it was done.
func adminDo(ctx context.Context, r remote, std streams, path string, body map[string]any) error {
	c, err := r.client()
	if err != nil {
		return err
	}
	if err := c.call(ctx, http.MethodPost, path, body, nil); err != nil {
		return err
	}
	_, err = fmt.Fprintln(std.out, "done")
	return err
}

// rowRef names one admin row.
type rowRef struct {
	remote
	ID int64 `arg:"" help:"Number of the row."`
}

func (r rowRef) path(collection string, more ...string) string {
	p := "/admin/" + collection + "/" + strconv.FormatInt(r.ID, 10)
	for _, m := range more {
		p += "/" + m
	}
	return p
}

type listRef struct {
	remote
	Limit int  `default:"50" help:"How many."`
	JSON  bool `help:"Print JSON."`
}

func (l listRef) query(collection string, extra url.Values) string {
	if extra == nil {
		extra = url.Values{}
	}
	extra.Set("limit", strconv.Itoa(l.Limit))
	return "/admin/" + collection + "?" + extra.Encode()
}

type conflictCmd struct {
	List    conflictListCmd    `cmd:"" help:"List open conflicts, the oldest first."`
	Show    conflictShowCmd    `cmd:"" help:"Show one conflict."`
	Resolve conflictResolveCmd `cmd:"" help:"Accept the contradicting result, refund the first one, or ignore the conflict."`
}

type (
	conflictListCmd    struct{ listRef }
	conflictShowCmd    struct{ rowRef }
	conflictResolveCmd struct {
		rowRef
		As     string `required:"" enum:"accept,refund,ignore" help:"accept takes the result that contradicted; refund keeps the first verdict and gives its credits back; ignore keeps it."`
		Reason string `required:"" help:"Why; kept in the audit log."`
	}
)

// Run lists conflicts.
func (cmd conflictListCmd) Run(ctx context.Context, std streams) error {
	return adminList(ctx, cmd.remote, std, cmd.JSON, cmd.query("conflicts", nil), "conflicts", []string{"id", "kind", "task_id", "have", "got", "opened_at"})
}

// Run shows a conflict.
func (cmd conflictShowCmd) Run(ctx context.Context, std streams) error {
	return adminShow(ctx, cmd.remote, std, cmd.path("conflicts"))
}

// Run resolves a conflict.
func (cmd conflictResolveCmd) Run(ctx context.Context, std streams) error {
	return adminDo(ctx, cmd.remote, std, cmd.path("conflicts", "resolve"), map[string]any{"resolution": cmd.As, "reason": cmd.Reason})
}

type caseCmd struct {
	List    caseListCmd    `cmd:"" help:"List open cases, the oldest first."`
	Show    caseShowCmd    `cmd:"" help:"Show one case."`
	Resolve caseResolveCmd `cmd:"" help:"Decide a case."`
}

type (
	caseListCmd struct {
		listRef
		Kind string `help:"Only cases of this kind."`
	}
	caseShowCmd    struct{ rowRef }
	caseResolveCmd struct {
		rowRef
		As             string `required:"" enum:"created_with_id,not_created,abandon,adopt,close_cost,refund,keep" help:"What was found out: created_with_id, not_created, abandon, adopt, close_cost, refund or keep."`
		ProviderTaskID string `help:"The vendor's id, with created_with_id."`
		Closing        string `enum:",settled,refunded" default:"" help:"With close_cost: settled or refunded."`
		Reason         string `required:"" help:"Why; kept in the audit log."`
	}
)

// Run lists cases.
func (cmd caseListCmd) Run(ctx context.Context, std streams) error {
	q := url.Values{}
	if cmd.Kind != "" {
		q.Set("kind", cmd.Kind)
	}
	return adminList(ctx, cmd.remote, std, cmd.JSON, cmd.query("cases", q), "cases", []string{"id", "kind", "task_id", "attempt_id", "owner", "opened_at"})
}

// Run shows a case.
func (cmd caseShowCmd) Run(ctx context.Context, std streams) error {
	return adminShow(ctx, cmd.remote, std, cmd.path("cases"))
}

// Run decides a case.
func (cmd caseResolveCmd) Run(ctx context.Context, std streams) error {
	body := map[string]any{"resolution": cmd.As, "reason": cmd.Reason}
	if cmd.ProviderTaskID != "" {
		body["provider_task_id"] = cmd.ProviderTaskID
	}
	if cmd.Closing != "" {
		body["closing"] = cmd.Closing
	}
	return adminDo(ctx, cmd.remote, std, cmd.path("cases", "resolve"), body)
}
