package main

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/aivedio/aivedio/app"
	"github.com/aivedio/aivedio/ports"
)

// Role is one part of the work that a process can take on.
type Role string

// The roles of `serve`.
const (
	RoleAPI      Role = "api"
	RoleCallback Role = "callback"
	RoleSubmit   Role = "submit"
	RoleProcess  Role = "process"
	RolePoll     Role = "poll"
	RoleRelay    Role = "relay"
	RoleDispatch Role = "dispatch"
	RoleGateway  Role = "gateway"
	RoleMedia    Role = "media"
	RoleSweep    Role = "sweep"
)

// Roles lists every role; a process without a choice takes all.
func Roles() []Role {
	return []Role{RoleAPI, RoleCallback, RoleSubmit, RoleProcess, RolePoll, RoleRelay, RoleDispatch, RoleGateway, RoleMedia, RoleSweep}
}

// Config is the whole configuration of a process. A file, then the environment,
// then flags set it; the later one wins. Zero values have the meaning that the
// comment gives.
type Config struct {
	Roles []Role `yaml:"roles" env:"AIVEDIO_ROLES"`
	// Listen is the address of the API and of the streams.
	Listen string `yaml:"listen" env:"AIVEDIO_LISTEN"`
	// CallbackListen is the callbacks' own address; empty shares Listen.
	CallbackListen string `yaml:"callback_listen" env:"AIVEDIO_CALLBACK_LISTEN"`
	// PublicURL is where vendors reach the callbacks; https outside dev.
	PublicURL string `yaml:"public_url" env:"AIVEDIO_PUBLIC_URL"`
	// TrustedProxies are networks whose X-Forwarded-Proto counts.
	TrustedProxies []string `yaml:"trusted_proxies" env:"AIVEDIO_TRUSTED_PROXIES"`
	// CallbackRate is how many deliveries per second one source address may send
	// for one provider; 0 sets no limit.
	CallbackRate float64 `yaml:"callback_rate" env:"AIVEDIO_CALLBACK_RATE"`
	// ProviderCallbackRate is how many deliveries per second are taken for one
	// provider from all addresses together; 0 sets no limit.
	ProviderCallbackRate float64 `yaml:"provider_callback_rate" env:"AIVEDIO_PROVIDER_CALLBACK_RATE"`
	// StopTimeout bounds an orderly stop.
	StopTimeout time.Duration `yaml:"stop_timeout" env:"AIVEDIO_STOP_TIMEOUT"`
	// LogFormat is json or text; LogLevel debug, info, warn or error.
	LogFormat string `yaml:"log_format" env:"AIVEDIO_LOG_FORMAT"`
	LogLevel  string `yaml:"log_level" env:"AIVEDIO_LOG_LEVEL"`
	// CPUProfile is a file that takes a CPU profile of the whole run; empty makes none.
	CPUProfile string `yaml:"cpu_profile" env:"AIVEDIO_CPU_PROFILE"`

	Database  DatabaseConfig            `yaml:"database"`
	Redis     RedisConfig               `yaml:"redis"`
	RocketMQ  RocketMQConfig            `yaml:"rocketmq"`
	Media     MediaConfig               `yaml:"media"`
	Secrets   SecretsConfig             `yaml:"secrets"`
	Work      WorkConfig                `yaml:"work"`
	Retention RetentionConfig           `yaml:"retention"`
	Quotas    QuotasConfig              `yaml:"quotas"`
	Health    HealthConfig              `yaml:"health"`
	Providers map[string]ProviderConfig `yaml:"providers"`

	// AllowPrivate lets callbacks be http and downloads reach private addresses:
	// for one machine only.
	AllowPrivate bool `yaml:"allow_private" env:"AIVEDIO_ALLOW_PRIVATE"`
}

// DatabaseConfig is PostgreSQL.
type DatabaseConfig struct {
	URL string `yaml:"url" env:"AIVEDIO_DATABASE_URL"`
	// Conns bounds the pool; CallbackConns the small one of the callbacks.
	Conns         int `yaml:"conns" env:"AIVEDIO_DATABASE_CONNS"`
	CallbackConns int `yaml:"callback_conns" env:"AIVEDIO_DATABASE_CALLBACK_CONNS"`
}

// RedisConfig is Redis; without a URL the notifier lives in the process.
type RedisConfig struct {
	// URL is redis://user:password@host:port/db.
	URL string `yaml:"url" env:"AIVEDIO_REDIS_URL"`
	// Prefix goes before every key and channel.
	Prefix string `yaml:"prefix" env:"AIVEDIO_REDIS_PREFIX"`
}

