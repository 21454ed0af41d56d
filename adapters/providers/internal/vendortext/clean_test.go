package vendortext_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/aivedio/aivedio/adapters/providers/internal/vendortext"
	"github.com/aivedio/aivedio/domain"
)

func TestClean(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"": "",
		"Prediction failed: CUDA out of memory. Tried to allocate 2.00 GiB": "Prediction failed: CUDA out of memory. Tried to allocate 2.00 GiB",
		"Request was throttled. Expected available in 12 seconds.":          "Request was throttled. Expected available in 12 seconds.",
		"duration: must be one of 5, 10 (got 7)":                            "duration: must be one of 5, 10 (got 7)",
		"the output has expired":                                            "the output has expired",
		"The specified model does not exist: owner/name":                    "The specified model does not exist: owner/name",
		"cannot fetch https://u:p@x.example/a?sig=abc#f, sorry":             "cannot fetch [url] sorry",
		"cannot fetch HTTPS://x.example/a":                                  "cannot fetch [url]",
		"see s3://bucket/key and gs://b/k":                                  "see [url] and [url]",
		"inline data:image/png;base64,AAAA bad":                             "inline [url] bad",
		"host internal.example.com:8443 refused":                            "host [url] refused",
		"GET api.example.com/v1/x?k=1 failed":                               "GET [url] failed",
		"dial tcp 10.0.0.7:443: connection refused":                         "dial tcp [url] connection refused",
		"write to someone@example.com":                                      "write to [mail]",
		"Incorrect API key provided: sk-proj-****abcd. Try again":           "Incorrect API key provided: [secret] Try again",
		"Authorization: Bearer abcdef.ghi":                                  "Authorization: [secret]",
		"password=hunter2&x=1":                                              "password=[secret]&x=1",
		`{"api_key": "abc", "n": 1}`:                                        `{"api_key": [secret]", "n": 1}`,
		"token r8_Ab12 is bad":                                              "[secret] is bad",
		"job 0f1e2d3c4b5a69788796a5b4c3d2e1f0 is gone":                      "job [secret] is gone",
		"AKIAIOSFODNN7EXAMPLE":                                              "[secret]",
		"one\r\n\ttwo\x00\x1b[31m three\u202e four":                         "one two[31m three four",
		"Modell überlastet – später erneut versuchen":                       "Modell überlastet – später erneut versuchen",
		"\xff\xfebad bytes":                                                 "\uFFFDbad bytes",
	} {
		if got := vendortext.Clean(in); got != want {
			t.Errorf("%q\n got %q\nwant %q", in, got, want)
		}
	}
}

// TestCleanLength: the end is at a character, and a key at the edge of what is
// read does not come through in halves.
func TestCleanLength(t *testing.T) {
	t.Parallel()
	if got := vendortext.Clean(strings.Repeat("ü ", 400)); len(got) > domain.MaxErrorMessage || !utf8.ValidString(got) || !strings.HasSuffix(got, "…") {
		t.Errorf("%d bytes: %q", len(got), got)
	}
	edge := "x://" + strings.Repeat("a", 8<<10-12) + " sk-12345678901234567890"
	if got := vendortext.Clean(edge); strings.Contains(got, "sk-") || strings.Contains(got, "123") {
		t.Errorf("%q", got)
	}
	if got := vendortext.Clean(strings.Repeat("a1", 1<<20)); got != "" {
		t.Errorf("%q", got)
	}
}

func FuzzClean(f *testing.F) {
	f.Add("cannot fetch ", "https://x.example/?sig=a", " sorry")
	f.Add("", "Bearer abcdef012345", "")
	f.Add("ü\xff", "sk-12345678", "\x00")
	f.Fuzz(func(t *testing.T, before, middle, after string) {
		got := vendortext.Clean(before + middle + after)
		if len(got) > domain.MaxErrorMessage || !utf8.ValidString(got) || strings.ContainsAny(got, "\x00\r\n\x1b") || strings.Contains(got, "://") {
			t.Fatalf("%q", got)
		}
		if again := vendortext.Clean(got); len(again) > domain.MaxErrorMessage {
			t.Fatalf("%q", again)
		}
		const key = "sk-live-A1b2C3d4E5f6G7h8I9j0"
		if got := vendortext.Clean(before + " " + key + " " + after); strings.Contains(got, key) {
			t.Fatalf("a key came through: %q", got)
		}
	})
}
