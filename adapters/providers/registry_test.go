package providers

import (
	"slices"
	"strings"
	"testing"

	"github.com/aivedio/aivedio/ports"
)

const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

func TestRegistry(t *testing.T) {
	t.Parallel()
	given := map[string][]ports.Account{
		"replicate":   {{ID: "main", APIKey: "k", Secrets: []ports.Secret{{Version: "1", Value: secret}}}, {ID: "eu", APIKey: "k", BaseURL: "https://eu.example/v1"}},
		"openaivideo": {},
	}
	r, err := New(Config{Accounts: given})
	if err != nil {
		t.Fatal(err)
	}
	if names := r.Names(); !slices.Equal(names, []string{"replicate"}) {
		t.Errorf("names %v: a provider without an account is not configured", names)
	}
	p, ok := r.Provider("replicate")
	if !ok || p.Capabilities().Name != "replicate" {
		t.Errorf("provider %v, %v", p, ok)
	}
	accounts := r.Accounts("replicate")
	if len(accounts) != 2 || accounts[0].ID != "main" || accounts[0].BaseURL != "https://api.replicate.com/v1" || accounts[1].BaseURL != "https://eu.example/v1" {
		t.Errorf("accounts %+v", accounts)
	}
	accounts[0].APIKey = "changed"
	if r.Accounts("replicate")[0].APIKey != "k" || given["replicate"][0].BaseURL != "" {
		t.Error("the registry shares memory with its users")
	}
	if _, ok := r.Provider("openaivideo"); ok || r.Accounts("openaivideo") != nil {
		t.Error("a provider without an account was found")
	}
}

func TestEveryVendor(t *testing.T) {
	t.Parallel()
	accounts := map[string][]ports.Account{}
	for _, name := range Known() {
		accounts[name] = []ports.Account{{ID: "main", APIKey: "k"}}
	}
	r, err := New(Config{Accounts: accounts})
	if err != nil || !slices.Equal(r.Names(), Known()) {
		t.Fatalf("%v, %v", r, err)
	}
	for i, c := range Capabilities() {
		if c.Name != Known()[i] {
			t.Errorf("capabilities of %s at the place of %s", c.Name, Known()[i])
		}
	}
	for _, name := range Known() {
		if p, _ := r.Provider(name); p.Capabilities().Name != name {
			t.Errorf("%s calls itself %s", name, p.Capabilities().Name)
		}
	}
}

func TestEveryFaultIsReported(t *testing.T) {
	t.Parallel()
	_, err := New(Config{Accounts: map[string][]ports.Account{
		"unheard": {{ID: "main"}},
		"replicate": {
			{ID: "main", APIKey: "sesame", Secrets: []ports.Secret{{Version: "1", Value: "whsec_"}, {Version: "2", Value: "whsec_opensesame!"}}},
			{ID: "main", APIKey: "sesame"}, {ID: "x", BaseURL: "ftp://x"},
		},
	}})
	if err == nil {
		t.Fatal("taken")
	}
	for _, want := range []string{`"unheard"`, "empty", `webhook secret "2"`, "twice", "base_url", "api_key"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not reported: %v", want, err)
		}
	}
	if strings.Contains(err.Error(), "sesame") {
		t.Errorf("a secret is in the error: %v", err)
	}
}
