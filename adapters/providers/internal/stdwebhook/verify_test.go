package stdwebhook

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aivedio/aivedio/ports"
)

const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// vector is a signature made by somebody else.
type vector struct {
	name, key, id, timestamp, body, signature string
}

var vectors = []vector{
	{
		// Published with the reference library, and used by Svix's and Replicate's.
		"published v1", secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", `{"test": 2432232314}`,
		"v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
	},
	{
		"thin event v1", secret, "wh_f1", "1790000301",
		`{"object":"event","id":"evt_f1","type":"video.completed","created_at":1790000300,"data":{"id":"video_f1"}}`,
		"v1,NGAJiVl856qMJ4EFwg9W8iADAeRU1AHSEDFXhh4kW3U=",
	},
	{
		// The key of RFC 8032, test 1.
		"v1a", "whpk_11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=", "msg_f1", "1790000000", `{"type":"video.generated"}`,
		"v1a,ylEOOR9HhYc8W9B7QZTo3tuEKJfvTpnPfvYIxtudrdfshvgKj0jbJ289OJL0gzRlauHUCybrhJvJnx6DXi2kAA==",
	},
}

func key(t testing.TB, text string) Key {
	t.Helper()
	k, err := ParseKey("k1", text)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func (v vector) header() http.Header {
	h := http.Header{}
	h.Set("webhook-id", v.id)
	h.Set("webhook-timestamp", v.timestamp)
	h.Set("webhook-signature", v.signature)
	return h
}

func (v vector) time(t testing.TB) time.Time {
	t.Helper()
	n, err := strconv.ParseInt(v.timestamp, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return time.Unix(n, 0)
}

func (v vector) account() []ports.Account {
	return []ports.Account{{ID: "main", Secrets: []ports.Secret{{Version: "s1", Value: v.key}}}}
}

func reason(err error) string {
	var e *ports.VerifyError
	if errors.As(err, &e) {
		return e.Reason
	}
	if err != nil {
		return "not a VerifyError: " + err.Error()
	}
	return ""
}

func TestVectors(t *testing.T) {
	t.Parallel()
	for _, v := range vectors {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			if version, ok := VerifySignature(v.id, v.timestamp, v.signature, []byte(v.body), []Key{key(t, v.key)}); !ok || version != "k1" {
				t.Fatal("the signature alone does not verify")
			}
			var a Accounts
			m, err := a.Verify(v.header(), []byte(v.body), v.account(), v.time(t))
			if err != nil || m.AccountID != "main" || m.KeyVersion != "s1" || m.ID != v.id || !m.SentAt.Equal(v.time(t)) {
				t.Fatalf("match %+v, %v", m, err)
			}
		})
	}
}

func TestOneByteChanged(t *testing.T) {
	t.Parallel()
	for _, v := range vectors {
		keys := []Key{key(t, v.key)}
		refused := func(what string, changed vector) {
			if _, ok := VerifySignature(changed.id, changed.timestamp, changed.signature, []byte(changed.body), keys); ok {
				t.Errorf("%s: a changed %s verifies: %+v", v.name, what, changed)
			}
		}
		flip := func(s string, i int, bit byte) string {
			b := []byte(s)
			b[i] ^= bit
			return string(b)
		}
		for bit := byte(1); bit != 0; bit <<= 1 {
			for i := range len(v.body) {
				c := v
				c.body = flip(v.body, i, bit)
				refused("body", c)
			}
			for i := range len(v.id) {
				c := v
				c.id = flip(v.id, i, bit)
				refused("id", c)
			}
			for i := range len(v.timestamp) {
				c := v
				c.timestamp = flip(v.timestamp, i, bit)
				refused("timestamp", c)
			}
			for i := range len(v.signature) {
				c := v
				c.signature = flip(v.signature, i, bit)
				refused("signature", c)
			}
		}
		refused("key", vector{id: v.id, timestamp: v.timestamp, body: v.body, signature: strings.Replace(v.signature, "v1", "v2", 1)})
	}
}

func sign(id, timestamp, body string) string {
	raw, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, prefixShared))
	mac := hmac.New(sha256.New, raw)
	mac.Write([]byte(id + "." + timestamp + "." + body))
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

