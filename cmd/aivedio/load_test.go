package main

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func configFrom(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "c.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestEveryFaultAtOnce: those of the file's form, of the environment and of the
// values come together, by line and name, and without Go's types.
func TestEveryFaultAtOnce(t *testing.T) {
	t.Setenv("AIVEDIO_POLLS", "few")
	file := configFrom(t, "listen: [a]\nlissten: x\nstop_timeout: soon\ndatabase:\n  conns: many\nredis: 5\nallow_private: perhaps\ncallback_rate: fast\nlog_level: loud\n")
	_, err := checkedConfig(file, nil)
	for _, want := range []string{
		"c.yaml line 1: a list is not a text", "c.yaml line 2: lissten is not a setting", `line 3: "soon" is not a duration such as 20s`,
		`line 5: "many" is not a whole number`, `line 6: "5" is not a group of settings`, `line 7: "perhaps" is not true or false`,
		`line 8: "fast" is not a number`, `AIVEDIO_POLLS: "few" is not a whole number`, "log_level must be", "database.url", "providers:",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in\n%v", want, err)
		}
	}
	for _, no := range []string{"main.", "time.", "unmarshal", "!!"} {
		if err != nil && strings.Contains(err.Error(), no) {
			t.Errorf("%q is no word for a user:\n%v", no, err)
		}
	}
}

// TestUnreadableFile: of a file that is no YAML nothing else can be said.
func TestUnreadableFile(t *testing.T) {
	t.Parallel()
	for name, file := range map[string]string{"syntax": configFrom(t, "listen: x\na: b: c\n"), "absent": filepath.Join(t.TempDir(), "c.yaml")} {
		_, err := checkedConfig(file, nil)
		if err == nil || !strings.Contains(err.Error(), "c.yaml") || strings.Contains(err.Error(), "providers") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestVariableOf: every variable can be named from what its parser reports.
func TestVariableOf(t *testing.T) {
	t.Parallel()
	var walk func(reflect.Type)
	walk = func(config reflect.Type) {
		for i := range config.NumField() {
			f := config.Field(i)
			if f.Type.Kind() == reflect.Struct {
				walk(f.Type)
			}
			// A text always parses, so its name is never asked for.
			if want := f.Tag.Get("env"); want != "" && f.Type.Kind() != reflect.String {
				if got := variableOf(reflect.TypeFor[Config](), f.Name, f.Type); got != want {
					t.Errorf("%s is named %q, want %q", f.Name, got, want)
				}
			}
		}
	}
	walk(reflect.TypeFor[Config]())
}
