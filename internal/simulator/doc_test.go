package simulator

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// handbook is docs/simulator.md.
func handbook(t *testing.T) string {
	t.Helper()
	doc, err := os.ReadFile(filepath.Join("..", "..", "docs", "simulator.md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(doc)
}

// Every word that a prompt may hold has its row in the handbook: faults with
// their short form and their flag.
func TestHandbookHasEveryWord(t *testing.T) {
	t.Parallel()
	doc := handbook(t)
	short := map[string]string{}
	for word, long := range faultWords {
		short[long] = "`, `" + word
	}
	for f := range reflect.TypeFor[Faults]().Fields() {
		key := f.Tag.Get("json")
		row := "\n| `" + key + short[key] + "` | `--fault-" + strings.ReplaceAll(key, "_", "-") + "` |"
		if !strings.Contains(doc, row) {
			t.Errorf("docs/simulator.md has no row that begins with %s", row)
		}
	}
	for _, word := range jobWords {
		if !strings.Contains(doc, "\n| `"+word+"` | ") {
			t.Errorf("docs/simulator.md does not tell of the word %s", word)
		}
	}
}

// What the handbook shows as a word is one.
func TestHandbookWordsExist(t *testing.T) {
	t.Parallel()
	found := directivePattern.FindAllString(handbook(t), -1)
	if len(found) < 10 {
		t.Fatalf("only %d words found", len(found))
	}
	for _, word := range found {
		if _, err := parseDirective(word, nil); err != nil {
			t.Errorf("%s: %v", word, err)
		}
	}
}

// Every route is in the handbook and in the package comment.
func TestEveryRouteIsDocumented(t *testing.T) {
	t.Parallel()
	comment, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	patterns := regexp.MustCompile(`mux\.Handle(?:Func)?\("([A-Z]+) ([^"]+)"`)
	spaces := regexp.MustCompile(` +`)
	routes := 0
	for _, file := range []string{"api.go", "control.go"} {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range patterns.FindAllStringSubmatch(string(source), -1) {
			routes++
			if !strings.Contains(handbook(t), "`"+m[1]+" "+m[2]) {
				t.Errorf("docs/simulator.md lacks %s %s", m[1], m[2])
			}
			if !strings.Contains(spaces.ReplaceAllString(string(comment), " "), m[2]) {
				t.Errorf("doc.go lacks %s %s", m[1], m[2])
			}
		}
	}
	if routes < 15 {
		t.Errorf("only %d routes found", routes)
	}
}
