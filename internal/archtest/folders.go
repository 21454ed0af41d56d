package archtest

import (
	"io/fs"
	"path"
	"slices"
	"strings"
)

// topFolders is the first level of the tree that docs/architecture.md draws.
var topFolders = []string{"adapters", "app", "cmd", "deploy", "docs", "domain", "internal", "ports", "queries", "schema", "tools", "web"}

// ignoredRoots are in .gitignore and hold no source.
var ignoredRoots = map[string]bool{"bin": true, "data": true, "node_modules": true}

// emptyNames are package names that say nothing about what is inside.
var emptyNames = []string{"util", "utils", "common", "helper", "helpers", "types", "models", "misc", "shared", "base"}

// Folders reports folders of the first level that the tree does not have, and
// packages whose name says nothing.
func Folders(t *Tree) ([]Problem, error) {
	entries, err := fs.ReadDir(t.fsys, ".")
	if err != nil {
		return nil, err
	}
	var problems []Problem
	for _, e := range entries {
		name := e.Name()
		if e.IsDir() && !strings.HasPrefix(name, ".") && !ignoredRoots[name] && !slices.Contains(topFolders, name) {
			problems = append(problems, Problem{Path: name, Text: "unknown top-level folder: the tree has " + strings.Join(topFolders, " ")})
		}
	}
	dirs, _ := t.packages()
	for _, dir := range dirs {
		if slices.Contains(emptyNames, path.Base(dir)) {
			problems = append(problems, Problem{Path: dir, Text: "a package is named after what it holds, not " + path.Base(dir)})
		}
	}
	return problems, nil
}

// maxLines is the hard limit of a file; see the list below for the rest.
const maxLines = 600

// longFiles may be longer, each for the reason given.
var longFiles = map[string]string{}

// Sizes reports files over the limit that are not generated and not on the
// list, and entries of the list that are not needed any more.
func Sizes(t *Tree) ([]Problem, error) {
	return sizes(t, longFiles)
}

func sizes(t *Tree, listed map[string]string) ([]Problem, error) {
	generated := map[string]bool{}
	for _, f := range t.Files {
		generated[f.Path] = f.Generated
	}
	long := map[string]bool{}
	var problems []Problem
	err := t.walk(func(name string, source []byte) error {
		if generated[name] || strings.Contains(name, "/dist/") || lineCount(source) <= maxLines {
			return nil
		}
		long[name] = true
		if listed[name] == "" {
			problems = append(problems, Problem{Path: name, Text: "is over 600 lines: split it by noun, or list it with a reason"})
		}
		return nil
	})
	for name := range listed {
		if !long[name] {
			problems = append(problems, Problem{Path: name, Text: "is on the list of long files and is not long"})
		}
	}
	return problems, err
}
