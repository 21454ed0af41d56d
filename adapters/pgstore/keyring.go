package pgstore

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
)

// Keyring holds the keys that encrypt payloads of deliveries at rest. Payloads
// carry temporary URLs and personal data (specification 12.5.2).
type Keyring struct {
	// Current names the key for new rows.
	Current string
	// Keys are 32 bytes each, by version; old ones stay as long as rows need them.
	Keys map[string][]byte
}

// Sizes of the parts in front of a ciphertext.
const (
	saltSize  = 12
	nonceSize = 12
)

// errSealed reports a payload that cannot be opened: an unknown key version, or
// bytes that were not sealed for this row.
var errSealed = errors.New("payload cannot be opened")

// Validate reports a missing current key and keys of a wrong size.
func (k Keyring) Validate() error {
	var faults []error
	if _, ok := k.Keys[k.Current]; !ok {
		faults = append(faults, fmt.Errorf("payload key %q is current but not given", k.Current))
	}
	for version, key := range k.Keys {
		if len(key) != sha256.Size {
			faults = append(faults, fmt.Errorf("payload key %q has %d bytes, want 32", version, len(key)))
		}
	}
	return errors.Join(faults...)
}

// seal encrypts a payload for the row of the identity under the current key. The
// answer is salt, nonce and AES-256-GCM ciphertext.
func (k Keyring) seal(identity string, plain []byte) []byte {
	sealed := make([]byte, saltSize+nonceSize, saltSize+nonceSize+len(plain)+16)
	rand.Read(sealed) // never fails
	aead := rowCipher(k.Keys[k.Current], sealed[:saltSize])
	return aead.Seal(sealed, sealed[saltSize:], plain, []byte(identity))
}

// open decrypts what seal made for the same identity.
func (k Keyring) open(version, identity string, sealed []byte) ([]byte, error) {
	key, ok := k.Keys[version]
	if !ok {
		return nil, fmt.Errorf("%w: no key %.40q", errSealed, version)
	}
	if len(sealed) < saltSize+nonceSize {
		return nil, fmt.Errorf("%w: %d bytes are too few", errSealed, len(sealed))
	}
	aead := rowCipher(key, sealed[:saltSize])
	plain, err := aead.Open(nil, sealed[saltSize:saltSize+nonceSize], sealed[saltSize+nonceSize:], []byte(identity))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errSealed, err)
	}
	return plain, nil
}

// rowCipher derives a key for one row. A random nonce alone is safe for about
// four billion rows, which a busy gateway writes in days; with a salted key of
// its own per row the limit is out of reach.
func rowCipher(key, salt []byte) cipher.AEAD {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte("aivedio inbox payload"))
	mac.Write(salt)
	block, err := aes.NewCipher(mac.Sum(nil))
	if err != nil {
		panic(err) // a SHA-256 sum is a valid AES key
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		panic(err) // AES has the block size that GCM needs
	}
	return aead
}

// identityOf binds a payload to its row: it cannot be moved to another one.
func identityOf(provider, dedupKey string) string { return provider + "\x00" + dedupKey }
