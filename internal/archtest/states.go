package archtest

import (
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"io/fs"
	"regexp"
	"strconv"
	"strings"
)

// stateColumn says which column stores the values of a domain type.
type stateColumn struct{ typ, table, column string }

// stateColumns are the types whose every value some row may hold.
var stateColumns = []stateColumn{
	{"Phase", "generation_tasks", "phase"},
	{"Cancel", "generation_tasks", "cancel"},
	{"Status", "generation_tasks", "status"},
	{"Stage", "generation_tasks", "stage"},
	{"AttemptStatus", "task_attempts", "status"},
	{"LedgerType", "credit_ledger", "ledger_type"},
	{"OperationType", "operations", "operation_type"},
	{"Breaker", "provider_accounts", "breaker"},
	{"BreakerReason", "provider_accounts", "breaker_reason"},
}

const schemaPath = "schema/schema.sql"

// ErrNoSchema is returned by States while schema/schema.sql does not exist.
var ErrNoSchema = errors.New("schema/schema.sql does not exist")

// States reports values of domain's state types that the CHECKs of
// schema/schema.sql do not know. A database that refuses a state which the
// domain can reach fails at the worst moment, in production.
func States(t *Tree) ([]Problem, error) {
	sql, err := fs.ReadFile(t.fsys, schemaPath)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNoSchema
	}
	if err != nil {
		return nil, err
	}
	text := stripComments(string(sql))
	var problems []Problem
	for _, c := range stateColumns {
		values := t.constants("domain", c.typ)
		if len(values) == 0 {
			problems = append(problems, Problem{Path: "domain", Text: "has no constants of type " + c.typ + ", which " + c.table + "." + c.column + " stores"})
			continue
		}
		checks := columnChecks(text, c.table, c.column)
		if checks == "" {
			problems = append(problems, Problem{Path: schemaPath, Text: fmt.Sprintf("table %s has no CHECK on %s, which stores domain.%s", c.table, c.column, c.typ)})
			continue
		}
		for _, v := range values {
			if v != "" && !strings.Contains(checks, "'"+v+"'") {
				problems = append(problems, Problem{Path: schemaPath, Text: fmt.Sprintf("the CHECK of %s.%s does not know domain.%s %q", c.table, c.column, c.typ, v)})
			}
		}
	}
	return problems, nil
}

// constants returns the values of the string constants of a named type.
func (t *Tree) constants(dir, typ string) []string {
	var values []string
	for _, f := range t.Files {
		if f.Dir != dir || f.Test {
			continue
		}
		for _, d := range f.ast.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.CONST {
				continue
			}
			for _, s := range g.Specs {
				values = append(values, typedStrings(s.(*ast.ValueSpec), typ)...)
			}
		}
	}
	return values
}

func typedStrings(s *ast.ValueSpec, typ string) []string {
	if id, ok := s.Type.(*ast.Ident); !ok || id.Name != typ {
		return nil
	}
	var values []string
	for _, v := range s.Values {
		lit, ok := v.(*ast.BasicLit)
		if !ok || lit.Kind != token.STRING {
			continue
		}
		if text, err := strconv.Unquote(lit.Value); err == nil {
			values = append(values, text)
		}
	}
	return values
}

var sqlComment = regexp.MustCompile(`(?m)--.*$`)

func stripComments(sql string) string { return sqlComment.ReplaceAllString(sql, "") }

var checkWord = regexp.MustCompile(`(?i)\bCHECK\s*\(`)

// columnChecks returns the CHECK expressions of a table that name the column,
// joined; "" when there are none.
func columnChecks(sql, table, column string) string {
	head := regexp.MustCompile(`(?i)CREATE\s+TABLE\s+(IF\s+NOT\s+EXISTS\s+)?(\w+\.)?"?` + table + `"?\s*\(`)
	at := head.FindStringIndex(sql)
	if at == nil {
		return ""
	}
	body := balanced(sql[at[1]-1:])
	word := regexp.MustCompile(`\b` + column + `\b`)
	var checks []string
	for _, at := range checkWord.FindAllStringIndex(body, -1) {
		if check := balanced(body[at[1]-1:]); word.MatchString(check) {
			checks = append(checks, check)
		}
	}
	return strings.Join(checks, "\n")
}

// balanced returns the text from the opening parenthesis that s begins with
// to its closing one. Parentheses in SQL strings do not count.
func balanced(s string) string {
	depth, quoted := 0, false
	for i := range len(s) {
		switch c := s[i]; {
		case c == '\'':
			quoted = !quoted
		case quoted:
		case c == '(':
			depth++
		case c == ')':
			if depth--; depth == 0 {
				return s[:i+1]
			}
		}
	}
	return s
}