// RocketMQConfig is RocketMQ; without name servers the bus lives in the process.
type RocketMQConfig struct {
	NameServers []string `yaml:"name_servers" env:"AIVEDIO_ROCKETMQ_NAME_SERVERS"`
	Topic       string   `yaml:"topic" env:"AIVEDIO_ROCKETMQ_TOPIC"`
	// GroupPrefix begins the names of consumer groups: two systems on one broker
	// need different topics and different prefixes.
	GroupPrefix string `yaml:"group_prefix" env:"AIVEDIO_ROCKETMQ_GROUP_PREFIX"`
}

// MediaConfig is where published files live.
type MediaConfig struct {
	// Dir is the folder of the files.
	Dir string `yaml:"dir" env:"AIVEDIO_MEDIA_DIR"`
	// MaxBytes bounds one download.
	MaxBytes int64 `yaml:"max_bytes" env:"AIVEDIO_MEDIA_MAX_BYTES"`
}

// SecretsConfig holds keys of our own; base64, at least 32 bytes each, the
// newest first.
type SecretsConfig struct {
	// CallbackKeys make the tokens in callback URLs.
	CallbackKeys []string `yaml:"callback_keys" env:"AIVEDIO_CALLBACK_KEYS"`
	// PayloadKeys encrypt stored deliveries; exactly 32 bytes each.
	PayloadKeys []string `yaml:"payload_keys" env:"AIVEDIO_PAYLOAD_KEYS"`
	// SigningKey signs the URLs of assets.
	SigningKey string `yaml:"signing_key" env:"AIVEDIO_SIGNING_KEY"`
}

// WorkConfig bounds how much a process does at once.
type WorkConfig struct {
	// Processors is into how many parts the inbox is split; each part is digested
	// by one worker at a time. The same in every process.
	Processors int `yaml:"processors" env:"AIVEDIO_PROCESSORS"`
	// CallbackBatch is how many deliveries one commit stores at most, CallbackQueue
	// how many may wait for theirs, CallbackWait how long: beyond either a delivery is
	// refused with a 503.
	CallbackBatch int           `yaml:"callback_batch" env:"AIVEDIO_CALLBACK_BATCH"`
	CallbackQueue int           `yaml:"callback_queue" env:"AIVEDIO_CALLBACK_QUEUE"`
	CallbackWait  time.Duration `yaml:"callback_wait" env:"AIVEDIO_CALLBACK_WAIT"`
	// Submits, Polls and Fetches are calls under way at once.
	Submits int `yaml:"submits" env:"AIVEDIO_SUBMITS"`
	Polls   int `yaml:"polls" env:"AIVEDIO_POLLS"`
	Fetches int `yaml:"fetches" env:"AIVEDIO_FETCHES"`
	// PollIndex keeps the moments at which polls are due in Redis as well, which
	// spares looks at the database while nothing is due.
	PollIndex bool `yaml:"poll_index" env:"AIVEDIO_POLL_INDEX"`
	// SubmitTimeout bounds one call of a vendor's create. SubmitLease, at least 5 s
	// more, is when a submit whose process died counts as unknown.
	SubmitTimeout time.Duration `yaml:"submit_timeout" env:"AIVEDIO_SUBMIT_TIMEOUT"`
	SubmitLease   time.Duration `yaml:"submit_lease" env:"AIVEDIO_SUBMIT_LEASE"`
	// MediaTimeout bounds one download. MediaLease, at least 5 s more, is when
	// another process takes over from one that died.
	MediaTimeout time.Duration `yaml:"media_timeout" env:"AIVEDIO_MEDIA_TIMEOUT"`
	MediaLease   time.Duration `yaml:"media_lease" env:"AIVEDIO_MEDIA_LEASE"`
}

// submitter is what the submit role is told.
func (w WorkConfig) submitter() app.SubmitterConfig {
	return app.SubmitterConfig{Concurrency: w.Submits, CallTimeout: w.SubmitTimeout, Lease: w.SubmitLease}
}

// receive is what the callback role is told.
func (c Config) receive() app.ReceiveConfig {
	return app.ReceiveConfig{Flushers: c.Database.CallbackConns, Batch: c.Work.CallbackBatch, Queue: c.Work.CallbackQueue, QueueTime: c.Work.CallbackWait}
}

// media is what the media role is told.
func (w WorkConfig) media() app.MediaConfig {
	return app.MediaConfig{OperationConfig: app.OperationConfig{Concurrency: w.Fetches, Timeout: w.MediaTimeout, Lease: w.MediaLease}}
}

