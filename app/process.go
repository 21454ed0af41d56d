package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// ProcessConfig shapes the digestion of the inbox.
type ProcessConfig struct {
	// Workers is how many rounds run at once, each on its own shards; 2 when zero,
	// which is what two cores can use. It must be the same in every process.
	Workers int
	// Batch is how many deliveries one transaction digests; 256 when zero.
	Batch int
	// Interval is the wait after an empty round; 100 ms when zero. A process that
	// takes no deliveries itself hears of them no sooner.
	Interval time.Duration
	// Pace is the least time from the beginning of a round that did not fill its
	// batch to that of the next; 60 ms when zero. A round has a price of its own, so
	// that under load few and large ones cost a fraction of many small ones; what
	// comes after a pause is digested at once.
	Pace time.Duration
	// Timeout bounds one transaction; 10 s when zero.
	Timeout time.Duration
}

// WithDefaults returns a copy with every zero field set.
func (c ProcessConfig) WithDefaults() ProcessConfig {
	c.Workers = cmp.Or(c.Workers, 2)
	c.Batch = cmp.Or(c.Batch, 256)
	c.Interval = cmp.Or(c.Interval, 100*time.Millisecond)
	c.Pace = cmp.Or(c.Pace, 60*time.Millisecond)
	c.Timeout = cmp.Or(c.Timeout, 10*time.Second)
	return c
}

// Validate joins every fault.
func (c ProcessConfig) Validate() error {
	if c.Workers < 0 || c.Batch < 0 || c.Interval < 0 || c.Pace < 0 || c.Timeout < 0 {
		return errors.New("process: a limit is negative")
	}
	return nil
}

// ProcessDeps are what [Process] works with; all are required.
type ProcessDeps struct {
	Env
	Inbox   ports.Inbox
	Vendors Vendors
}

// Process digests stored deliveries: decode, decide, mark, in one transaction of
// the store.
type Process struct {
	deps ProcessDeps
	cfg  ProcessConfig
}

// NewProcess checks what it is given.
func NewProcess(deps ProcessDeps, cfg ProcessConfig) (*Process, error) {
	err := errors.Join(deps.Env.Validate(), cfg.Validate(), required("process", map[string]bool{
		"Inbox": deps.Inbox != nil, "Vendors": deps.Vendors.providers != nil,
	}))
	if err != nil {
		return nil, err
	}
	deps.Env = deps.Env.WithDefaults()
	return &Process{deps: deps, cfg: cfg.WithDefaults()}, nil
}

// Step has every worker do one round and returns how many deliveries were taken.
func (p *Process) Step(ctx context.Context) (worked int, err error) {
	errs := make([]error, p.cfg.Workers)
	counts := make([]int, p.cfg.Workers)
	var wg sync.WaitGroup
	for w := range p.cfg.Workers {
		wg.Go(func() { counts[w], errs[w] = p.round(ctx, w) })
	}
	wg.Wait()
	for _, n := range counts {
		worked += n
	}
	return worked, errors.Join(errs...)
}

// Run digests until the context ends.
func (p *Process) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	for w := range p.cfg.Workers {
		loop := Loop{
			Name: fmt.Sprintf("process-%d", w), Interval: p.cfg.Interval, Bell: p.deps.Bells.Process, Env: p.deps.Env,
			Step: func(ctx context.Context) (int, error) { return p.paced(ctx, w) },
		}
		wg.Go(func() { _ = loop.Run(ctx) }) // a loop has no error
	}
	wg.Wait()
	return nil
}

// paced is a round with the rest that follows one that found little.
func (p *Process) paced(ctx context.Context, worker int) (int, error) {
	began := time.Now()
	n, err := p.round(ctx, worker)
	if n > 0 && n < p.cfg.Batch {
		pause(ctx, p.cfg.Pace-time.Since(began), nil)
	}
	return n, err
}

// round is one transaction of one worker.
func (p *Process) round(ctx context.Context, worker int) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, p.cfg.Timeout)
	defer cancel()
	report, err := p.deps.Inbox.Process(ctx, ports.ProcessParams{
		Worker: worker, Workers: p.cfg.Workers, Limit: p.cfg.Batch, Now: p.deps.Now(),
	}, p.decode)
	if err != nil {
		return 0, fmt.Errorf("process inbox: %w", err)
	}
	p.count(report)
	p.deps.committed(report.Results)
	return report.Taken, nil
}

func (p *Process) count(report ports.ProcessReport) {
	for outcome, n := range map[string]int{"applied": report.Applied, "orphan": report.Orphans, "failed": report.Failed,
		"other": report.Taken - report.Applied - report.Orphans - report.Failed} {
		if n > 0 {
			p.deps.Metrics.Add(MetricProcessed, float64(n), outcome)
		}
	}
	for _, r := range report.Results {
		if r.Err == nil {
			p.deps.Metrics.Add(MetricVerdicts, 1, string(domain.SourceWebhook), string(r.Decision.Verdict.Kind), string(r.Decision.Verdict.Reason))
		}
	}
}

// The codes of deliveries that cannot be decoded.
const (
	codeUnknownProvider = "unknown_provider"
	codeUndecodable     = "undecodable"
	codeTwoIdentities   = "two_identities"
)

var errTwoIdentities = errors.New("the verified identity and the body name different jobs")

// decode reads one delivery. It is called inside a transaction, so it only
// computes.
func (p *Process) decode(row ports.InboxRow) ports.Decoded {
	vendor, ok := p.deps.Vendors.Vendor(row.Provider)
	if !ok {
		return ports.Decoded{Err: ErrUnknownProvider, Code: codeUnknownProvider}
	}
	obs, foreign, err := vendor.Decode(row)
	switch {
	case err != nil:
		return ports.Decoded{Err: err, Code: codeUndecodable}
	case foreign:
		return ports.Decoded{Foreign: true}
	}
	task, agree := oneOf(row.ProviderTaskID, storable(obs.ProviderTaskID))
	client, same := oneOf(row.ClientRequestID, storable(obs.ClientRequestID))
	if !agree || !same {
		return ports.Decoded{Err: errTwoIdentities, Code: codeTwoIdentities}
	}
	obs.ProviderTaskID, obs.ClientRequestID = task, client
	return ports.Decoded{Item: observationItem(obs, observed{
		ref: ports.Ref{
			TokenHash: row.TokenHash, Provider: row.Provider, AccountID: row.AccountID,
			ProviderTaskID: task, ClientRequestID: client,
		},
		policy: p.deps.policyOf(p.deps.Vendors, row.Provider, row.AccountID), jitter: p.deps.Jitter(), source: domain.SourceWebhook, trust: row.Trust,
		at: row.ReceivedAt, trace: row.TraceID,
		eventID: row.ProviderEventID, dedupKey: row.DedupKey, payloadHash: row.PayloadHash,
	})}
}

// oneOf is the one that is set; false when both are and differ.
func oneOf(a, b string) (string, bool) { return cmp.Or(a, b), a == "" || b == "" || a == b }
