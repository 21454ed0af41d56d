package main

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// ran runs a command line that needs no server.
func ran(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	var o, e bytes.Buffer
	code = run(t.Context(), args, streams{out: &o, err: &e})
	return code, o.String(), e.String()
}

// TestUsageFaults: what is wrong is said by the name of the flag, and where to read
// on.
func TestUsageFaults(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		args string
		want []string
	}{
		{"", []string{"dev, serve,", "version", "`aivedio --help`"}},
		{"task", []string{"submit,", "download", "`aivedio task --help`"}},
		{"task get", []string{"<id>", "`aivedio task get --help`"}},
		{"dev --log-level loud", []string{"--log-level", `"warn"`, "loud"}},
		{"dev --listen 127.0.0.1:0 --fault-drop-webhook 7", []string{"not a rate from 0 to 1"}},
		{"task submit --provider p --model m --prompt x --idempotency-key \u00e9 --url http://127.0.0.1:1 --api-key ak_x --project prj_x", []string{"--idempotency-key must be printable ASCII"}},
		{"task list --url http://127.0.0.1:1 --api-key ak_\u00e9 --project prj_x", []string{"the API key has characters"}},
		{"key create --tenant x --name \x01", []string{"--name", "1 to 100 printable"}},
		{"key create --tenant x --scopes root", []string{"--scopes", "platform", "root"}},
		{"key create --tenant x --only-project", []string{"--only-project needs --project"}},
		{"key list --tenant x", []string{"--tenant", "ten_"}},
		{"simulate --webhook-secret abc!", []string{"--webhook-secret"}},
		{"key list --database postgres://x@127.0.0.1:1/y", []string{"no connection to PostgreSQL at 127.0.0.1:1: connection refused"}},
	} {
		t.Run(strings.ReplaceAll(tt.args, " ", "_"), func(t *testing.T) {
			t.Parallel()
			code, out, errs := ran(t, strings.Fields(tt.args)...)
			if code != exitUsage || out != "" {
				t.Errorf("exit %d, %q", code, out)
			}
			for _, want := range tt.want {
				if !strings.Contains(errs, want) {
					t.Errorf("%q lacks %q", errs, want)
				}
			}
		})
	}
}

func TestVersionJSON(t *testing.T) {
	t.Parallel()
	_, out, _ := ran(t, "version", "--json")
	var b buildInfo
	if err := json.Unmarshal([]byte(out), &b); err != nil || b.Version == "" || !strings.HasPrefix(b.Go, "go") {
		t.Errorf("%s: %v", out, err)
	}
}

// TestProviderJSON holds the names that programs read.
func TestProviderJSON(t *testing.T) {
	t.Parallel()
	_, out, _ := ran(t, "provider", "list", "--json")
	var answer struct{ Providers []map[string]any }
	if err := json.Unmarshal([]byte(out), &answer); err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(answer.Providers, func(p map[string]any) bool { return p["name"] == "replicate" })
	if i < 0 {
		t.Fatal(out)
	}
	for name, want := range map[string]any{"webhook": "per_task", "trust": "authentic", "cancel": true, "output_lifetime": "1h", "longest_normal": "40m"} {
		if got := answer.Providers[i][name]; got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
}
