package archtest

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"strings"
)

// module is the import path of the repository's root.
const module = "github.com/aivedio/aivedio"

// Problem is one broken rule.
type Problem struct {
	// Path is the file or folder, slash-separated from the root.
	Path string
	// Line in the file; 0 when the whole file or folder is meant.
	Line int
	// Text says what is wrong and what would be right.
	Text string
}

// String returns path:line: text, the form that editors can jump to.
func (p Problem) String() string {
	if p.Line == 0 {
		return p.Path + ": " + p.Text
	}
	return fmt.Sprintf("%s:%d: %s", p.Path, p.Line, p.Text)
}

// File is one parsed Go file.
type File struct {
	// Path from the root, Dir its folder ("." for the root itself).
	Path, Dir string
	// Test is set for files that end in _test.go.
	Test bool
	// Generated is set for files with the standard "Code generated" line.
	Generated bool
	// Lines in the file.
	Lines int

	ast  *ast.File
	fset *token.FileSet
}

// problem reports text at pos.
func (f *File) problem(pos token.Pos, format string, args ...any) Problem {
	return Problem{Path: f.Path, Line: f.fset.Position(pos).Line, Text: fmt.Sprintf(format, args...)}
}

// Tree is the repository as the rules see it.
type Tree struct {
	// Files are all Go files of the module, whatever their build tags.
	Files []*File

	fsys fs.FS
}

// Load parses every Go file below the root of fsys. It leaves out what the go
// command leaves out (testdata, names that begin with "." or "_", folders
// with a go.mod of their own) and node_modules.
func Load(fsys fs.FS) (*Tree, error) {
	t := &Tree{fsys: fsys}
	err := t.walk(func(name string, source []byte) error {
		if path.Ext(name) != ".go" {
			return nil
		}
		fset := token.NewFileSet()
		parsed, err := parser.ParseFile(fset, name, source, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		t.Files = append(t.Files, &File{
			Path: name, Dir: path.Dir(name), Test: strings.HasSuffix(name, "_test.go"),
			Generated: ast.IsGenerated(parsed), Lines: lineCount(source), ast: parsed, fset: fset,
		})
		return nil
	})
	return t, err
}

// walk calls visit with every file that belongs to the module.
func (t *Tree) walk(visit func(name string, source []byte) error) error {
	return fs.WalkDir(t.fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil // removed while walking, by an editor or a running test
		case err != nil:
			return err
		case d.IsDir() && name != "." && t.outside(name):
			return fs.SkipDir
		case d.IsDir() || !d.Type().IsRegular() || strings.HasPrefix(d.Name(), "."):
			return nil
		}
		if !sourceExt[path.Ext(name)] {
			return nil
		}
		source, err := fs.ReadFile(t.fsys, name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		return visit(name, source)
	})
}

// sourceExt are the endings of files that people write and others read.
var sourceExt = map[string]bool{".go": true, ".ts": true, ".tsx": true, ".js": true, ".mjs": true, ".sh": true}

func (t *Tree) outside(dir string) bool {
	base := path.Base(dir)
	if base == "testdata" || base == "node_modules" || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") {
		return true
	}
	_, err := fs.Stat(t.fsys, path.Join(dir, "go.mod"))
	return err == nil || ignoredRoots[dir]
}

func lineCount(source []byte) int {
	n := strings.Count(string(source), "\n")
	if len(source) > 0 && source[len(source)-1] != '\n' {
		n++
	}
	return n
}

// packages returns the files of each folder, in the order of Files.
func (t *Tree) packages() (dirs []string, files map[string][]*File) {
	files = map[string][]*File{}
	for _, f := range t.Files {
		if files[f.Dir] == nil {
			dirs = append(dirs, f.Dir)
		}
		files[f.Dir] = append(files[f.Dir], f)
	}
	return dirs, files
}
