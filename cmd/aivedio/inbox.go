package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

type inboxCmd struct {
	List    inboxListCmd    `cmd:"" help:"List deliveries that were given up (dead), wait for another try (retry) or for their task (orphan), the newest first."`
	Show    inboxShowCmd    `cmd:"" help:"Show one delivery."`
	Requeue inboxRequeueCmd `cmd:"" help:"Put a delivery back to work."`
}

type (
	inboxListCmd struct{ listRef }
	inboxShowCmd struct {
		rowRef
		Raw bool `help:"Write the delivery's bytes and nothing else."`
	}
	inboxRequeueCmd struct {
		rowRef
		Reason string `required:"" help:"Why; kept in the audit log."`
	}
)

// Run lists deliveries that need a look.
func (cmd inboxListCmd) Run(ctx context.Context, std streams) error {
	return adminList(ctx, cmd.remote, std, cmd.JSON, cmd.query("inbox", nil), "inbox", []string{"id", "provider", "status", "trust", "received_at", "next_retry_at", "error_count", "last_error"})
}

// Run requeues a delivery.
func (cmd inboxRequeueCmd) Run(ctx context.Context, std streams) error {
	return adminDo(ctx, cmd.remote, std, cmd.path("inbox", "requeue"), map[string]any{"reason": cmd.Reason})
}

// Run shows a delivery with its payload readable where it can be.
func (cmd inboxShowCmd) Run(ctx context.Context, std streams) error {
	raw, err := adminRow(ctx, cmd.remote, cmd.path("inbox"))
	if err != nil {
		return err
	}
	var row struct {
		Inbox struct {
			Payload string `json:"payload"`
		} `json:"inbox"`
	}
	if err := json.Unmarshal(raw, &row); err != nil {
		return fmt.Errorf("the server's answer does not parse: %w", err)
	}
	payload, err := base64.StdEncoding.DecodeString(row.Inbox.Payload)
	if err != nil {
		return fmt.Errorf("the payload is not base64: %w", err)
	}
	if cmd.Raw {
		_, err := std.out.Write(payload)
		return err
	}
	return std.indented(readable(raw, row.Inbox.Payload, payload))
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