func TestTolerance(t *testing.T) {
	t.Parallel()
	v := vectors[1]
	for offset, want := range map[int]string{
		0: "", 299: "", 300: "", 301: ReasonStale, 100000: ReasonStale, -299: "", -300: "", -301: ReasonFuture, -100000: ReasonFuture,
	} {
		var a Accounts
		_, err := a.Verify(v.header(), []byte(v.body), v.account(), v.time(t).Add(time.Duration(offset)*time.Second))
		if reason(err) != want {
			t.Errorf("our clock %d s ahead: %v, want %q", offset, err, want)
		}
	}
}

// The text of the timestamp goes into the MAC as it came.
func TestTimestampText(t *testing.T) {
	t.Parallel()
	now := time.Unix(1790000000, 0)
	for text, want := range map[string]string{
		"1790000000": "", "01790000000": "", "+1790000000": "", " 1790000000 ": "",
		"1790000000.0": ReasonBadTimestamp, "1.79e9": ReasonBadTimestamp, "0x6ab13b80": ReasonBadTimestamp, "soon": ReasonBadTimestamp,
		"99999999999999999999": ReasonBadTimestamp, "9223372036854775807": ReasonFuture, "-9223372036854775808": ReasonStale, "-1790000000": ReasonStale,
		"": ReasonMissingHeader, " ": ReasonBadTimestamp,
	} {
		h := vector{id: "msg_1", timestamp: text, signature: sign("msg_1", text, "{}")}.header()
		var a Accounts
		if _, err := a.Verify(h, []byte("{}"), vectors[0].account(), now); reason(err) != want {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	h := vector{id: "msg_1", timestamp: "01790000000", signature: sign("msg_1", "1790000000", "{}")}.header()
	var a Accounts
	if _, err := a.Verify(h, []byte("{}"), vectors[0].account(), now); reason(err) != ReasonBadSignature {
		t.Errorf("a signature of the number instead of the text: %v", err)
	}
}

func TestSignatureList(t *testing.T) {
	t.Parallel()
	v := vectors[0]
	good := v.signature
	raw := strings.TrimPrefix(good, "v1,")
	for list, want := range map[string]bool{
		good: true, "v1,bad v2,bad " + good + " v1,bad": true, "garbage " + good: true, ", " + good: true, " " + good + "  ": true,
		"v1a,AAAA " + good: true, good + "\t" + good: true,
		"": false, "v1,": false, "v1": false, raw: false, "v2," + raw: false, "v1a," + raw: false, "V1," + raw: false, "v1," + raw + ",": false,
		"v1," + strings.TrimRight(raw, "="): false, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OF=": false, // the same bytes, spelled differently
		strings.Repeat("v1,bad ", maxEntries) + good: false, strings.Repeat("x", maxSignature) + " " + good: false,
	} {
		_, ok := VerifySignature(v.id, v.timestamp, list, []byte(v.body), []Key{key(t, v.key)})
		if ok != want {
			t.Errorf("%.60q: %v", list, ok)
		}
	}
}

func TestHeaders(t *testing.T) {
	t.Parallel()
	v := vectors[0]
	drop := func(name string) http.Header { h := v.header(); h.Del(name); return h }
	twice := func(name string) http.Header { h := v.header(); h.Add(name, h.Get(name)); return h }
	set := func(name, value string) http.Header { h := v.header(); h.Set(name, value); return h }
	svix := http.Header{}
	for name, values := range v.header() {
		svix[strings.Replace(name, "Webhook", "Svix", 1)] = values
	}
	mixed := svix.Clone()
	mixed.Set("Webhook-Id", v.id)
	for name, c := range map[string]struct {
		h    http.Header
		want string
	}{
		"all": {v.header(), ""}, "svix": {svix, ""}, "mixed": {mixed, ReasonMissingHeader}, "none": {nil, ReasonMissingHeader},
		"no id": {drop("webhook-id"), ReasonMissingHeader}, "no time": {drop("webhook-timestamp"), ReasonMissingHeader},
		"no signature": {drop("webhook-signature"), ReasonMissingHeader}, "two ids": {twice("webhook-id"), ReasonMissingHeader},
		"two times": {twice("webhook-timestamp"), ReasonMissingHeader}, "two signatures": {twice("webhook-signature"), ReasonMissingHeader},
		"long id": {set("webhook-id", strings.Repeat("m", maxID+1)), ReasonMissingHeader}, "odd id": {set("webhook-id", "msg\x00"), ReasonMissingHeader},
		"wrong": {set("webhook-signature", "v1,AAAA"), ReasonBadSignature},
	} {
		var a Accounts
		if _, err := a.Verify(c.h, []byte(v.body), v.account(), v.time(t)); reason(err) != c.want {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestRotationAndAccounts(t *testing.T) {
	t.Parallel()
	v := vectors[0]
	other := "whsec_" + base64.StdEncoding.EncodeToString([]byte("another secret of 24 byte"))
	accounts := []ports.Account{
		{ID: "empty"},
		{ID: "broken", Secrets: []ports.Secret{{Version: "x", Value: "whsec_"}}},
		{ID: "first", Secrets: []ports.Secret{{Version: "2026-09", Value: other}}},
		{ID: "second", Secrets: []ports.Secret{{Version: "2026-09", Value: other + "="}, {Version: "2026-10", Value: other}, {Version: "2026-01", Value: v.key}}},
	}
	var a Accounts
	for range 2 { // the second time from memory
		m, err := a.Verify(v.header(), []byte(v.body), accounts, v.time(t))
		if err != nil || m.AccountID != "second" || m.KeyVersion != "2026-01" {
			t.Errorf("match %+v, %v", m, err)
		}
	}
	if _, err := a.Verify(v.header(), []byte(v.body), accounts[:2], v.time(t)); reason(err) != ReasonNoSecret {
		t.Errorf("no usable secret: %v", err)
	}
	if _, err := a.Verify(v.header(), []byte(v.body), accounts[:3], v.time(t)); reason(err) != ReasonBadSignature {
		t.Errorf("another secret: %v", err)
	}
}

func TestParseKey(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"", "whsec_", "whpk_", "whsec_hunter2%", "whpk_hunter2", "whsk_AAAA", "whsec_whsec_"} {
		_, err := ParseKey("v", bad)
		if err == nil {
			t.Errorf("%q was taken", bad)
		} else if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("the error repeats the secret: %v", err)
		}
	}
	bare := strings.TrimPrefix(secret, "whsec_")
	if _, ok := VerifySignature(vectors[0].id, vectors[0].timestamp, vectors[0].signature, []byte(vectors[0].body), []Key{key(t, bare)}); !ok {
		t.Error("a secret without its prefix does not verify")
	}
	if faults := Check(ports.Account{ID: "a", Secrets: []ports.Secret{{Version: "1"}, {Version: "2", Value: secret}}}); len(faults) != 1 {
		t.Errorf("faults: %v", faults)
	}
	seed, _ := hex.DecodeString("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60")
	public := ed25519.NewKeyFromSeed(seed).Public().(ed25519.PublicKey)
	if !public.Equal(key(t, vectors[2].key).public) {
		t.Error("the public key is read wrongly")
	}
}

func FuzzVerify(f *testing.F) {
	for _, v := range vectors {
		f.Add(v.id, v.timestamp, v.signature, []byte(v.body))
	}
	f.Add("", "", "", []byte(nil))
	f.Add("a.5", "6", "v1,x v1a,y ,z", []byte("{}"))
	f.Add("msg", "-1", strings.Repeat("v1a,AAAA ", 50), []byte{0xff, 0})
	var accounts []ports.Account
	genuine := map[string]bool{}
	for _, v := range vectors {
		accounts = append(accounts, v.account()...)
		genuine[v.id+"."+v.timestamp+"."+v.body] = true
	}
	f.Fuzz(func(t *testing.T, id, timestamp, signature string, body []byte) {
		h := http.Header{"Webhook-Id": {id}, "Webhook-Timestamp": {timestamp}, "Webhook-Signature": {signature}}
		var a Accounts
		for _, v := range vectors {
			_, err := a.Verify(h, body, accounts, v.time(t))
			if err != nil && strings.HasPrefix(reason(err), "not") {
				t.Fatalf("error of the wrong kind: %v", err)
			}
			if err == nil && !genuine[id+"."+timestamp+"."+string(body)] {
				t.Fatalf("forged: %q %q %q %q", id, timestamp, signature, body)
			}
		}
	})
}
