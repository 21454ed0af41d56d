package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// MediaConfig shapes the fetching of outputs.
type MediaConfig struct {
	// OperationConfig: 4 downloads at once, 2 min for one under a lease of 150 s, 6
	// tries from 2 s to 2 min apart. A process that dies holds its outputs up for
	// the rest of the lease.
	OperationConfig
	// GiveUpAfter is the least age of the vendor's success at which MaxTries ends a
	// task; 5 min when zero. Tries also count faults of our own side, so the number
	// alone would turn a short outage into failed tasks.
	GiveUpAfter time.Duration
	// MaxBytes is the largest output; 2 GiB when zero.
	MaxBytes int64
	// ProgressEvery is the distance of progress reports; 1 s when zero.
	ProgressEvery time.Duration
}

// WithDefaults returns a copy with every zero field set.
func (c MediaConfig) WithDefaults() MediaConfig {
	c.OperationConfig = c.withDefaults(OperationConfig{
		Concurrency: 4, Timeout: 2 * time.Minute, Lease: 150 * time.Second, MaxTries: 6, Retry: 2 * time.Second, MaxRetry: 2 * time.Minute,
	})
	c.GiveUpAfter = cmp.Or(c.GiveUpAfter, 5*time.Minute)
	c.MaxBytes = cmp.Or(c.MaxBytes, 2<<30)
	c.ProgressEvery = cmp.Or(c.ProgressEvery, time.Second)
	return c
}

// Validate joins every fault.
func (c MediaConfig) Validate() error {
	var errs []error
	if c.GiveUpAfter < 0 || c.MaxBytes < 0 || c.ProgressEvery < 0 {
		errs = append(errs, errors.New("media: a limit is negative"))
	}
	return errors.Join(append(errs, c.WithDefaults().validate("media"))...)
}

// MediaDeps are what [Media] works with; all are required.
type MediaDeps struct {
	Env
	Transitions ports.Transitions
	Work        ports.Work
	Vendors     Vendors
	Downloader  ports.Downloader
	Media       ports.Media
}

// Media brings a vendor's output into the platform's own store and publishes it:
// only then is a task ready. Every stage is an event.
type Media struct {
	deps    MediaDeps
	cfg     MediaConfig
	applier *applier
	pool    *pool
}

// NewMedia checks what it is given.
func NewMedia(deps MediaDeps, cfg MediaConfig) (*Media, error) {
	err := errors.Join(deps.Env.Validate(), cfg.Validate(), required("media", map[string]bool{
		"Transitions": deps.Transitions != nil, "Work": deps.Work != nil, "Vendors": deps.Vendors.providers != nil,
		"Downloader": deps.Downloader != nil, "Media": deps.Media != nil,
	}))
	if err != nil {
		return nil, err
	}
	deps.Env, cfg = deps.Env.WithDefaults(), cfg.WithDefaults()
	return &Media{deps: deps, cfg: cfg, applier: newApplier(deps.Env, deps.Transitions), pool: newPool(cfg.Concurrency)}, nil
}

// Step fetches what is due, up to Concurrency outputs, and returns when all are
// published or put off.
func (m *Media) Step(ctx context.Context) (worked int, err error) {
	worked, err = m.round(ctx)
	m.pool.drain()
	return worked, errors.Join(err, m.pool.takeErr())
}

// Run fetches until the context ends. Downloads that are not done within Grace
// are broken off and begin anew elsewhere.
func (m *Media) Run(ctx context.Context) error {
	return Loop{
		Name: "media", Step: m.round, Interval: m.cfg.Interval, Bell: m.deps.Bells.Media,
		Drain: m.pool.drain, Env: m.deps.Env,
	}.Run(ctx)
}

func (m *Media) round(ctx context.Context) (int, error) {
	return workOperations(ctx, operationRound{
		kind: domain.OperationFetchOutput, env: m.deps.Env, work: m.deps.Work, lease: m.cfg.Lease, pool: m.pool,
	}, m.one)
}

// fetch is one try at one output.
type fetch struct {
	job   ports.OperationJob
	lease domain.ID
	asset domain.AssetID
}

// errSuperseded says that the task does not want the output any more.
var errSuperseded = errors.New("the task does not want the output any more")

// mediaFault is why an output cannot be had.
type mediaFault struct {
	code  string
	class domain.ErrorClass
	// detail is the downloader's word, "http_503"; empty for none.
	detail string
	// final says that trying again is no use, ours that the platform is to blame:
	// then the task waits, however long.
	final bool
	ours  bool
	// wish is how long the vendor asked us to wait.
	wish time.Duration
}

// The faults that are found here.
var (
	errMediaStore     = &mediaFault{code: "store", ours: true}
	errNotConfigured  = &mediaFault{code: "not_configured", ours: true}
	errOutputMissing  = &mediaFault{code: "output_missing", class: domain.ClassOutputMissing, final: true}
	errNotMedia       = &mediaFault{code: "not_media", class: domain.ClassMedia}
	errTruncatedMedia = &mediaFault{code: "truncated", class: domain.ClassMedia}
)

