package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

type inboxCmd struct {
	List    inboxListCmd    `cmd:"" help:"List deliveries that were given up (dead), wait for another try (retry) or for their task (orphan), the newest first."`
	Show    inboxShowCmd    `cmd:"" help:"Show one delivery with the shape of its payload, or the payload itself."`
	Requeue inboxRequeueCmd `cmd:"" help:"Put one delivery back to work, or many that a filter chooses, so many a second."`
}

// troubledRef chooses among deliveries that need a look.
type troubledRef struct {
	Status    string `enum:",dead,retry,orphan" default:"" help:"dead, retry or orphan."`
	Provider  string `help:"Only this vendor's."`
	Code      string `help:"Only those whose newest error has this code, such as undecodable."`
	OlderThan string `help:"Only those received at least so long ago, such as 24h." placeholder:"AGE"`
}

type (
	inboxListCmd struct {
		listRef
		troubledRef
		Before string `help:"The next page: the number of the last row of the one before."`
	}
	inboxShowCmd struct {
		rowRef
		Full   bool   `help:"Show the payload itself; that is kept in the audit log."`
		Raw    bool   `help:"Write the payload's bytes and nothing else; kept in the audit log too."`
		Reason string `help:"Why the payload is read; kept with it."`
	}
	inboxRequeueCmd struct {
		remote
		troubledRef
		ID     int64  `arg:"" optional:"" help:"Number of the row; without it the filter chooses, the oldest first."`
		Limit  int    `default:"1000" help:"How many at most."`
		Rate   int    `default:"100" help:"How many come back to work per second."`
		DryRun bool   `help:"Only say what would be taken."`
		Reason string `help:"Why; kept in the audit log. Needed but for a dry run."`
		JSON   bool   `help:"Print JSON."`
	}
)

// chosen is the filter of a list.
func (t troubledRef) chosen() url.Values {
	q := url.Values{}
	for name, value := range map[string]string{"status": t.Status, "provider": t.Provider, "code": t.Code, "older_than": t.OlderThan} {
		if value != "" {
			q.Set(name, value)
		}
	}
	return q
}

// Run lists deliveries that need a look.
func (cmd inboxListCmd) Run(ctx context.Context, std streams) error {
	q := cmd.troubledRef.chosen()
	if cmd.Before != "" {
		q.Set("before", cmd.Before)
	}
	return adminList(ctx, cmd.remote, std, cmd.JSON, cmd.query("inbox", q), "inbox", []string{"id", "provider", "status", "trust", "received_at", "next_retry_at", "error_count", "last_error"})
}

// Run requeues one delivery or many.
func (cmd inboxRequeueCmd) Run(ctx context.Context, std streams) error {
	if cmd.Reason == "" && !cmd.DryRun {
		return errors.New("say why with --reason: it is kept in the audit log")
	}
	if cmd.ID != 0 {
		if cmd.DryRun {
			return errors.New("--dry-run goes with a filter; `aivedio inbox show` shows one row")
		}
		return adminDo(ctx, cmd.remote, std, rowRef{ID: cmd.ID}.path("inbox", "requeue"), map[string]any{"reason": cmd.Reason})
	}
	body := map[string]any{"limit": cmd.Limit, "rate": cmd.Rate, "dry_run": cmd.DryRun, "reason": cmd.Reason}
	for name, values := range cmd.troubledRef.chosen() {
		body[name] = values[0]
	}
	c, err := cmd.client()
	if err != nil {
		return err
	}
	var raw json.RawMessage
	if err := c.call(ctx, http.MethodPost, "/admin/inbox/requeue", body, &raw); err != nil {
		return err
	}
	if cmd.JSON {
		return std.json(raw)
	}
	return cmd.tell(std, raw)
}

// tell says what was taken, or would be.
func (cmd inboxRequeueCmd) tell(std streams, raw json.RawMessage) error {
	var answer struct {
		Requeue struct {
			Rows      int     `json:"rows"`
			LastDueAt *string `json:"last_due_at"`
			Groups    []struct {
				Provider, Status string
				Code             *string
				Rows             int
				Oldest, Newest   string
			} `json:"groups"`
		} `json:"requeue"`
	}
	if err := json.Unmarshal(raw, &answer); err != nil {
		return fmt.Errorf("the server's answer does not parse: %w", err)
	}
	table := [][]string{{"ROWS", "PROVIDER", "STATUS", "CODE", "OLDEST", "NEWEST"}}
	for _, g := range answer.Requeue.Groups {
		code := "–"
		if g.Code != nil {
			code = *g.Code
		}
		table = append(table, []string{strconv.Itoa(g.Rows), g.Provider, g.Status, code, g.Oldest, g.Newest})
	}
	if err := std.table(table); err != nil {
		return err
	}
	what, until := "requeued", ""
	if cmd.DryRun {
		what = "would be requeued"
	}
	if answer.Requeue.LastDueAt != nil {
		until = ", the last of them at " + *answer.Requeue.LastDueAt
	}
	_, err := fmt.Fprintf(std.out, "%d %s%s\n", answer.Requeue.Rows, what, until)
	return err
}

// Run shows a delivery; its payload, where it is asked for, readable where it can
// be.
func (cmd inboxShowCmd) Run(ctx context.Context, std streams) error {
	path := cmd.path("inbox")
	if !cmd.Full && !cmd.Raw {
		return adminShow(ctx, cmd.remote, std, path)
	}
	q := url.Values{"payload": {"full"}}
	if cmd.Reason != "" {
		q.Set("reason", cmd.Reason)
	}
	raw, err := adminRow(ctx, cmd.remote, path+"?"+q.Encode())
	if err != nil {
		return err
	}
	var row struct {
		Inbox struct {
			Payload *string `json:"payload"`
		} `json:"inbox"`
	}
	if err := json.Unmarshal(raw, &row); err != nil {
		return fmt.Errorf("the server's answer does not parse: %w", err)
	}
	if row.Inbox.Payload == nil {
		return errors.New("the payload was removed: it is not kept for long once a delivery is done")
	}
	payload, err := base64.StdEncoding.DecodeString(*row.Inbox.Payload)
	if err != nil {
		return fmt.Errorf("the payload is not base64: %w", err)
	}
	if cmd.Raw {
		_, err := std.out.Write(payload)
		return err
	}
	return std.indented(readable(raw, *row.Inbox.Payload, payload))
}

// readable puts the payload's JSON or text in the place of its base64; bytes that
// are no text stay as they are.
func readable(raw json.RawMessage, encoded string, payload []byte) json.RawMessage {
	if !printable(payload) {
		return raw
	}
	shown := payload
	if !json.Valid(payload) {
		shown, _ = json.Marshal(string(payload)) // a string always encodes
	}
	return bytes.Replace(raw, []byte(`"payload":"`+encoded+`"`), append([]byte(`"payload":`), shown...), 1)
}

// printable reports whether a person can read the bytes on a terminal.
func printable(b []byte) bool {
	odd := func(r rune) bool { return !unicode.IsPrint(r) && r != '\n' && r != '\r' && r != '\t' }
	return utf8.Valid(b) && strings.IndexFunc(string(b), odd) < 0
}
