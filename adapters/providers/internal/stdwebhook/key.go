package stdwebhook

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
)

// The prefixes of serialised secrets.
const (
	prefixShared = "whsec_" // v1, HMAC-SHA256
	prefixPublic = "whpk_"  // v1a, ed25519
)

// Key verifies signatures of one version with one secret.
type Key struct {
	// Version is our name of the secret, stored with what it verified.
	Version string
	shared  []byte
	public  ed25519.PublicKey
}

// ParseKey reads a secret: base64 with or without "whsec_" for v1, base64 after
// "whpk_" for v1a. An empty secret is an error: it would verify anything that
// was signed with nothing. The error never repeats the secret.
func ParseKey(version, secret string) (Key, error) {
	key := Key{Version: version}
	if text, ok := strings.CutPrefix(secret, prefixPublic); ok {
		public, err := base64.StdEncoding.DecodeString(text)
		if err != nil || len(public) != ed25519.PublicKeySize {
			return Key{}, fmt.Errorf("webhook key %q: want %s and the base64 of %d bytes", version, prefixPublic, ed25519.PublicKeySize)
		}
		key.public = public
		return key, nil
	}
	shared, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, prefixShared))
	if err != nil {
		return Key{}, fmt.Errorf("webhook secret %q: want %s and base64", version, prefixShared)
	}
	if len(shared) == 0 {
		return Key{}, fmt.Errorf("webhook secret %q: %w", version, errEmpty)
	}
	key.shared = shared
	return key, nil
}

var errEmpty = errors.New("empty")

// match reports whether any entry of the list is the key's signature of the
// content. The work does not depend on where a wrong one differs.
func (k Key) match(content []byte, entries []entry) bool {
	if k.public != nil {
		return k.matchPublic(content, entries)
	}
	mac := hmac.New(sha256.New, k.shared)
	mac.Write(content) //nolint:errcheck // a hash never fails to write
	// The encoded form is compared: decoding would accept several spellings.
	want := []byte(base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	found := 0
	for _, e := range entries {
		if e.version == "v1" {
			found |= subtle.ConstantTimeCompare(want, []byte(e.value))
		}
	}
	return found == 1
}

func (k Key) matchPublic(content []byte, entries []entry) bool {
	for _, e := range entries {
		if e.version != "v1a" {
			continue
		}
		sig, err := base64.StdEncoding.Strict().DecodeString(e.value)
		if err == nil && len(sig) == ed25519.SignatureSize && ed25519.Verify(k.public, content, sig) {
			return true
		}
	}
	return false
}