// Error names the fault by its code: a URL must not get into a log.
func (f *mediaFault) Error() string { return "media: " + f.code }

// word is the code with its detail, for operators.
func (f *mediaFault) word() string {
	if f.detail == "" {
		return f.code
	}
	return f.code + "/" + storable(f.detail)
}

// one fetches and publishes one output. The asset takes the operation's own id:
// a second try replaces the file of the first instead of leaving it behind.
func (m *Media) one(ctx context.Context, job ports.OperationJob, lease domain.ID) error {
	f := fetch{job: job, lease: lease, asset: domain.AssetID{ID: job.ID.ID}}
	asset, err := m.publishable(ctx, f)
	var fault *mediaFault
	switch {
	case err == nil:
		m.deps.Metrics.Add(MetricMedia, 1, job.Attempt.Provider, "ok")
		m.deps.Metrics.Add(MetricMediaBytes, float64(asset.Size))
		return m.finish(ctx, f, domain.Input{Kind: domain.InputMediaReady, AssetID: asset.ID}, &asset, "")
	case errors.Is(err, errSuperseded):
		m.deps.Metrics.Add(MetricMedia, 1, job.Attempt.Provider, "superseded")
		return m.finish(ctx, f, domain.Input{Kind: domain.InputMediaFailed}, nil, "superseded")
	case errors.As(err, &fault):
		m.deps.Metrics.Add(MetricMedia, 1, job.Attempt.Provider, fault.code)
		return m.failed(ctx, f, fault)
	default:
		return errors.Join(err, m.failed(ctx, f, errMediaStore))
	}
}

// publishable takes the output through the stages up to publishing.
func (m *Media) publishable(ctx context.Context, f fetch) (ports.Asset, error) {
	if err := m.stage(ctx, f, domain.StageFetching, nil); err != nil {
		return ports.Asset{}, err
	}
	asset, declared, err := m.download(ctx, f)
	if err != nil {
		return ports.Asset{}, err
	}
	if err := m.stage(ctx, f, domain.StageValidating, nil); err != nil {
		return ports.Asset{}, err
	}
	if err := m.validate(ctx, asset, declared); err != nil {
		return ports.Asset{}, err
	}
	return asset, m.stage(ctx, f, domain.StagePublishing, nil)
}

// download stores the output under its final key, which nobody knows before the
// asset is published. declared is the size that the vendor said, −1 for none.
func (m *Media) download(ctx context.Context, f fetch) (asset ports.Asset, declared int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, m.cfg.Timeout)
	defer cancel()
	body, err := m.open(ctx, f)
	if err != nil {
		return ports.Asset{}, 0, err
	}
	defer func() { _ = body.Body.Close() }() // what was read counts
	head := make([]byte, sniffLen)
	n, err := io.ReadFull(body.Body, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return ports.Asset{}, 0, downloadFault(err)
	}
	kind, contentType, ext := sniff(head[:n])
	if kind == "" {
		return ports.Asset{}, 0, errNotMedia
	}
	asset = ports.Asset{
		ID: f.asset, TenantID: f.job.Task.TenantID, ProjectID: f.job.Task.ProjectID, TaskID: f.job.Task.ID, AttemptID: f.job.Attempt.ID,
		Kind: kind, ContentType: contentType, CreatedAt: m.deps.Now(),
		Key: fmt.Sprintf("%s/%s/%s/original%s", f.job.Task.TenantID, f.job.Task.ProjectID, f.asset, ext),
	}
	content := &meter{head: head[:n], body: body.Body, limit: m.cfg.MaxBytes}
	stop := m.watch(ctx, f, content, body.Size)
	asset.Size, asset.SHA256, err = m.deps.Media.Put(ctx, asset.Key, contentType, content)
	stop()
	switch {
	case content.err != nil:
		return ports.Asset{}, 0, downloadFault(content.err)
	case err != nil:
		return ports.Asset{}, 0, errMediaStore
	}
	return asset, body.Size, nil
}

// open starts the download of the attempt's main output.
func (m *Media) open(ctx context.Context, f fetch) (ports.Download, error) {
	vendor, known := m.deps.Vendors.Vendor(f.job.Attempt.Provider)
	account, ok := m.deps.Vendors.Account(f.job.Attempt.Provider, f.job.Attempt.AccountID)
	if !known || !ok {
		return ports.Download{}, errNotConfigured
	}
	output, ok := mainOutput(f.job.Attempt.Outputs)
	if !ok {
		return ports.Download{}, errOutputMissing
	}
	req, err := vendor.OutputRequest(ctx, ports.QueryRequest{Account: account, Attempt: f.job.Attempt}, output)
	if err != nil {
		return ports.Download{}, downloadFault(err)
	}
	body, err := m.deps.Downloader.Download(req, m.cfg.MaxBytes)
	if err != nil {
		return ports.Download{}, downloadFault(err)
	}
	return body, nil
}

