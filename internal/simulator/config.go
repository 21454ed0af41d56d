package simulator

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"time"

	"code.dny.dev/ssrf"
)

// Config is everything a Simulator is told. The zero value works: any key is
// accepted, the secret and the seed are random, webhooks go to public https
// addresses only.
type Config struct {
	// APIKey is the bearer token callers must send; empty accepts everybody.
	APIKey string
	// WebhookSecret signs webhooks of both shapes ("whsec_" and base64); empty
	// makes a random one, which GET /v1/webhooks/default/secret tells.
	WebhookSecret string
	// Journal is a file in which jobs outlive the process: what cannot be derived
	// from the time is appended to it, and the next Open with the same file goes
	// on from there. Its jobs go on while nobody runs them; webhooks that were due
	// meanwhile are sent at the start of Run. It keeps seed and secret, too, for
	// starts that configure none, and drops jobs that ended over a day ago. One
	// simulator at a time may use it. Empty keeps everything in memory.
	Journal string
	// Seed decides every draw; 0 draws one from the operating system. Job ids
	// also depend on the time of Open, so a restart does not use one twice.
	Seed uint64
	// Queue is the time from create to start, Run from start to end; zero means
	// 1 s and 4 s, a negative value none.
	Queue, Run time.Duration
	// Jitter spreads both by ± this share; zero means 0.2, a negative value none.
	Jitter float64
	// PublicURL is the base of output and urls.* addresses, without a trailing
	// slash; empty takes the Host of the request that made the job, over http.
	PublicURL string
	// OpenAIWebhookURL is the one endpoint of the OpenAI-shaped account; empty
	// sends no webhook there.
	OpenAIWebhookURL string
	// Faults are the vendor's faults at the start; see Simulator.SetFaults.
	Faults Faults
	// Quota is what each account may ask for at the start; see Simulator.SetQuota.
	Quota Quota
	// Client sends webhooks; redirects are never followed. Nil makes one, which
	// refuses private addresses at dial time unless AllowPrivateWebhook is set.
	Client *http.Client
	// Logger gets one line per given-up webhook, without URLs; nil is silent.
	Logger *slog.Logger
	// Now tells the time; nil is time.Now.
	Now func() time.Time
	// AllowPrivateWebhook accepts http and private addresses as webhook URLs.
	AllowPrivateWebhook bool
	// Workers is how many webhooks are sent at a time; zero means 16.
	Workers int
	// WebhookTimeout bounds one delivery; zero means 5 s.
	WebhookTimeout time.Duration
	// RetryBase is the first wait before a terminal webhook is sent again; it
	// doubles each time. Zero means 1 s.
	RetryBase time.Duration
	// ProgressEvery is the shortest time between two logs events; zero means 500 ms.
	ProgressEvery time.Duration
	// PollAfter is what the openai-poll-after-ms header says; zero means 1 s.
	PollAfter time.Duration
	// OutputTTL is how long an output can be had after the end; zero means 1 h.
	OutputTTL time.Duration
	// MaxJobs bounds memory: beyond it the oldest finished jobs are forgotten.
	// Zero means 200,000.
	MaxJobs int
}

// WithDefaults returns a copy in which every zero has its meaning.
func (c Config) WithDefaults() Config {
	if c.WebhookSecret == "" {
		c.WebhookSecret = secretPrefix + base64.StdEncoding.EncodeToString(randomBytes(32))
	}
	if c.Seed == 0 {
		c.Seed = binary.LittleEndian.Uint64(randomBytes(8)) | 1
	}
	c.Queue, c.Run = length(c.Queue, time.Second), length(c.Run, 4*time.Second)
	switch {
	case c.Jitter == 0:
		c.Jitter = 0.2
	case c.Jitter < 0:
		c.Jitter = 0
	}
	if c.Client == nil {
		c.Client = newClient(c.AllowPrivateWebhook)
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	setDefault(&c.Workers, 16)
	setDefault(&c.WebhookTimeout, 5*time.Second)
	setDefault(&c.RetryBase, time.Second)
	setDefault(&c.ProgressEvery, 500*time.Millisecond)
	setDefault(&c.PollAfter, time.Second)
	setDefault(&c.OutputTTL, time.Hour)
	setDefault(&c.MaxJobs, 200_000)
	return c
}

// Validate reports every fault of the configuration, joined into one error.
func (c Config) Validate() error {
	var errs []error
	if c.WebhookSecret != "" {
		if _, err := decodeSecret(c.WebhookSecret); err != nil {
			errs = append(errs, err)
		}
	}
	if c.Jitter >= 1 {
		errs = append(errs, fmt.Errorf("jitter: %v is not below 1", c.Jitter))
	}
	if c.PublicURL != "" {
		if u, err := url.Parse(c.PublicURL); err != nil || u.Host == "" {
			errs = append(errs, errors.New("public URL: want an absolute URL"))
		}
	}
	if c.OpenAIWebhookURL != "" {
		if err := checkWebhookURL(c.OpenAIWebhookURL, c.AllowPrivateWebhook); err != nil {
			errs = append(errs, fmt.Errorf("OpenAI webhook URL: %w", err))
		}
	}
	for name, n := range map[string]int64{
		"workers": int64(c.Workers), "webhook timeout": int64(c.WebhookTimeout),
		"retry base": int64(c.RetryBase), "progress interval": int64(c.ProgressEvery),
		"poll-after": int64(c.PollAfter), "output lifetime": int64(c.OutputTTL), "max jobs": int64(c.MaxJobs),
	} {
		if n < 0 {
			errs = append(errs, fmt.Errorf("%s: negative", name))
		}
	}
	for name, d := range map[string]time.Duration{
		"queue": c.Queue, "run": c.Run, "retry base": c.RetryBase, "progress interval": c.ProgressEvery, "output lifetime": c.OutputTTL,
	} {
		if d > longest {
			errs = append(errs, fmt.Errorf("%s: %v is longer than %v", name, d, longest))
		}
	}
	errs = append(errs, c.Faults.Validate(), c.Quota.Validate())
	return errors.Join(errs...)
}

// checkWebhookURL applies the vendor's rule: an absolute https URL. Addresses
// are judged when they are dialled, a name in a URL proves nothing.
func checkWebhookURL(raw string, allowPrivate bool) error {
	u, err := url.Parse(raw)
	switch {
	case err != nil || u.Host == "":
		return errors.New("want an absolute URL")
	case u.Scheme == "https", u.Scheme == "http" && allowPrivate:
		return nil
	default:
		return errors.New("want an https URL")
	}
}

// newClient makes the sender of webhooks. One idle connection per worker is
// kept, or a fast run would use up the local ports.
func newClient(allowPrivate bool) *http.Client {
	dialer := &net.Dialer{Timeout: 3 * time.Second}
	if !allowPrivate {
		dialer.Control = ssrf.New().Safe
	}
	return &http.Client{Transport: &http.Transport{
		DialContext: dialer.DialContext, ForceAttemptHTTP2: true,
		MaxIdleConnsPerHost: 64, IdleConnTimeout: 30 * time.Second,
	}}
}

func length(d, zero time.Duration) time.Duration {
	if d == 0 {
		return zero
	}
	return max(d, 0)
}

func setDefault[T int | time.Duration](p *T, v T) {
	if *p == 0 {
		*p = v
	}
}

func randomBytes(n int) []byte {
	b := make([]byte, n)
	rand.Read(b) //nolint:errcheck // crypto/rand.Read never returns an error
	return b
}
