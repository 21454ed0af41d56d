package archtest

import (
	"go/ast"
	"slices"
	"strconv"
)

// clockNames are the names of package time that read the clock or wait.
var clockNames = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTicker", "NewTimer", "Local"}

// Clock reports uses of the clock in domain, where time is an argument. Local
// counts as one: it depends on the machine.
func Clock(t *Tree) []Problem {
	var problems []Problem
	for _, f := range t.Files {
		if f.Test || !under(f.Dir, "domain") {
			continue
		}
		pkg := timeName(f.ast)
		ast.Inspect(f.ast, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if x, ok := sel.X.(*ast.Ident); ok && x.Name == pkg && slices.Contains(clockNames, sel.Sel.Name) {
				problems = append(problems, f.problem(sel.Pos(), "time.%s in domain: take the time as an argument", sel.Sel.Name))
			}
			return true
		})
	}
	return problems
}

// timeName returns the name under which a file imports package time, or "".
func timeName(f *ast.File) string {
	for _, spec := range f.Imports {
		if p, err := strconv.Unquote(spec.Path.Value); err != nil || p != "time" {
			continue
		}
		if spec.Name != nil {
			return spec.Name.Name
		}
		return "time"
	}
	return ""
}
