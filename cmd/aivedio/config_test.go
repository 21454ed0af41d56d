package main

import (
	"bytes"
	"encoding/base64"
	"os"
	"strings"
	"testing"
)

var testKey = base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{7}, 32))

// goodConfig is the least that passes.
func goodConfig() Config {
	cfg := DefaultConfig()
	cfg.Database.URL = "postgres://localhost/x"
	cfg.PublicURL = "https://callbacks.example.com"
	cfg.Media.Dir = "/tmp/media"
	cfg.Secrets = SecretsConfig{CallbackKeys: []string{testKey}, PayloadKeys: []string{testKey}, SigningKey: testKey}
	cfg.Providers = map[string]ProviderConfig{"replicate": {Accounts: []AccountConfig{{ID: "main", APIKey: "k", WebhookSecrets: []string{"whsec_" + testKey}}}}}
	return cfg
}

func TestConfigFaults(t *testing.T) {
	t.Parallel()
	if err := goodConfig().Validate(); err != nil {
		t.Fatalf("a good configuration: %v", err)
	}
	for name, tc := range map[string]struct {
		spoil func(*Config)
		want  string
	}{
		"role":             {func(c *Config) { c.Roles = []Role{"cook"} }, `"cook" is not a role`},
		"no role":          {func(c *Config) { c.Roles = nil }, "at least one of"},
		"no database":      {func(c *Config) { c.Database.URL = "" }, "database.url"},
		"pool":             {func(c *Config) { c.Database.Conns = 1 }, "database.conns"},
		"http":             {func(c *Config) { c.PublicURL = "http://x.example" }, "must be https"},
		"no public url":    {func(c *Config) { c.PublicURL = "" }, "public_url"},
		"public url query": {func(c *Config) { c.PublicURL = "https://x.example/?a=1" }, "public_url"},
		"split bus":        {func(c *Config) { c.Roles = []Role{RoleRelay} }, "rocketmq.name_servers"},
		"split notifier":   {func(c *Config) { c.Roles = []Role{RoleGateway} }, "redis.url"},
		"short key":        {func(c *Config) { c.Secrets.CallbackKeys = []string{"c2hvcnQ="} }, "secrets.callback_keys"},
		"long payload key": {func(c *Config) {
			c.Secrets.PayloadKeys = []string{base64.StdEncoding.EncodeToString(make([]byte, 40))}
		}, "secrets.payload_keys"},
		"unset variable": {func(c *Config) { c.Secrets.SigningKey = "env:AIVEDIO_NO_SUCH_VARIABLE" }, "AIVEDIO_NO_SUCH_VARIABLE is not set"},
		"no vendor":      {func(c *Config) { c.Providers = nil }, "at least one vendor"},
		"no account":     {func(c *Config) { c.Providers["replicate"] = ProviderConfig{} }, "providers.replicate"},
		"negative price": {func(c *Config) {
			c.Providers["replicate"] = ProviderConfig{Credits: -1, Accounts: c.Providers["replicate"].Accounts}
		}, "credits"},
		"no media": {func(c *Config) { c.Media.Dir = "" }, "media.dir"},
		"batch":    {func(c *Config) { c.Work.CallbackBatch = c.Work.CallbackQueue + 1 }, "work.callback_batch"},
		"rate":     {func(c *Config) { c.ProviderCallbackRate = -1 }, "provider_callback_rate"},
		"quota":    {func(c *Config) { c.Quotas.Queries.Model.PerSecond = 5 }, "quota: model needs both"},
		"quota of an account": {func(c *Config) {
			c.Providers["replicate"].Accounts[0].Submits.Burst = 5
		}, "quota: accounts.replicate:main needs both"},
		"quota without Redis":    {func(c *Config) { c.Quotas.Away = 0 }, "quotas.away"},
		"an index without Redis": {func(c *Config) { c.Work.PollIndex, c.Redis.URL = true, "" }, "work.poll_index"},
		"no workers":             {func(c *Config) { c.Work.Polls = 0 }, "work:"},
		"log format":             {func(c *Config) { c.LogFormat = "xml" }, "log_format"},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			cfg := goodConfig()
			tc.spoil(&cfg)
			if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v, want a fault with %q", err, tc.want)
			}
		})
	}
}

// TestConfigFaultsTogether: one look shows everything that is wrong.
func TestConfigFaultsTogether(t *testing.T) {
	t.Parallel()
	err := Config{}.Validate()
	for _, want := range []string{"roles", "database.url", "secrets.payload_keys", "providers", "log_format"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in %v", want, err)
		}
	}
}

func TestConfigFileRefusesUnknownKeys(t *testing.T) {
	t.Parallel()
	if _, err := LoadConfig(configFrom(t, "databse:\n  url: x\n")); err == nil || !strings.Contains(err.Error(), "databse") {
		t.Errorf("%v, want the misspelt key named", err)
	}
}

// TestOrderOfSources: the file, then the environment.
func TestOrderOfSources(t *testing.T) {
	file := configFrom(t, "listen: a:1\nlog_level: debug\ndatabase:\n  conns: 7\n")
	t.Setenv("AIVEDIO_LISTEN", "b:2")
	cfg, err := LoadConfig(file)
	if err != nil {
		t.Fatal(err)
	}
	if cfg.Listen != "b:2" || cfg.LogLevel != "debug" || cfg.Database.Conns != 7 || cfg.Database.CallbackConns != DefaultConfig().Database.CallbackConns {
		t.Errorf("%+v", cfg)
	}
}

// TestDocumentedConfig: the files in docs/operations.md are good ones.
func TestDocumentedConfig(t *testing.T) {
	doc, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"AIVEDIO_CALLBACK_KEY", "AIVEDIO_PAYLOAD_KEY", "AIVEDIO_SIGNING_KEY", "REPLICATE_API_TOKEN", "AIVEDIO_SIMULATE_KEY"} {
		t.Setenv(name, testKey)
	}
	t.Setenv("REPLICATE_WEBHOOK_SECRET", "whsec_"+testKey)
	t.Setenv("AIVEDIO_DATABASE_URL", "postgres://localhost/x")
	t.Setenv("AIVEDIO_SIMULATE_SECRET", "whsec_"+testKey)
	files := strings.Split(string(doc), "```yaml\n")[1:]
	if len(files) != 2 {
		t.Fatalf("docs/operations.md holds %d configurations", len(files))
	}
	for _, rest := range files {
		text, _, _ := strings.Cut(rest, "```")
		if code, _, errs := ran(t, "config", "check", "--config", configFrom(t, text)); code != exitOK {
			t.Errorf("exit %d: %s\n%s", code, errs, text)
		}
	}
}
