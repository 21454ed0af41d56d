package archtest

import (
	"slices"
	"strconv"
	"strings"
)

// domainStd is all that domain may import: nothing that knows a clock of its
// own, the network, the disk or goroutines.
var domainStd = []string{"cmp", "errors", "fmt", "maps", "slices", "strconv", "strings", "time"}

// testLibs are the third-party modules that tests of the core may use.
var testLibs = []string{"github.com/google/go-cmp", "pgregory.net/rapid", "go.uber.org/goleak"}

// Arrows reports imports that point the wrong way.
func Arrows(t *Tree) []Problem {
	var problems []Problem
	for _, f := range t.Files {
		for _, spec := range f.ast.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				continue // the parser has accepted it, so this cannot be
			}
			if spec.Name != nil && spec.Name.Name == "." {
				problems = append(problems, f.problem(spec.Pos(), "dot import of %s hides where names come from", imported))
			}
			if why := wrongArrow(f.Dir, f.Test, imported); why != "" {
				problems = append(problems, f.problem(spec.Pos(), "%s must not import %s: %s", f.Dir, imported, why))
			}
		}
	}
	return problems
}

// wrongArrow says why a file in dir must not import a package, or "".
func wrongArrow(dir string, test bool, imported string) string {
	inside, ours := strings.CutPrefix(imported, module)
	inside = strings.TrimPrefix(inside, "/")
	if !ours {
		return wrongForeign(dir, test, imported)
	}
	switch {
	case under(inside, "internal/archtest"):
		return "nothing imports the rules"
	case inside == "internal/testenv" && !test && !under(dir, "internal/testenv"):
		return "only tests do (commands use internal/testenv/services)"
	case inside == "ports/porttest" && !test && dir != inside:
		return "only tests do"
	case under(inside, unit(dir)) || slices.ContainsFunc(mayImport(dir, test), func(p string) bool { return matches(inside, p) }):
		return ""
	case under(inside, "adapters") && under(dir, "adapters"):
		return "no adapter imports another; share through a port or through cmd"
	}
	return "arrows point inward (" + strings.Join(append(mayImport(dir, test), "itself"), ", ") + ")"
}

// wrongForeign judges imports from the standard library and other modules.
func wrongForeign(dir string, test bool, imported string) string {
	first, _, _ := strings.Cut(imported, "/")
	std := !strings.Contains(first, ".")
	core := slices.ContainsFunc([]string{"domain", "ports", "app"}, func(p string) bool { return under(dir, p) })
	testCode := test || under(dir, "ports/porttest")
	switch {
	case std && under(dir, "domain") && !test && !slices.Contains(domainStd, imported):
		return "domain is pure and uses only " + strings.Join(domainStd, " ")
	case std || !core:
		return ""
	case testCode && slices.ContainsFunc(testLibs, func(l string) bool { return under(imported, l) }):
		return ""
	}
	return "domain, ports and app use no third-party module (an adapter behind a port does)"
}

// unit returns the part of the tree whose packages may import each other
// freely: one adapter, one vendor, one internal package, or a whole layer.
func unit(dir string) string {
	parts := strings.Split(dir, "/")
	depth := 1
	switch {
	case under(dir, "adapters/providers"):
		depth = 3
	case under(dir, "adapters"), under(dir, "internal"):
		depth = 2
	case under(dir, "ports/porttest"):
		depth = 2
	}
	return strings.Join(parts[:min(depth, len(parts))], "/")
}

// mayImport lists what a package may import of this module besides its own
// unit; "x/..." stands for x and everything below it.
func mayImport(dir string, test bool) []string {
	layer, _, _ := strings.Cut(dir, "/")
	allowed := layerImports(dir, layer)
	if !test || layer == "domain" || under(dir, "internal/simulator") {
		return allowed
	}
	return append(allowed, "domain", "ports/...", "internal/...", "adapters/memory", "schema")
}

func layerImports(dir, layer string) []string {
	switch layer {
	case "ports":
		return []string{"domain", "ports"}
	case "app":
		return []string{"domain", "ports"}
	case "adapters":
		return adapterImports(dir)
	case "cmd":
		return []string{"..."}
	case "internal":
		return internalImports(dir)
	}
	return nil // domain, schema, web, docs
}

func adapterImports(dir string) []string {
	allowed := []string{"domain", "ports", "internal/wire", "internal/failpoint"}
	switch unit(dir) {
	case "adapters/httpapi":
		return append(allowed, "app/...", "web/...", "docs/...")
	case "adapters/stream":
		return append(allowed, "app/...")
	case "adapters/pgstore":
		return append(allowed, "schema")
	}
	if under(dir, "adapters/providers") && dir != "adapters/providers" {
		return append(allowed, "adapters/providers", "adapters/providers/internal/...")
	}
	return allowed
}

func internalImports(dir string) []string {
	switch unit(dir) {
	case "internal/simulator", "internal/failpoint", "internal/archtest":
		return nil
	case "internal/testenv":
		return []string{"schema"}
	case "internal/e2e": // like a command, it stands outside and sees everything
		return []string{"..."}
	}
	return []string{"domain", "ports", "schema", "internal/..."}
}

func matches(path, pattern string) bool {
	if pattern == "..." {
		return true
	}
	if root, ok := strings.CutSuffix(pattern, "/..."); ok {
		return under(path, root)
	}
	return path == pattern
}

// under reports whether path is root or below it.
func under(path, root string) bool {
	return path == root || strings.HasPrefix(path, root+"/")
}
