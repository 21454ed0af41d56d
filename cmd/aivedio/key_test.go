package main

import (
	"io"
	"strings"
	"testing"
)

// TestKeyOnlyProject refuses to make a key for everything where one for a project
// was asked for.
func TestKeyOnlyProject(t *testing.T) {
	t.Parallel()
	cmd := keyCreateCmd{databaseFlag: databaseFlag{Database: "postgres://nowhere.invalid/x"}, Tenant: "acme", OnlyProject: true}
	err := cmd.Run(t.Context(), streams{out: io.Discard, err: io.Discard})
	if err == nil || !strings.Contains(err.Error(), "--project") {
		t.Errorf("got %v", err)
	}
}
