package httpcall

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/aivedio/aivedio/ports"
)

// Base picks where a job lives: the address pinned with the attempt, else that of
// the account, else the vendor's own. An address without a path gets the
// vendor's: "http://127.0.0.1:9000" means "http://127.0.0.1:9000/v1".
func Base(vendor string, candidates ...string) string {
	base := vendor
	for _, c := range candidates {
		if c != "" {
			base = c
			break
		}
	}
	base = strings.TrimRight(base, "/")
	u, err := url.Parse(base)
	if err != nil || u.Path != "" {
		return base
	}
	own, err := url.Parse(vendor)
	if err != nil {
		return base
	}
	return base + own.Path
}

// CheckAccount returns the faults of an account that every vendor's accounts can
// have.
func CheckAccount(account ports.Account) []error {
	var faults []error
	if account.ID == "" || strings.ContainsAny(account.ID, "/|?# ") {
		faults = append(faults, fmt.Errorf("account %q: the id must be a word that fits into a URL", account.ID))
	}
	if account.BaseURL != "" {
		u, err := url.Parse(account.BaseURL)
		if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
			faults = append(faults, fmt.Errorf("account %q: base_url must be an http or https address without user, query or fragment", account.ID))
		}
	}
	if strings.TrimSpace(account.APIKey) != account.APIKey || strings.ContainsAny(account.APIKey, "\r\n") {
		faults = append(faults, fmt.Errorf("account %q: api_key has spaces around it", account.ID))
	}
	seen := map[string]bool{}
	for _, s := range account.Secrets {
		if s.Version == "" || seen[s.Version] {
			faults = append(faults, fmt.Errorf("account %q: every secret needs a version of its own", account.ID))
		}
		seen[s.Version] = true
	}
	return faults
}
