package simulator

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Quota is what the vendor allows each of its accounts. Zero limits nothing. An
// account is the API key of a call, in each of the two APIs.
type Quota struct {
	// Queries is how many status queries any second may hold, Burst how many any
	// 100 ms may, Creates how many creates any second may.
	Queries int `json:"queries" placeholder:"N" help:"Status queries that an account may send in any second; 0 is no limit."`
	Burst   int `json:"burst" placeholder:"N" help:"Status queries that an account may send in any 100 ms; 0 is no limit."`
	Creates int `json:"creates" placeholder:"N" help:"Creates that an account may send in any second; 0 is no limit."`
	// Enforce refuses calls above it with 429 and Retry-After; without it they are
	// answered and counted as over.
	Enforce bool `json:"enforce" help:"Answer 429 above the quota instead of only counting."`
}

// Validate reports negative limits, joined into one error.
func (q Quota) Validate() error {
	var errs []error
	for name, n := range map[string]int{"queries": q.Queries, "burst": q.Burst, "creates": q.Creates} {
		if n < 0 {
			errs = append(errs, fmt.Errorf("quota %s: negative", name))
		}
	}
	return errors.Join(errs...)
}

// Usage is what one account made of its quota since the meters were last reset.
type Usage struct {
	Queries Traffic `json:"queries"`
	Creates Traffic `json:"creates"`
}

// Quota returns the quota in force. Safe for concurrent use.
func (s *Simulator) Quota() Quota {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.quota
}

// SetQuota replaces the quota; the meters go on. An invalid one is an error and
// changes nothing.
func (s *Simulator) SetQuota(q Quota) error {
	if err := q.Validate(); err != nil {
		return fmt.Errorf("simulator: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.quota = q
	return nil
}

// Usage returns what every account asked for, by its name: the API's shape and a
// fingerprint of the key. Safe for concurrent use.
func (s *Simulator) Usage() map[string]Usage {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[string]Usage{}
	for name, a := range s.accounts {
		out[name] = Usage{Queries: a.queries.traffic, Creates: a.creates.traffic}
	}
	return out
}

// ResetUsage starts all meters from zero. What the last second held still counts
// towards the quota, not towards the worst. Safe for concurrent use.
func (s *Simulator) ResetUsage() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.accounts {
		a.queries.traffic, a.creates.traffic = Traffic{}, Traffic{}
	}
}

// account is the vendor's side of one API key.
type account struct{ queries, creates meter }

// account finds who calls, or makes a new one. Needs mu.
func (s *Simulator) account(c call) *account {
	name := accountName(c)
	a := s.accounts[name]
	if a == nil {
		a = &account{}
		s.accounts[name] = a
	}
	return a
}

// accountName never holds the key itself: it is shown by a route.
func accountName(c call) string {
	_, key, _ := strings.Cut(c.r.Header.Get("Authorization"), " ")
	if key == "" {
		return string(c.dialect) + "/anonymous"
	}
	sum := sha256.Sum256([]byte(key))
	return string(c.dialect) + "/" + hex.EncodeToString(sum[:4])
}

// admitQuery counts a query and tells whether the quota lets it through. Needs mu.
func (s *Simulator) admitQuery(c call, now time.Time) bool {
	return s.account(c).queries.admit(now, s.quota.Queries, s.quota.Burst, s.quota.Enforce)
}

// admitCreate is admitQuery for creates. Needs mu.
func (s *Simulator) admitCreate(c call, now time.Time) bool {
	return s.account(c).creates.admit(now, s.quota.Creates, 0, s.quota.Enforce)
}

// throttled is the answer above the quota. A second later the window is free
// again, whatever it held.
func (c call) throttled() {
	c.w.Header().Set("Retry-After", "1")
	c.fail(&problem{
		status: http.StatusTooManyRequests, code: "rate_limit_exceeded", title: "Too many requests",
		detail: "The quota of this account is used up. Try again in 1 s.",
	})
}

// quotaState is what the quota's route answers.
type quotaState struct {
	Quota    Quota            `json:"quota"`
	Accounts map[string]Usage `json:"accounts"`
}

func (s *Simulator) tellQuota(c call) {
	writeJSON(c, quotaState{Quota: s.Quota(), Accounts: s.Usage()})
}

// changeQuota merges the given keys into the quota in force; ?reset=true resets
// the meters.
func (s *Simulator) changeQuota(c call) {
	body, p := readBody(c, maxReplicateBody)
	if p != nil {
		c.fail(p)
		return
	}
	next := s.Quota()
	err := json.Unmarshal(body, &next)
	if err == nil {
		err = s.SetQuota(next)
	}
	if err != nil {
		c.fail(&problem{status: http.StatusBadRequest, title: "Bad quota", detail: err.Error()})
		return
	}
	if c.r.URL.Query().Get("reset") == "true" {
		s.ResetUsage()
	}
	s.tellQuota(c)
}
