package main

import (
	"crypto/sha256"
	"encoding/hex"
)

// fingerprint names a key by the start of its SHA-256, so that the name says
// nothing about the key and stays the same when keys are reordered.
func fingerprint(key []byte) string {
	sum := sha256.Sum256(key)
	return hex.EncodeToString(sum[:4])
}
