package app

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// GateConfig shapes the breakers, limits and quarantine of provider accounts.
type GateConfig struct {
	// Policy is how an account's health reacts.
	Policy domain.HealthPolicy
	// Malformed is how many answers in a row that make no sense shut an account; 5
	// when zero. Each process counts its own.
	Malformed int
	// Refresh is how often the shared state is read; 500 ms when zero. What one
	// process decides, the others follow after at most that.
	Refresh time.Duration
	// Attend is how often a process says that it calls vendors; it counts for three
	// times as long. 5 s when zero.
	Attend time.Duration
}

// WithDefaults returns a copy with every zero field set.
func (c GateConfig) WithDefaults() GateConfig {
	c.Policy = c.Policy.WithDefaults()
	c.Malformed = cmp.Or(c.Malformed, 5)
	c.Refresh = cmp.Or(c.Refresh, 500*time.Millisecond)
	c.Attend = cmp.Or(c.Attend, 5*time.Second)
	return c
}

// Validate joins every fault.
func (c GateConfig) Validate() error {
	p := c.Policy
	var faults []error
	if c.Malformed < 0 || c.Refresh < 0 || c.Attend < 0 || p.SubmitLag < 0 || p.Window < 0 || p.GrowEvery < 0 || p.Ceiling < 0 || p.Quarantine < 0 {
		faults = append(faults, errors.New("health: a limit is negative"))
	}
	for name, i := range map[string]domain.Interval{"open_for": p.Transport, "auth_open_for": p.Auth} {
		if i.Base < 0 || i.Cap < i.Base {
			faults = append(faults, errors.New("health: "+name+" must not be negative, and its longest not below its first"))
		}
	}
	return errors.Join(faults...)
}

// GateDeps are what [Gate] works with; all but Accounts are required.
type GateDeps struct {
	Env
	Health ports.Health
	// NewTripwire makes the count of one account.
	NewTripwire func() ports.Tripwire
	// Accounts are those whose figures are reported from the start; none when nil.
	Accounts []ports.AccountRef
}

// Gate decides in one process which provider accounts may be called now. It
// decides in memory: only a probe, a change and the periodic look cost a question
// to the store. A nil Gate lets everything pass. It is safe for concurrent use;
// Step and Run must not be called at the same time.
//
// The limit of calls at once belongs to all processes together: each takes its
// equal share, rounded up and at least 1, so that no role of a process can starve.
// Together they may exceed it by less than one call per process.
type Gate struct {
	deps GateDeps
	cfg  GateConfig
	id   domain.ID
	// changed rings when there is something to store.
	changed *Bell

	mu       sync.Mutex
	accounts map[ports.AccountRef]*gateAccount
	// callers is how many processes share a limit.
	callers    int
	nextAttend time.Time
}

// healthChange is one change that still has to be stored. It is applied again to
// whatever the others have stored meanwhile.
type healthChange func(domain.Health) (domain.Health, bool)

// gateAccount is one account in this process.
type gateAccount struct {
	// row is what is stored, with the pending changes applied; stored is the same
	// without them.
	row     ports.AccountHealth
	stored  domain.Health
	pending []healthChange
	// stamp moves with everything that this process stores, so that an older read
	// does not take it back.
	stamp uint64

	// inFlight counts calls; asking says that a probe is being taken.
	inFlight int
	asking   bool
	// What is counted here: failed calls, malformed answers in a row, and successes
	// since the limit grew.
	tripwire  ports.Tripwire
	malformed int
	successes int
}

// NewGate checks what it is given.
func NewGate(deps GateDeps, cfg GateConfig) (*Gate, error) {
	err := errors.Join(deps.Env.Validate(), cfg.Validate(), required("gate", map[string]bool{
		"Health": deps.Health != nil, "NewTripwire": deps.NewTripwire != nil,
	}))
	if err != nil {
		return nil, err
	}
	deps.Env = deps.Env.WithDefaults()
	g := &Gate{
		deps: deps, cfg: cfg.WithDefaults(), id: deps.NewID(), changed: &Bell{},
		accounts: map[ports.AccountRef]*gateAccount{}, callers: 1,
	}
	for _, ref := range deps.Accounts {
		g.gauges(g.account(ref))
	}
	return g, nil
}

// account returns the account's state; mu is held.
func (g *Gate) account(ref ports.AccountRef) *gateAccount {
	a := g.accounts[ref]
	if a == nil {
		a = &gateAccount{row: ports.AccountHealth{AccountRef: ref}, tripwire: g.deps.NewTripwire()}
		g.accounts[ref] = a
	}
	return a
}

// share is how many calls of the account this process may have under way; many
// where nothing limits them. mu is held.
func (g *Gate) share(a *gateAccount) int {
	if a.row.Limit == 0 {
		return math.MaxInt
	}
	return max(1, (a.row.Limit+g.callers-1)/g.callers)
}

