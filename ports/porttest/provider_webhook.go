package porttest

import (
	"errors"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// delivery signs a body with the account's secret of the index.
func (f ProviderFixture) delivery(t *testing.T, secret int, body []byte) ports.VerifyRequest {
	t.Helper()
	if f.Event == nil {
		t.Skip("the vendor has no webhook")
	}
	if len(f.Account.Secrets) < 2 {
		t.Fatal("the fixture's account needs two secrets")
	}
	return ports.VerifyRequest{
		Header: f.Sign(f.Account.Secrets[secret], body, providerNow), Body: body, Accounts: []ports.Account{f.account()}, Now: providerNow,
	}
}

func refusal(t *testing.T, err error) string {
	t.Helper()
	if err == nil {
		return ""
	}
	var e *ports.VerifyError
	if !errors.As(err, &e) || e.Reason == "" {
		t.Fatalf("the error is no *ports.VerifyError with a reason: %v", err)
	}
	return e.Reason
}

// providerVerifyGenuine: each live secret verifies and is named; what the body
// says does not matter.
func providerVerifyGenuine(t *testing.T, f ProviderFixture) {
	p := f.New(nil)
	seen := ""
	for i, secret := range f.Account.Secrets {
		req := f.delivery(t, i, f.Event(suiteJob))
		req.Accounts = append([]ports.Account{{ID: "other"}}, req.Accounts...)
		d, err := p.Verify(req)
		if err != nil || d.AccountID != f.Account.ID || d.KeyVersion != secret.Version || d.ProviderTaskID != suiteJob || d.Identity == "" || d.Trust != p.Capabilities().Trust {
			t.Errorf("secret %d: %+v, %v", i, d, err)
		}
		if seen != "" && d.Identity != seen {
			t.Errorf("one message has two identities: %q, %q", seen, d.Identity)
		}
		seen = d.Identity
	}
	for name, body := range badBodies(f.Event(suiteJob)) {
		if _, err := p.Verify(f.delivery(t, 0, body)); err != nil {
			t.Errorf("a signed body of %s: %v", name, err)
		}
	}
}

// providerVerifyForged: one byte changed, one header missing, another's secret.
func providerVerifyForged(t *testing.T, f ProviderFixture) {
	p := f.New(nil)
	genuine := f.delivery(t, 0, f.Event(suiteJob))
	for i := range genuine.Body {
		forged := genuine
		forged.Body = slices.Clone(genuine.Body)
		forged.Body[i] ^= 1
		if _, err := p.Verify(forged); refusal(t, err) == "" {
			t.Fatalf("byte %d of the body changed, and it verifies", i)
		}
	}
	for _, body := range [][]byte{nil, {}, genuine.Body[1:], append(slices.Clone(genuine.Body), '\n')} {
		forged := genuine
		forged.Body = body
		if _, err := p.Verify(forged); refusal(t, err) == "" {
			t.Errorf("body %q verifies", body)
		}
	}
	for name, values := range genuine.Header {
		forged := genuine
		forged.Header = genuine.Header.Clone()
		forged.Header.Del(name)
		if _, err := p.Verify(forged); refusal(t, err) == "" {
			t.Errorf("it verifies without %s", name)
		}
		for i := range values[0] {
			b := []byte(values[0])
			b[i] ^= 1
			forged.Header.Set(name, string(b))
			if _, err := p.Verify(forged); refusal(t, err) == "" {
				t.Errorf("%s: %q verifies", name, b)
			}
		}
	}
	for name, accounts := range map[string][]ports.Account{
		"no account": nil, "no secret": {{ID: f.Account.ID, APIKey: f.Account.APIKey}},
		"an empty secret": {{ID: f.Account.ID, Secrets: []ports.Secret{{Version: "e"}}}}, "the other secret": {{ID: f.Account.ID, Secrets: f.Account.Secrets[1:]}},
	} {
		forged := genuine
		forged.Accounts = accounts
		if _, err := p.Verify(forged); refusal(t, err) == "" {
			t.Errorf("%s: it verifies", name)
		}
	}
	if _, err := p.Verify(ports.VerifyRequest{Header: http.Header{}, Body: genuine.Body, Accounts: genuine.Accounts, Now: providerNow}); refusal(t, err) == "" {
		t.Error("no headers: it verifies")
	}
}

// providerVerifyTime: an authentic delivery is fresh.
func providerVerifyTime(t *testing.T, f ProviderFixture) {
	p := f.New(nil)
	req := f.delivery(t, 0, f.Event(suiteJob))
	if p.Capabilities().Trust != domain.TrustAuthentic {
		t.Skip("the vendor does not sign the time")
	}
	for _, off := range []time.Duration{-time.Hour, -10 * time.Minute, 10 * time.Minute, time.Hour, 365 * 24 * time.Hour} {
		late := req
		late.Now = providerNow.Add(off)
		if _, err := p.Verify(late); refusal(t, err) == "" {
			t.Errorf("our clock %v off: it verifies", off)
		}
	}
}
