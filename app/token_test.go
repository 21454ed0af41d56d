package app_test

import (
	"strings"
	"testing"

	"github.com/aivedio/aivedio/app"
	"github.com/aivedio/aivedio/domain"
)

func TestCallbackTokens(t *testing.T) {
	t.Parallel()
	older, newer := []byte("an older key of ours"), []byte("a newer key of ours!")
	first, err := app.NewCallbackTokens(older)
	if err != nil {
		t.Fatal(err)
	}
	rotated, err := app.NewCallbackTokens(newer, older)
	if err != nil {
		t.Fatal(err)
	}
	attempt := domain.AttemptID{ID: newID()}
	token := first.Make(attempt)
	if again := first.Make(attempt); again != token || len(token) != 64 {
		t.Fatalf("token %q is not the same again, or not 64 characters: %q", token, again)
	}
	for name, tokens := range map[string]*app.CallbackTokens{"its maker": first, "a rotated set": rotated} {
		if got, ok := tokens.Check(token); !ok || got != attempt {
			t.Errorf("%s does not know the token", name)
		}
	}
	if _, ok := first.Check(rotated.Make(attempt)); ok {
		t.Error("a token of another key is accepted")
	}
	for i := range token {
		for _, c := range "Aa0_" {
			if forged := token[:i] + string(c) + token[i+1:]; forged != token {
				if _, ok := first.Check(forged); ok {
					t.Fatalf("a change of character %d is accepted", i)
				}
			}
		}
	}
	for _, bad := range []string{"", "x", strings.Repeat("A", 64), token + "A", token[:63], token + "=", "\n" + token[1:]} {
		if _, ok := first.Check(bad); ok {
			t.Errorf("%q is accepted", bad)
		}
	}
}

func TestCallbackTokensNeedKeys(t *testing.T) {
	t.Parallel()
	if _, err := app.NewCallbackTokens(); err == nil {
		t.Error("no key is accepted")
	}
	if _, err := app.NewCallbackTokens([]byte("short")); err == nil {
		t.Error("a short key is accepted")
	}
}

func FuzzCallbackTokenCheck(f *testing.F) {
	tokens, err := app.NewCallbackTokens([]byte("0123456789abcdef"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(tokens.Make(domain.AttemptID{ID: newID()}))
	f.Add("")
	f.Add(strings.Repeat("-", 64))
	f.Fuzz(func(t *testing.T, token string) {
		if id, ok := tokens.Check(token); ok && tokens.Make(id) != token {
			t.Errorf("%q is accepted and is not the token of %s", token, id)
		}
	})
}
