package archtest

import (
	"strings"
	"testing"
	"testing/fstest"
)

// load parses a small tree given as path → content.
func load(t *testing.T, files map[string]string) *Tree {
	t.Helper()
	fsys := fstest.MapFS{}
	for name, content := range files {
		fsys[name] = &fstest.MapFile{Data: []byte(content)}
	}
	tree, err := Load(fsys)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// expect wants exactly one problem that contains want, or none when want is "".
func expect(t *testing.T, problems []Problem, want string) {
	t.Helper()
	switch {
	case want == "" && len(problems) > 0:
		t.Errorf("unexpected problem: %v", problems)
	case want != "" && len(problems) != 1:
		t.Errorf("got %d problems %v, want one with %q", len(problems), problems, want)
	case want != "" && !strings.Contains(problems[0].String(), want):
		t.Errorf("got %v, want one with %q", problems[0], want)
	}
}

func TestArrows(t *testing.T) {
	t.Parallel()
	const m = module + "/"
	tests := []struct{ file, imports, want string }{
		{"domain/a.go", "strings", ""},
		{"domain/a.go", "os", "domain is pure"},
		{"domain/a.go", "context", "domain is pure"},
		{"domain/a.go", m + "ports", "arrows point inward"},
		{"domain/a.go", "github.com/google/uuid", "no third-party module"},
		{"domain/a_test.go", "os", ""},
		{"domain/a_test.go", "pgregory.net/rapid", ""},
		{"domain/a_test.go", m + "internal/testenv", "arrows point inward"},
		{"ports/a.go", m + "domain", ""},
		{"ports/a.go", m + "app", "arrows point inward"},
		{"ports/a.go", "github.com/jackc/pgx/v5", "no third-party module"},
		{"ports/a.go", m + "ports/porttest", "only tests do"},
		{"ports/porttest/a.go", "github.com/google/go-cmp/cmp", ""},
		{"ports/porttest/a.go", m + "adapters/memory", "arrows point inward"},
		{"app/a.go", m + "ports", ""},
		{"app/a.go", m + "internal/wire", "arrows point inward"},
		{"app/a.go", m + "adapters/memory", "arrows point inward"},
		{"app/a_test.go", m + "adapters/memory", ""},
		{"app/a_test.go", m + "adapters/pgstore", "arrows point inward"},
		{"app/a.go", "golang.org/x/sync/errgroup", "no third-party module"},
		{"adapters/pgstore/a.go", m + "adapters/pgstore/internal/dbgen", ""},
		{"adapters/pgstore/a.go", m + "adapters/memory", "no adapter imports another"},
		{"adapters/pgstore/a.go", m + "app", "arrows point inward"},
		{"adapters/pgstore/a.go", m + "internal/testenv", "only tests do"},
		{"adapters/pgstore/a.go", m + "internal/failpoint", ""},
		{"adapters/pgstore/a_test.go", m + "internal/testenv", ""},
		{"adapters/pgstore/a_test.go", m + "ports/porttest", ""},
		{"adapters/pgstore/a_test.go", m + "internal/archtest", "nothing imports the rules"},
		{"adapters/pgstore/a_test.go", m + "adapters/rocketbus", "no adapter imports another"},
		{"adapters/httpapi/a.go", m + "app", ""},
		{"adapters/stream/a.go", m + "app", ""},
		{"adapters/stream/a.go", m + "adapters/httpapi", "no adapter imports another"},
		{"adapters/providers/luma/a.go", m + "adapters/providers/kling", "no adapter imports another"},
		{"adapters/providers/luma/a.go", m + "adapters/providers", ""},
		{"adapters/providers/luma/a.go", m + "internal/simulator", "arrows point inward"},
		{"internal/simulator/a.go", m + "adapters/providers/luma", "arrows point inward"},
		{"internal/simulator/a_test.go", m + "adapters/providers/luma", "arrows point inward"},
		{"internal/simulator/a.go", m + "internal/wire", "arrows point inward"},
		{"internal/simulator/a.go", m + "internal/simulator/video", ""},
		{"internal/wire/a.go", m + "domain", ""},
		{"internal/wire/a.go", m + "app", "arrows point inward"},
		{"schema/a.go", m + "domain", "arrows point inward"},
		{"cmd/aivedio/a.go", m + "adapters/pgstore", ""},
		{"cmd/aivedio/a.go", m + "internal/testenv/services", ""},
		{"cmd/aivedio/a.go", m + "internal/testenv", "only tests do"},
	}
	for _, tt := range tests {
		t.Run(tt.file+" imports "+tt.imports, func(t *testing.T) {
			t.Parallel()
			tree := load(t, map[string]string{tt.file: "package x\n\nimport _ \"" + tt.imports + "\"\n"})
			expect(t, Arrows(tree), tt.want)
		})
	}
}

func TestArrowsSeeEveryBuildTagAndDotImports(t *testing.T) {
	t.Parallel()
	expect(t, Arrows(load(t, map[string]string{
		"domain/a.go": "//go:build plan9\n\npackage domain\n\nimport _ \"net\"\n",
	})), "domain is pure")
	expect(t, Arrows(load(t, map[string]string{
		"domain/a.go": "package domain\n\nimport . \"strings\"\n",
	})), "dot import")
}

func TestLoadLeavesOutWhatGoLeavesOut(t *testing.T) {
	t.Parallel()
	tree := load(t, map[string]string{
		"a.go": "package a\n", "testdata/b.go": "not go", "_c/c.go": "not go", ".d/d.go": "not go",
		"node_modules/e.go": "not go", "tools/go.mod": "module tools\n", "tools/f.go": "not go",
	})
	if len(tree.Files) != 1 {
		t.Errorf("loaded %d files, want 1", len(tree.Files))
	}
}

func TestFolders(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ file, want string }{
		"known":      {"domain/a.go", ""},
		"ignored":    {"bin/a.txt", ""},
		"hidden":     {".github/a.yml", ""},
		"unknown":    {"pkg/a.txt", "unknown top-level folder"},
		"empty name": {"internal/util/a.go", "named after what it holds"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			problems, err := Folders(load(t, map[string]string{tt.file: "package a\n"}))
			if err != nil {
				t.Fatal(err)
			}
			expect(t, problems, tt.want)
		})
	}
}