// callVerb is what a call of a vendor does.
type callVerb string

// The verbs of calls.
const (
	verbSubmit callVerb = "submit"
	verbQuery  callVerb = "query"
	verbCancel callVerb = "cancel"
)

// create: a call without an answer needs a person.
func (v callVerb) create() bool { return v == verbSubmit }

// errShut says that an account must not be called now.
type errShut struct {
	// wait is how long at least, bounded both ways: nobody sleeps for as long as a
	// breaker may stay open, and nobody asks in a hot loop.
	wait time.Duration
}

func (e *errShut) Error() string { return "the provider account is shut" }

// The bounds of errShut's wait.
const (
	shutLeast = time.Second
	shutMost  = 30 * time.Second
)

func shutUntil(until, now time.Time) *errShut {
	if until.IsZero() {
		return &errShut{wait: shutMost}
	}
	return &errShut{wait: min(max(until.Sub(now), shutLeast), shutMost)}
}

// accountOf names the account of an attempt.
func accountOf(a domain.Attempt) ports.AccountRef {
	return ports.AccountRef{Provider: a.Provider, AccountID: a.AccountID}
}

// enter asks whether an account may be called now, by a call of at most limit. The
// pass must be ended. The error is *errShut.
func (g *Gate) enter(ctx context.Context, ref ports.AccountRef, verb callVerb, limit time.Duration) (*pass, error) {
	if g == nil {
		return nil, nil
	}
	now := g.deps.Now()
	g.mu.Lock()
	a := g.account(ref)
	admission := a.row.Admit(now, verb.create(), g.cfg.Policy)
	switch {
	case admission.Free && a.inFlight < g.share(a):
		a.inFlight++
		g.mu.Unlock()
		return &pass{gate: g, ref: ref}, nil
	case admission.Probe && !a.asking && len(a.pending) == 0 && a.inFlight < g.share(a):
		a.asking = true
		row := a.row
		g.mu.Unlock()
		return g.probe(ctx, row, verb, limit)
	}
	g.mu.Unlock()
	g.deps.Metrics.Add(MetricPutOff, 1, string(verb), ref.Provider)
	if admission.Free || admission.Probe {
		return nil, shutUntil(now, now) // somebody else has the slot
	}
	return nil, shutUntil(admission.Until, now)
}

// probe takes the one probe of all processes, if it is still there.
func (g *Gate) probe(ctx context.Context, row ports.AccountHealth, verb callVerb, limit time.Duration) (*pass, error) {
	now := g.deps.Now()
	next, taken := row.Health.TakeProbe(now, verb.create(), limit+storing, g.cfg.Policy)
	saved := false
	var err error
	if taken {
		row.Health = next
		saved, err = g.deps.Health.SaveAccountHealth(ctx, row, nil)
	}
	if err != nil {
		g.deps.Logger.Warn("the probe of a provider account could not be taken", "provider", row.Provider, "account", row.AccountID, "error", err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	a := g.account(row.AccountRef)
	a.asking = false
	if !saved {
		g.changed.Ring() // look at what the others have
		return nil, shutUntil(now, now)
	}
	row.Version++
	a.row, a.stamp = row, a.stamp+1
	a.inFlight++
	g.note(a, row.Health)
	g.rebase(a, row.Health)
	return &pass{gate: g, ref: row.AccountRef, probe: true}, nil
}

// free is how many calls may begin; mu is held.
func (g *Gate) free(a *gateAccount, verb callVerb, now time.Time) int {
	free := max(0, g.share(a)-a.inFlight)
	switch admission := a.row.Admit(now, verb.create(), g.cfg.Policy); {
	case admission.Free:
		return free
	case admission.Probe && !a.asking:
		return min(1, free)
	default:
		return 0
	}
}

// shut lists the accounts of which nothing may begin now.
func (g *Gate) shut(verb callVerb) []ports.AccountRef {
	except, few := g.narrow(verb)
	return slices.DeleteFunc(except, func(ref ports.AccountRef) bool {
		return slices.ContainsFunc(few, func(a allotment) bool { return a.AccountRef == ref })
	})
}

// allotment is how many attempts of one account may be claimed.
type allotment struct {
	ports.AccountRef
	Limit int
}

// narrow lists the accounts that a claim leaves out, because they are shut or may
// take only a few calls, and how much may be claimed of those that take a few.
func (g *Gate) narrow(verb callVerb) (except []ports.AccountRef, few []allotment) {
	if g == nil {
		return nil, nil
	}
	now := g.deps.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	for ref, a := range g.accounts {
		healthy := a.row.Limit == 0 && a.row.Admit(now, verb.create(), g.cfg.Policy).Free
		if healthy {
			continue
		}
		except = append(except, ref)
		if n := g.free(a, verb, now); n > 0 {
			few = append(few, allotment{ref, n})
		}
	}
	return except, few
}
