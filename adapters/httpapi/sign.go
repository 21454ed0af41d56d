package httpapi

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/url"
	"strconv"
	"time"

	"github.com/aivedio/aivedio/domain"
)

// signer makes and checks content URLs that work without a key for a while.
type signer struct {
	keys [][]byte
	life time.Duration
}

// mac covers the project, the asset and the end of the URL, under a label of its
// own, so that the key may serve other purposes too.
func (s signer) mac(key []byte, project domain.ProjectID, asset domain.AssetID, exp string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte("aivedio asset url 1\x00"))
	h.Write(project.ID[:])
	h.Write(asset.ID[:])
	h.Write([]byte(exp))
	return h.Sum(nil)
}

// query returns the signature's query and when it ends.
func (s signer) query(project domain.ProjectID, asset domain.AssetID, now time.Time) (string, time.Time) {
	end := now.Add(s.life).Truncate(time.Second)
	exp := strconv.FormatInt(end.Unix(), 10)
	sig := base64.RawURLEncoding.EncodeToString(s.mac(s.keys[0], project, asset, exp))
	return url.Values{"exp": {exp}, "sig": {sig}}.Encode(), end
}

// check proves a signed URL: nil, problemURLInvalid or problemURLExpired. The
// signature is proven first, so that nobody learns more from an invented one.
func (s signer) check(project domain.ProjectID, asset domain.AssetID, query url.Values, now time.Time) error {
	exp := query.Get("exp")
	sig, err := base64.RawURLEncoding.DecodeString(query.Get("sig"))
	if err != nil {
		return problemURLInvalid
	}
	valid := false
	for _, key := range s.keys {
		valid = hmac.Equal(s.mac(key, project, asset, exp), sig) || valid
	}
	end, err := strconv.ParseInt(exp, 10, 64)
	switch {
	case !valid, err != nil:
		return problemURLInvalid
	case now.Unix() >= end:
		return problemURLExpired
	}
	return nil
}