func TestSizes(t *testing.T) {
	t.Parallel()
	long := "package a\n" + strings.Repeat("\n", maxLines)
	tests := map[string]struct {
		path, content string
		listed        map[string]string
		want          string
	}{
		"at the limit": {"app/a.go", strings.TrimSuffix(long, "\n"), nil, ""},
		"over":         {"app/a.go", long, nil, "over 600 lines"},
		"script":       {"web/src/a.ts", long, nil, "over 600 lines"},
		"listed":       {"app/a.go", long, map[string]string{"app/a.go": "one table"}, ""},
		"generated":    {"app/a.go", "// Code generated by x. DO NOT EDIT.\n\n" + long, nil, ""},
		"built":        {"web/dist/a.js", long, nil, ""},
		"stale entry":  {"app/a.go", "package a\n", map[string]string{"app/a.go": "one table"}, "is not long"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			problems, err := sizes(load(t, map[string]string{tt.path: tt.content}), tt.listed)
			if err != nil {
				t.Fatal(err)
			}
			expect(t, problems, tt.want)
		})
	}
}

func TestClock(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ file, body, want string }{
		"now":         {"domain/a.go", "import \"time\"\n\nvar a = time.Now()\n", "time.Now in domain"},
		"alias":       {"domain/a.go", "import clock \"time\"\n\nvar a = clock.Now\n", "time.Now in domain"},
		"since":       {"domain/a.go", "import \"time\"\n\nvar a = time.Since\n", "time.Since in domain"},
		"constant":    {"domain/a.go", "import \"time\"\n\nvar a = time.Second\n", ""},
		"other Now":   {"domain/a.go", "var a = time.Now()\n", ""},
		"test":        {"domain/a_test.go", "import \"time\"\n\nvar a = time.Now()\n", ""},
		"outside":     {"app/a.go", "import \"time\"\n\nvar a = time.Now()\n", ""},
		"sub-package": {"domain/x/a.go", "import \"time\"\n\nvar a = time.Now()\n", "time.Now in domain"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			expect(t, Clock(load(t, map[string]string{tt.file: "package a\n\n" + tt.body})), tt.want)
		})
	}
}

func TestPackageComments(t *testing.T) {
	t.Parallel()
	const with, without = "// Package a is.\npackage a\n", "package a\n"
	tests := map[string]struct {
		files map[string]string
		want  string
	}{
		"one":             {map[string]string{"app/a.go": with, "app/b.go": without}, ""},
		"none":            {map[string]string{"app/a.go": without}, "has no package comment"},
		"two":             {map[string]string{"app/a.go": with, "app/b.go": with}, "more than one"},
		"only in a test":  {map[string]string{"app/a.go": without, "app/a_test.go": with}, "has no package comment"},
		"tests only":      {map[string]string{"app/a_test.go": with}, ""},
		"empty comment":   {map[string]string{"app/a.go": "//\npackage a\n"}, "has no package comment"},
		"generated alone": {map[string]string{"app/a.go": "// Code generated by x. DO NOT EDIT.\n\npackage a\n"}, "has no package comment"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			expect(t, PackageComments(load(t, tt.files)), tt.want)
		})
	}
}

func TestDocumented(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ body, want string }{
		"func":              {"// Do does.\nfunc Do() {}\n", ""},
		"bare func":         {"func Do() {}\n", "exported Do has no comment"},
		"unexported":        {"func do() {}\n", ""},
		"wrong name":        {"// Does it.\nfunc Do() {}\n", "does not begin with its name"},
		"article":           {"// A Thing is.\ntype Thing int\n", ""},
		"bare type":         {"type Thing int\n", "exported Thing has no comment"},
		"type in a group":   {"// Group.\ntype (\n\tThing int\n)\n", "exported Thing has no comment"},
		"method":            {"type t int\n\nfunc (t) Do() {}\n", ""},
		"exported receiver": {"// T is.\ntype T[K any] int\n\nfunc (*T[K]) Do() {}\n", "exported Do has no comment"},
		"shared comment":    {"// Do and Undo change it.\nfunc Do() {}\nfunc Undo() {}\n", ""},
		"not shared":        {"// Do and Undo change it.\nfunc Do() {}\n\nfunc Undo() {}\n", "exported Undo has no comment"},
		"const group":       {"// Colours.\nconst (\n\tRed = 1\n\tBlue = 2\n)\n", ""},
		"bare const":        {"const Red = 1\n", "exported Red has no comment"},
		"line comment":      {"const (\n\tRed = 1 // red\n)\n", ""},
		"interface method":  {"// I is.\ntype I interface {\n\tDo()\n}\n", "method I.Do has no comment"},
		"with contract":     {"// I is.\ntype I interface {\n\t// Do does.\n\tDo()\n}\n", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			expect(t, Documented(load(t, map[string]string{"app/a.go": "package a\n\n" + tt.body})), tt.want)
		})
	}
}

func TestUnfinished(t *testing.T) {
	t.Parallel()
	mark := "TO" + "DO"
	expect(t, Unfinished(load(t, map[string]string{"app/a.go": "package a\n\n// " + mark + ": later.\n"})), mark)
	expect(t, Unfinished(load(t, map[string]string{"app/a.go": "package a\n\n// Later is now.\n"})), "")
}