// ProviderConfig is one vendor.
type ProviderConfig struct {
	Accounts []AccountConfig `yaml:"accounts"`
	// Credits is the price of one attempt.
	Credits int64 `yaml:"credits"`
}

// AccountConfig is one set of credentials. A value that starts with "env:" or
// "file:" is read from there, so that the file itself can be shown.
type AccountConfig struct {
	ID             string   `yaml:"id"`
	BaseURL        string   `yaml:"base_url"`
	APIKey         string   `yaml:"api_key"`
	WebhookSecrets []string `yaml:"webhook_secrets"`
	// Submits and Queries are this account's own limits, instead of those of
	// QuotasConfig for accounts.
	Submits RateConfig `yaml:"submits"`
	Queries RateConfig `yaml:"queries"`
}

// DefaultConfig is what holds where nothing is said.
func DefaultConfig() Config {
	return Config{
		Roles: Roles(), Listen: "127.0.0.1:8080", StopTimeout: 20 * time.Second, LogFormat: "json", LogLevel: "info",
		Database: DatabaseConfig{Conns: 16, CallbackConns: 4},
		Redis:    RedisConfig{Prefix: "aivedio"},
		RocketMQ: RocketMQConfig{Topic: "aivedio-task-events", GroupPrefix: "aivedio-"},
		Media:    MediaConfig{MaxBytes: 2 << 30}, Retention: defaultRetention(),
		Quotas: QuotasConfig{Away: 0.1},
		Health: defaultHealth(),
		Work: WorkConfig{
			Processors: 2, CallbackBatch: 256, CallbackQueue: 4096, CallbackWait: 2 * time.Second, Submits: 32, Polls: 128, Fetches: 4, SubmitTimeout: time.Minute, SubmitLease: 90 * time.Second,
			MediaTimeout: 2 * time.Minute, MediaLease: 150 * time.Second,
		},
	}
}

// Validate reports every fault at once.
func (c Config) Validate() error {
	var faults []error
	bad := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	for _, r := range c.Roles {
		if !slices.Contains(Roles(), r) {
			bad("roles: %q is not a role; the roles are %v", r, Roles())
		}
	}
	if len(c.Roles) == 0 {
		bad("roles: at least one of %v is needed", Roles())
	}
	if c.Database.URL == "" {
		bad("database.url (AIVEDIO_DATABASE_URL) is needed, for instance postgres://user:password@host:5432/aivedio")
	}
	if c.Database.Conns < 2 || c.Database.CallbackConns < 1 || c.Database.Conns > 1000 || c.Database.CallbackConns > 1000 {
		bad("database.conns must be from 2 to 1000 and database.callback_conns from 1 to 1000")
	}
	c.validatePublicURL(bad)
	c.validateSplit(bad)
	c.validateSecrets(bad)
	c.validateProviders(bad)
	c.Health.validate(bad)
	c.validateQuotas(bad)
	if (c.has(RoleMedia) || c.has(RoleAPI)) && c.Media.Dir == "" {
		bad("media.dir (AIVEDIO_MEDIA_DIR) is needed by the roles media and api")
	}
	if c.Work.Processors < 1 || c.Work.Submits < 1 || c.Work.Polls < 1 || c.Work.Fetches < 1 {
		bad("work: processors, submits, polls and fetches must be at least 1")
	}
	if err := errors.Join(c.Work.submitter().Validate(), c.Work.media().Validate()); err != nil {
		bad("work: %w", err)
	}
	if err := c.Retention.validate(); err != nil {
		bad("%w", err)
	}
	if c.CallbackRate < 0 || c.ProviderCallbackRate < 0 {
		bad("callback_rate and provider_callback_rate must be 0, for no limit, or a number of deliveries per second")
	}
	if c.Work.CallbackBatch < 1 || c.Work.CallbackQueue < c.Work.CallbackBatch || c.Work.CallbackWait < time.Millisecond {
		bad("work.callback_batch must be at least 1, work.callback_queue no less than that, and work.callback_wait at least 1ms")
	}
	if c.StopTimeout < time.Second {
		bad("stop_timeout must be at least 1s")
	}
	if c.LogFormat != "json" && c.LogFormat != "text" {
		bad("log_format must be json or text")
	}
	if _, err := logLevel(c.LogLevel); err != nil {
		bad("log_level must be debug, info, warn or error")
	}
	return errors.Join(faults...)
}

