package simulator

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

const secretPrefix = "whsec_"

// Sign makes the value of a webhook-signature header in the Standard Webhooks
// scheme v1: HMAC-SHA256 with the decoded secret over "id.unix-seconds.body",
// as "v1," and padded base64. The secret is "whsec_" and base64, the prefix
// being optional; an empty or undecodable secret is an error.
func Sign(secret, id string, at time.Time, body []byte) (string, error) {
	key, err := decodeSecret(secret)
	if err != nil {
		return "", err
	}
	return signWith(key, id, at, body), nil
}

func decodeSecret(secret string) ([]byte, error) {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, secretPrefix))
	if err != nil {
		return nil, fmt.Errorf("webhook secret: %w", err)
	}
	if len(key) == 0 {
		return nil, errors.New("webhook secret: empty")
	}
	return key, nil
}

func signWith(key []byte, id string, at time.Time, body []byte) string {
	mac := hmac.New(sha256.New, key)
	for _, part := range [][]byte{
		[]byte(id), []byte("."), strconv.AppendInt(nil, at.Unix(), 10), []byte("."), body,
	} {
		mac.Write(part) //nolint:errcheck // a hash never fails to write
	}
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}
