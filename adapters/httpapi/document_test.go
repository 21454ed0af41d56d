package httpapi

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/internal/wire"
	"github.com/aivedio/aivedio/ports"
)

// tree is any JSON object.
type tree = map[string]any

func parsed(t *testing.T, raw []byte) tree {
	t.Helper()
	var doc tree
	if err := json.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

// TestOpenAPICoversRoutes compares the document with the mux, both ways.
func TestOpenAPICoversRoutes(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	served := map[string]bool{}
	for _, rt := range f.server.routes() {
		served[rt.method+" "+rt.pattern] = true
	}
	documented := map[string]bool{}
	operations := map[string]bool{}
	for path, item := range parsed(t, openAPI)["paths"].(tree) {
		for method, op := range item.(tree) {
			documented[strings.ToUpper(method)+" "+path] = true
			o := op.(tree)
			id := o["operationId"].(string)
			if operations[id] || o["summary"] == "" || o["responses"] == nil || o["security"] == nil {
				t.Errorf("%s %s: incomplete, or the id %q is used twice", method, path, id)
			}
			operations[id] = true
		}
	}
	if diff := cmp.Diff(served, documented); diff != "" {
		t.Errorf("routes (-served +documented):\n%s", diff)
	}
}

// TestReferencesResolve follows every $ref of both documents.
func TestReferencesResolve(t *testing.T) {
	t.Parallel()
	for name, raw := range map[string][]byte{"openapi": openAPI, "asyncapi": asyncAPI} {
		doc := parsed(t, raw)
		var walk func(v any)
		walk = func(v any) {
			switch v := v.(type) {
			case tree:
				if ref, ok := v["$ref"].(string); ok {
					at := any(doc)
					for _, part := range strings.Split(strings.TrimPrefix(ref, "#/"), "/") {
						at = at.(tree)[part]
						if at == nil {
							t.Errorf("%s: %s leads nowhere", name, ref)
							return
						}
					}
				}
				for _, child := range v {
					walk(child)
				}
			case []any:
				for _, child := range v {
					walk(child)
				}
			}
		}
		walk(doc)
	}
}

// TestSchemasMatchTypes compares the properties of schemas with what is really
// encoded, so that neither can change alone.
func TestSchemasMatchTypes(t *testing.T) {
	t.Parallel()
	stored := ports.StoredEvent{Event: domain.Event{Error: &domain.PublicError{}}}
	rest, async := parsed(t, openAPI), parsed(t, asyncAPI)
	for _, tt := range []struct {
		doc   tree
		name  string
		value any
	}{
		{rest, "Task", wire.TaskOf(ports.TaskView{})}, {rest, "Attempt", wire.Attempt{}}, {rest, "Error", wire.Error{}},
		{rest, "Event", wire.EventOf(stored)}, {rest, "TaskAnswer", taskAnswer{}}, {rest, "TaskPage", taskPage{}},
		{rest, "Timeline", timelineAnswer{}}, {rest, "TimelineEntry", timelineEntry{}}, {rest, "Asset", assetView{}},
		{rest, "InboxRow", inboxView{Payload: &[]byte{1}, PayloadShape: &json.RawMessage{'1'}}}, {rest, "Conflict", conflictView{}}, {rest, "Case", caseView{}},
		{rest, "Requeue", requeueView{}}, {rest, "RequeueGroup", groupView{}}, {rest, "ProviderAccount", accountView{}}, {rest, "Compensation", compensationView{}}, {rest, "Chore", choreView{}}, {rest, "Waiting", waitingView{}}, {rest, "Problem", Problem{}}, {rest, "Fault", Fault{}},
		{async, "Event", wire.EventOf(stored)}, {async, "BusMessage", wire.MessageOf(stored)}, {async, "Error", wire.Error{}},
	} {
		raw, err := json.Marshal(tt.value)
		if err != nil {
			t.Fatal(err)
		}
		schema, ok := tt.doc["components"].(tree)["schemas"].(tree)[tt.name].(tree)
		if !ok {
			t.Errorf("no schema %s", tt.name)
			continue
		}
		if diff := cmp.Diff(keys(parsed(t, raw)), keys(schema["properties"].(tree))); diff != "" {
			t.Errorf("%s (-encoded +schema):\n%s", tt.name, diff)
		}
	}
}

func keys(m tree) []string {
	var names []string
	for k := range m {
		names = append(names, k)
	}
	slices.Sort(names)
	return names
}

// TestEnumsMatchDomain compares the lists of words.
func TestEnumsMatchDomain(t *testing.T) {
	t.Parallel()
	task := parsed(t, openAPI)["components"].(tree)["schemas"].(tree)["Task"].(tree)["properties"].(tree)
	for field, want := range map[string][]string{
		"status": words(domain.Statuses()), "phase": words(domain.Phases()), "cancel": words(domain.Cancels()), "stage": words(domain.Stages()),
	} {
		var got []string
		for _, w := range task[field].(tree)["enum"].([]any) {
			got = append(got, w.(string))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-domain +schema):\n%s", field, diff)
		}
	}
}

func words[T ~string](list []T) []string {
	out := make([]string, len(list))
	for i, v := range list {
		out[i] = string(v)
	}
	return out
}

// TestDocumentedCodes finds every code of a problem in docs/api.md.
func TestDocumentedCodes(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	all := []*Problem{
		problemMalformed, problemUnknown, problemTruncated, problemQuery, problemCursor, problemFields, problemTooLarge,
		problemMediaType, problemHeaders, problemInsecure, problemNoRoute, problemMethod, problemAnonymous, problemScope,
		problemNotFound, problemURLExpired, problemURLInvalid, problemRange, problemInternal, problemUnavailable,
		problemOverloaded, problemLimited, problemDelivery, problemCallback,
	}
	for _, tr := range translations {
		all = append(all, tr.problem)
	}
	for _, p := range all {
		if !strings.Contains(string(text), "| `"+p.Code+"` |") {
			t.Errorf("docs/api.md does not list %s", p.Code)
		}
	}
}