func (c Config) validatePublicURL(bad func(string, ...any)) {
	if !c.has(RoleSubmit) && !c.has(RoleCallback) && c.PublicURL == "" {
		return
	}
	u, err := url.Parse(c.PublicURL)
	switch {
	case err != nil || u.Host == "" || u.RawQuery != "" || u.Fragment != "":
		bad("public_url (AIVEDIO_PUBLIC_URL) must be the address at which vendors reach the callbacks, for instance https://callbacks.example.com")
	case u.Scheme != "https" && !c.AllowPrivate:
		bad("public_url must be https: a delivery over http can be read and changed on its way")
	}
}

// validateSplit refuses roles in several processes without what connects them.
func (c Config) validateSplit(bad func(string, ...any)) {
	if c.has(RoleRelay) != c.has(RoleDispatch) && len(c.RocketMQ.NameServers) == 0 {
		bad("rocketmq.name_servers is needed when relay and dispatch run in different processes")
	}
	if c.has(RoleDispatch) != c.has(RoleGateway) && c.Redis.URL == "" {
		bad("redis.url is needed when dispatch and gateway run in different processes")
	}
	if c.Work.PollIndex && c.Redis.URL == "" {
		bad("work.poll_index needs redis.url")
	}
}

func (c Config) validateSecrets(bad func(string, ...any)) {
	if _, err := decodeKeys(c.Secrets.CallbackKeys, 0); err != nil {
		bad("secrets.callback_keys: %w", err)
	}
	if _, err := decodeKeys(c.Secrets.PayloadKeys, 32); err != nil {
		bad("secrets.payload_keys: %w", err)
	}
	if _, err := decodeKeys([]string{c.Secrets.SigningKey}, 0); err != nil {
		bad("secrets.signing_key: %w", err)
	}
}

func (c Config) validateProviders(bad func(string, ...any)) {
	if len(c.Providers) == 0 {
		bad("providers: at least one vendor with one account is needed")
	}
	for name, p := range c.Providers {
		if len(p.Accounts) == 0 {
			bad("providers.%s: at least one account is needed", name)
		}
		if p.Credits < 0 {
			bad("providers.%s.credits must not be negative", name)
		}
	}
}

func (c Config) has(r Role) bool { return slices.Contains(c.Roles, r) }

// accounts resolves the configured accounts of all vendors.
func (c Config) accounts() (map[string][]ports.Account, error) {
	all := map[string][]ports.Account{}
	var faults []error
	for name, p := range c.Providers {
		for _, a := range p.Accounts {
			key, err := resolveSecret(a.APIKey)
			if err != nil {
				faults = append(faults, fmt.Errorf("providers.%s.%s.api_key: %w", name, a.ID, err))
			}
			account := ports.Account{ID: a.ID, BaseURL: a.BaseURL, APIKey: key}
			for _, s := range a.WebhookSecrets {
				value, err := resolveSecret(s)
				if err != nil {
					faults = append(faults, fmt.Errorf("providers.%s.%s.webhook_secrets: %w", name, a.ID, err))
				}
				account.Secrets = append(account.Secrets, ports.Secret{Version: fingerprint([]byte(value)), Value: value})
			}
			all[name] = append(all[name], account)
		}
	}
	return all, errors.Join(faults...)
}

// resolveSecret reads "env:NAME" and "file:PATH"; anything else is the value.
func resolveSecret(s string) (string, error) {
	if name, ok := strings.CutPrefix(s, "env:"); ok {
		v := os.Getenv(name)
		if v == "" {
			return "", fmt.Errorf("the environment variable %s is not set", name)
		}
		return v, nil
	}
	if path, ok := strings.CutPrefix(s, "file:"); ok {
		data, err := os.ReadFile(path)
		if err != nil {
			return "", err
		}
		return strings.TrimSpace(string(data)), nil
	}
	return s, nil
}

// decodeKeys reads base64 keys of at least 32 bytes, or of exactly size.
func decodeKeys(encoded []string, size int) ([][]byte, error) {
	if len(encoded) == 0 {
		return nil, errors.New("at least one key is needed; `openssl rand -base64 32` makes one")
	}
	var keys [][]byte
	for i, s := range encoded {
		value, err := resolveSecret(s)
		if err != nil {
			return nil, err
		}
		key, err := base64.StdEncoding.DecodeString(value)
		if err != nil || len(key) < 32 || (size > 0 && len(key) != size) {
			return nil, fmt.Errorf("key %d must be 32 bytes in base64; `openssl rand -base64 32` makes one", i+1)
		}
		keys = append(keys, key)
	}
	return keys, nil
}
