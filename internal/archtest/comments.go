package archtest

import (
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strings"
)

// PackageComments reports packages without exactly one package comment.
func PackageComments(t *Tree) []Problem {
	var problems []Problem
	dirs, files := t.packages()
	for _, dir := range dirs {
		inTests := !slices.ContainsFunc(files[dir], func(f *File) bool { return !f.Test })
		var with []string
		for _, f := range files[dir] {
			if f.ast.Doc != nil && (inTests || !f.Test) && strings.TrimSpace(f.ast.Doc.Text()) != "" {
				with = append(with, f.Path)
			}
		}
		switch len(with) {
		case 1:
		case 0:
			problems = append(problems, Problem{Path: dir, Text: "has no package comment"})
		default:
			problems = append(problems, Problem{Path: dir, Text: "has more than one package comment: " + strings.Join(with, ", ")})
		}
	}
	return problems
}

// Documented reports exported names without a comment that begins with the
// name. Constants and variables may share the comment of their group;
// functions and methods on consecutive lines may share one that names each.
func Documented(t *Tree) []Problem {
	var problems []Problem
	for _, f := range t.Files {
		if f.Test || f.Generated {
			continue
		}
		var run shared
		for _, d := range f.ast.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				covered := run.covers(f, d, d.Doc, d.Name)
				if d.Name.IsExported() && exportedReceiver(d) && !covered {
					problems = append(problems, f.named(d.Name, d.Doc)...)
				}
			case *ast.GenDecl:
				problems = append(problems, f.documentedGroup(d)...)
			}
		}
	}
	return problems
}

func (f *File) documentedGroup(d *ast.GenDecl) []Problem {
	var problems []Problem
	for _, s := range d.Specs {
		switch s := s.(type) {
		case *ast.TypeSpec:
			if !s.Name.IsExported() {
				continue
			}
			doc := s.Doc
			if doc == nil && d.Lparen == token.NoPos {
				doc = d.Doc
			}
			problems = append(problems, f.named(s.Name, doc)...)
			problems = append(problems, f.documentedMethods(s)...)
		case *ast.ValueSpec:
			for _, name := range s.Names {
				if name.IsExported() && d.Doc == nil && s.Doc == nil && s.Comment == nil {
					problems = append(problems, f.problem(name.Pos(), "exported %s has no comment", name.Name))
				}
			}
		}
	}
	return problems
}

// documentedMethods asks each method of an exported interface for its
// contract: there is no other place where it could be written.
func (f *File) documentedMethods(s *ast.TypeSpec) []Problem {
	iface, ok := s.Type.(*ast.InterfaceType)
	if !ok {
		return nil
	}
	var problems []Problem
	var run shared
	for _, m := range iface.Methods.List {
		for _, name := range m.Names {
			covered := run.covers(f, m, m.Doc, name)
			if name.IsExported() && m.Doc == nil && m.Comment == nil && !covered {
				problems = append(problems, f.problem(name.Pos(), "method %s.%s has no comment: it is the contract", s.Name.Name, name.Name))
			}
		}
	}
	return problems
}

// shared follows declarations on consecutive lines that have one comment.
type shared struct {
	doc  string
	last int // line where the run ended so far
}

// covers reports whether the comment of the run that n continues has the name
// as a word. A declaration with a comment of its own begins a new run.
func (r *shared) covers(f *File, n ast.Node, doc *ast.CommentGroup, name *ast.Ident) bool {
	line := f.fset.Position(name.Pos()).Line
	if doc != nil {
		r.doc = doc.Text()
	} else if line != r.last+1 {
		r.doc = ""
	}
	r.last = f.fset.Position(n.End()).Line
	return doc == nil && regexp.MustCompile(`\b`+name.Name+`\b`).MatchString(r.doc)
}

// named wants a comment whose first words are the name, after an article.
func (f *File) named(name *ast.Ident, doc *ast.CommentGroup) []Problem {
	if doc == nil || strings.TrimSpace(doc.Text()) == "" {
		return []Problem{f.problem(name.Pos(), "exported %s has no comment", name.Name)}
	}
	words := strings.Fields(doc.Text())
	if slices.Contains([]string{"A", "An", "The"}, words[0]) && len(words) > 1 {
		words = words[1:]
	}
	if first := strings.TrimRight(words[0], ".,:;'"); first != name.Name && strings.TrimSuffix(first, "'s") != name.Name {
		return []Problem{f.problem(name.Pos(), "the comment of exported %s does not begin with its name", name.Name)}
	}
	return nil
}

func exportedReceiver(d *ast.FuncDecl) bool {
	if d.Recv == nil || len(d.Recv.List) == 0 {
		return true
	}
	typ := d.Recv.List[0].Type
	for {
		switch x := typ.(type) {
		case *ast.StarExpr:
			typ = x.X
		case *ast.IndexExpr:
			typ = x.X
		case *ast.IndexListExpr:
			typ = x.X
		case *ast.Ident:
			return x.IsExported()
		default:
			return true
		}
	}
}

// unfinished are the marks of work that was put off.
var unfinished = regexp.MustCompile(`\b(TODO|FIXME|XXX|HACK)\b`)

// Unfinished reports comments that put work off.
func Unfinished(t *Tree) []Problem {
	var problems []Problem
	for _, f := range t.Files {
		if f.Generated || under(f.Dir, "internal/archtest") {
			continue
		}
		for _, group := range f.ast.Comments {
			for _, c := range group.List {
				if mark := unfinished.FindString(c.Text); mark != "" {
					problems = append(problems, f.problem(c.Pos(), "%s: finish it, or file an issue", mark))
				}
			}
		}
	}
	return problems
}
