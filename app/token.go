package app

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"

	"github.com/aivedio/aivedio/domain"
)

// CallbackTokens makes and checks the tokens of per-attempt callback URLs.
//
// A token is the URL-safe base 64, without padding, of the attempt's 16 bytes
// followed by the 32 bytes of their HMAC-SHA256: always 64 characters. It carries
// the attempt so that a stranger's guess is refused without a look at the
// database, and it is a function of the attempt so that a replayed submit
// registers the same URL. The store knows only its SHA-256.
type CallbackTokens struct{ keys [][]byte }

// minTokenKey is the least length of a key in bytes.
const minTokenKey = 16

// NewCallbackTokens takes the live keys, the newest first: the first one makes
// tokens, all of them check. URLs live as long as jobs do, so an old key must
// stay until the last job that carries it has ended.
func NewCallbackTokens(keys ...[]byte) (*CallbackTokens, error) {
	if len(keys) == 0 {
		return nil, errors.New("callback tokens: no key")
	}
	for _, k := range keys {
		if len(k) < minTokenKey {
			return nil, errors.New("callback tokens: a key needs at least 16 bytes")
		}
	}
	return &CallbackTokens{keys: keys}, nil
}

// Make returns the attempt's token.
func (t *CallbackTokens) Make(attempt domain.AttemptID) string {
	return base64.RawURLEncoding.EncodeToString(append(attempt.ID[:len(attempt.ID):len(attempt.ID)], mac(t.keys[0], attempt.ID)...))
}

// Check returns the attempt that a token of ours names; false for any other
// text. It takes the same time for every wrong signature.
func (t *CallbackTokens) Check(token string) (domain.AttemptID, bool) {
	var id domain.AttemptID
	if len(token) != base64.RawURLEncoding.EncodedLen(len(id.ID)+sha256.Size) {
		return domain.AttemptID{}, false
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err != nil {
		return domain.AttemptID{}, false
	}
	copy(id.ID[:], raw)
	ours := false
	for _, key := range t.keys {
		ours = hmac.Equal(mac(key, id.ID), raw[len(id.ID):]) || ours
	}
	if !ours {
		return domain.AttemptID{}, false
	}
	return id, true
}

// TokenHash is the form in which a token is stored and looked up.
func TokenHash(token string) []byte {
	sum := sha256.Sum256([]byte(token))
	return sum[:]
}

// mac keys the attempt under a label of its own, so that the key may serve other
// purposes too.
func mac(key []byte, id domain.ID) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte("aivedio callback token 1\x00"))
	h.Write(id[:])
	return h.Sum(nil)
}