// mainOutput is the first video, or the first output when there is none.
func mainOutput(outputs []domain.OutputRef) (domain.OutputRef, bool) {
	if len(outputs) == 0 {
		return domain.OutputRef{}, false
	}
	return outputs[max(slices.IndexFunc(outputs, func(o domain.OutputRef) bool { return o.Kind == "video" }), 0)], true
}

// downloadFault sorts a failed download. Only "refused" is final: anything else
// may pass later, and "not found" often means "not yet" where a vendor says
// "succeeded" before its storage has the file everywhere.
func downloadFault(err error) *mediaFault {
	pe := providerError(err)
	fault := &mediaFault{code: "download_" + string(pe.Class), class: domain.ClassMedia, detail: pe.Code, wish: pe.RetryAfter}
	switch {
	case pe.Class == ports.ClassNotFound:
		fault.class = domain.ClassOutputExpired
	case pe.Class == ports.ClassRejected:
		fault.final = true
	case errors.Is(err, errTooLarge):
		fault.code, fault.detail, fault.final = "too_large", "", true
	}
	return fault
}

// validate looks at the file as it was stored: whole, and of the type that it was
// taken for.
func (m *Media) validate(ctx context.Context, asset ports.Asset, declared int64) error {
	if asset.Size == 0 || (declared >= 0 && asset.Size != declared) {
		return errTruncatedMedia
	}
	file, err := m.deps.Media.Open(ctx, asset.Key, 0, min(asset.Size, sniffLen))
	if err != nil {
		return errMediaStore
	}
	defer func() { _ = file.Close() }() // read only
	head, err := io.ReadAll(file)
	if _, contentType, _ := sniff(head); err != nil || contentType != asset.ContentType {
		return errMediaStore
	}
	return nil
}

// stage makes a stage public. The output of a task that has ended or moved on is
// not fetched to the end.
func (m *Media) stage(ctx context.Context, f fetch, stage domain.Stage, progress *int) error {
	results, err := m.applier.apply(ctx, ports.Item{
		Ref:   ports.Ref{AttemptID: f.job.Attempt.ID},
		Input: m.input(f, domain.Input{Kind: domain.InputMediaStage, Stage: stage, Progress: progress}),
	})
	if err == nil {
		err = faults(results)
	}
	if err != nil {
		return fmt.Errorf("stage %s of %s: %w", stage, f.job.Attempt.ID, err)
	}
	if v := results[0].Decision.Verdict; v.Reason == domain.ReasonStaleAttempt || v.Reason == domain.ReasonTerminalAbsorbing {
		return errSuperseded
	}
	return nil
}

// failed puts the fetch off, or ends the task when it is final or was the last
// try.
func (m *Media) failed(ctx context.Context, f fetch, fault *mediaFault) error {
	if fault.final || (!fault.ours && m.exhausted(f.job)) {
		return m.finish(ctx, f, domain.Input{Kind: domain.InputMediaFailed, ErrorClass: fault.class, ErrorCode: fault.word()}, nil, fault.word())
	}
	ctx, cancel := detached(ctx)
	defer cancel()
	next := m.cfg.nextTry(m.deps.Env, f.job.Tries, fault.wish)
	m.deps.Logger.Warn("an output could not be fetched and is tried again", "attempt", f.job.Attempt.ID.String(),
		"provider", f.job.Attempt.Provider, "try", f.job.Tries, "reason", fault.word(), "next", next)
	err := m.deps.Work.ReleaseOperation(ctx, ports.OperationRelease{ID: f.job.ID, Lease: f.lease, NextAt: next, ErrorCode: fault.word()})
	if err != nil {
		return fmt.Errorf("release fetch of %s: %w", f.job.Attempt.ID, err)
	}
	return nil
}

// exhausted reports whether an output was tried for often and for long enough.
func (m *Media) exhausted(job ports.OperationJob) bool {
	since := job.Attempt.TerminalAt
	return job.Tries >= m.cfg.MaxTries && (since == nil || m.deps.Now().Sub(*since) >= m.cfg.GiveUpAfter)
}

// finish ends the operation with the transition that follows from it.
func (m *Media) finish(ctx context.Context, f fetch, in domain.Input, asset *ports.Asset, code string) error {
	ctx, cancel := detached(ctx)
	defer cancel()
	err := m.applier.applyAll(ctx, ports.Item{
		Ref: ports.Ref{AttemptID: f.job.Attempt.ID}, Input: m.input(f, in), Asset: asset,
		Operation: &ports.OperationFinish{ID: f.job.ID, Lease: f.lease, Failed: code != "", ErrorCode: code},
	})
	if err != nil {
		return fmt.Errorf("finish fetch of %s: %w", f.job.Attempt.ID, err)
	}
	return nil
}

func (m *Media) input(f fetch, in domain.Input) domain.Input {
	in.Policy, in.Jitter = m.deps.Vendors.Policy(f.job.Attempt.Provider), m.deps.Jitter()
	return in
}
