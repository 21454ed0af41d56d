package archtest

import (
	"errors"
	"os"
	"testing"
)

// repository is parsed once; the checks only read it.
func repository(t *testing.T) *Tree {
	t.Helper()
	tree, err := Load(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	if len(tree.Files) < 10 {
		t.Fatalf("found only %d Go files: is this the repository?", len(tree.Files))
	}
	return tree
}

func TestRepository(t *testing.T) {
	t.Parallel()
	tree := repository(t)
	plain := func(check func(*Tree) []Problem) func(*Tree) ([]Problem, error) {
		return func(t *Tree) ([]Problem, error) { return check(t), nil }
	}
	rules := []struct {
		name  string
		check func(*Tree) ([]Problem, error)
	}{
		{"arrows", plain(Arrows)},
		{"folders", Folders},
		{"sizes", Sizes},
		{"clock", plain(Clock)},
		{"package comments", plain(PackageComments)},
		{"documented", plain(Documented)},
		{"unfinished", plain(Unfinished)},
		{"states", States},
	}
	for _, rule := range rules {
		t.Run(rule.name, func(t *testing.T) {
			t.Parallel()
			problems, err := rule.check(tree)
			if errors.Is(err, ErrNoSchema) {
				t.Skip(err)
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range problems {
				t.Error(p)
			}
		})
	}
}
