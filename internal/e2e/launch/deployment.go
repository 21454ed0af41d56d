package launch

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"os"

	"gopkg.in/yaml.v3"
)

// Secrets are the keys of one system.
type Secrets struct {
	// CallbackKey makes callback tokens, PayloadKey encrypts deliveries,
	// SigningKey signs asset URLs; 32 bytes each.
	CallbackKey, PayloadKey, SigningKey []byte
	// VendorKey is the API key at the vendor, WebhookSecret what signs its
	// deliveries (Standard Webhooks, "whsec_…").
	VendorKey, WebhookSecret string
}

// NewSecrets draws fresh ones.
func NewSecrets() Secrets {
	return Secrets{
		CallbackKey: randomKey(), PayloadKey: randomKey(), SigningKey: randomKey(),
		VendorKey: "r8_" + base64.RawURLEncoding.EncodeToString(randomKey()), WebhookSecret: "whsec_" + encode(randomKey()),
	}
}

func randomKey() []byte {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails: crypto/rand ends the process instead
	return key
}

func encode(key []byte) string { return base64.StdEncoding.EncodeToString(key) }

// Account is the id of the one account that a deployment has at each vendor.
const Account = "main"

// Deployment is what the processes of one system share.
type Deployment struct {
	Secrets
	// Database is the URL of a migrated database.
	Database string
	// Redis is a URL, RedisPrefix goes before its keys; without a URL the
	// notifier lives in the process.
	Redis, RedisPrefix string
	// NameServers and Topic are RocketMQ's; without name servers the bus lives in
	// the process.
	NameServers []string
	Topic       string
	// Vendor is the base address of the simulated vendor, such as
	// "http://127.0.0.1:9000". It need not answer where nothing is submitted.
	Vendor string
	// Public is where the vendor reaches the callbacks.
	Public string
	// Media is the folder of published files.
	Media string
	// Queries bounds the status queries with each account, over all processes.
	Queries Rate
}

// WriteConfig writes the configuration file that `--config` takes. Roles and
// addresses to listen on differ from process to process and are left to flags
// and environment.
func (d Deployment) WriteConfig(path string) error {
	account := map[string]any{"id": Account, "base_url": d.Vendor + "/v1", "api_key": d.VendorKey, "webhook_secrets": []string{d.WebhookSecret}}
	if d.Queries != (Rate{}) {
		account["queries"] = map[string]any{"per_second": d.Queries.PerSecond, "burst": d.Queries.Burst}
	}
	vendor := map[string]any{"credits": 1, "accounts": []any{account}}
	cfg := map[string]any{
		"public_url": d.Public, "allow_private": true, "log_level": "warn",
		"database": map[string]any{"url": d.Database},
		"media":    map[string]any{"dir": d.Media},
		"secrets": map[string]any{
			"callback_keys": []string{encode(d.CallbackKey)}, "payload_keys": []string{encode(d.PayloadKey)}, "signing_key": encode(d.SigningKey),
		},
		"providers": map[string]any{"replicate": vendor, "openaivideo": vendor},
	}
	if d.Redis != "" {
		cfg["redis"] = map[string]any{"url": d.Redis, "prefix": d.RedisPrefix}
	}
	if len(d.NameServers) > 0 {
		cfg["rocketmq"] = map[string]any{"name_servers": d.NameServers, "topic": d.Topic}
	}
	text, err := yaml.Marshal(cfg)
	if err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	return nil
}

// Rate is a limit of calls to each vendor account; the zero Rate is none.
type Rate struct {
	PerSecond float64
	Burst     int
}
