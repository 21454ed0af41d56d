package httpcall

import (
	"net/http"
	"testing"
	"time"

	"github.com/aivedio/aivedio/ports"
)

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 9, 21, 14, 13, 20, 0, time.UTC)
	for _, c := range []struct {
		name, value string
		want        time.Duration
	}{
		{"Retry-After", "7", 7 * time.Second}, {"Retry-After", " 7 ", 7 * time.Second}, {"Retry-After", "1.5", 1500 * time.Millisecond}, {"Retry-After", "0", 0},
		{"Retry-After", "Mon, 21 Sep 2026 14:14:20 GMT", time.Minute}, {"Retry-After", "Mon, 21 Sep 2026 14:12:20 GMT", 0},
		{"Retry-After", "Monday, 21-Sep-26 14:14:20 GMT", time.Minute}, {"Retry-After", "Fri, 31 Dec 9999 23:59:59 GMT", MaxWait},
		{"Retry-After", "99999999999999999999999", MaxWait}, {"Retry-After", "-5", 0}, {"Retry-After", "soon", 0}, {"Retry-After", "", 0},
		{"Retry-After", "inf", 0}, {"Retry-After", "1e9", 0}, {"Retry-After", "0x10", 0}, {"Retry-After", "1.2.3", 0}, {"Retry-After", ".", 0},
		{"Retry-After-Ms", "250", 250 * time.Millisecond}, {"Retry-After-Ms", "0.5", 500 * time.Microsecond}, {"Retry-After-Ms", "x", 0},
	} {
		if got := RetryAfter(http.Header{c.name: {c.value}}, now); got != c.want {
			t.Errorf("%s %q: %v, want %v", c.name, c.value, got, c.want)
		}
	}
	if got := RetryAfter(http.Header{"Retry-After": {"7"}, "Retry-After-Ms": {"250"}}, now); got != 250*time.Millisecond {
		t.Errorf("the finer one wins: %v", got)
	}
	if got := PollAfter(http.Header{"Openai-Poll-After-Ms": {"1500"}}); got != 1500*time.Millisecond {
		t.Errorf("poll after: %v", got)
	}
}

func FuzzRetryAfter(f *testing.F) {
	for _, seed := range []string{"", "7", "-1", "1.5", "Mon, 21 Sep 2026 14:14:20 GMT", "9999999999999999999999", "NaN", "0x1p9", "\x00"} {
		f.Add(seed, seed)
	}
	f.Fuzz(func(t *testing.T, plain, fine string) {
		h := http.Header{"Retry-After": {plain}, "Retry-After-Ms": {fine}, "Openai-Poll-After-Ms": {fine}}
		for _, d := range []time.Duration{RetryAfter(h, time.Unix(1790000000, 0)), PollAfter(h)} {
			if d < 0 || d > MaxWait {
				t.Fatalf("%q, %q: %v", plain, fine, d)
			}
		}
	})
}

func TestBase(t *testing.T) {
	t.Parallel()
	const own = "https://api.vendor.example/v1"
	for _, c := range []struct{ pinned, account, want string }{
		{"", "", own}, {"", "http://127.0.0.1:9", "http://127.0.0.1:9/v1"}, {"", "http://127.0.0.1:9/", "http://127.0.0.1:9/v1"},
		{"", "https://gw.example/openai/v1/", "https://gw.example/openai/v1"}, {"https://eu.example/v1", "https://us.example/v1", "https://eu.example/v1"},
	} {
		if got := Base(own, c.pinned, c.account); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

func TestCheckAccount(t *testing.T) {
	t.Parallel()
	good := ports.Account{ID: "main", BaseURL: "https://x.example/v1", APIKey: "k", Secrets: []ports.Secret{{Version: "1"}, {Version: "2"}}}
	if faults := CheckAccount(good); len(faults) != 0 {
		t.Errorf("%v", faults)
	}
	for name, change := range map[string]func(*ports.Account){
		"no id": func(a *ports.Account) { a.ID = "" }, "slash": func(a *ports.Account) { a.ID = "a/b" },
		"scheme": func(a *ports.Account) { a.BaseURL = "ftp://x" }, "no host": func(a *ports.Account) { a.BaseURL = "https:///v1" },
		"user": func(a *ports.Account) { a.BaseURL = "https://u:p@x" }, "query": func(a *ports.Account) { a.BaseURL = "https://x?y=1" },
		"key": func(a *ports.Account) { a.APIKey = "k\n" }, "no version": func(a *ports.Account) { a.Secrets = []ports.Secret{{Value: "x"}} },
		"same version": func(a *ports.Account) { a.Secrets = []ports.Secret{{Version: "1"}, {Version: "1"}} },
	} {
		bad := good
		change(&bad)
		if faults := CheckAccount(bad); len(faults) != 1 {
			t.Errorf("%s: %v", name, faults)
		}
	}
}
