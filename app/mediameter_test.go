package app

import (
	"bytes"
	"errors"
	"io"
	"testing"
)

func TestSniff(t *testing.T) {
	t.Parallel()
	for head, want := range map[string]string{
		"\x00\x00\x00\x18ftypisom":        "video/mp4",
		"\x00\x00\x00\x18ftypmp42":        "video/mp4",
		"\x00\x00\x00\x14ftypqt  ":        "video/quicktime",
		"\x00\x00\x00\x18ftypavif":        "image/avif",
		"\x00\x00\x00\x18ftypheic":        "image/heic",
		"\x1a\x45\xdf\xa3\x01":            "video/webm",
		"\x89PNG\r\n\x1a\n\x00":           "image/png",
		"\xff\xd8\xff\xe0":                "image/jpeg",
		"GIF89a\x01":                      "image/gif",
		"RIFF\x00\x00\x00\x00WEBPVP8 ":    "image/webp",
		"RIFF\x00\x00\x00\x00WAVEfmt ":    "",
		"\x00\x00\x00\x18ftyp":            "",
		"<!doctype html>":                 "",
		`{"error":"expired"}`:             "",
		"#EXTM3U\n#EXT-X-VERSION:3\nhttp": "",
		"":                                "",
	} {
		if _, got, _ := sniff([]byte(head)); got != want {
			t.Errorf("sniff(%q) = %q, want %q", head, got, want)
		}
	}
}

func TestMeter(t *testing.T) {
	t.Parallel()
	whole := &meter{head: []byte("ab"), body: bytes.NewReader([]byte("cde")), limit: 5}
	if got, err := io.ReadAll(whole); string(got) != "abcde" || err != nil || whole.err != nil || whole.read.Load() != 5 {
		t.Errorf("read %q, %v, %v", got, err, whole.err)
	}
	large := &meter{body: bytes.NewReader([]byte("abcdef")), limit: 5}
	if _, err := io.ReadAll(large); !errors.Is(err, errTooLarge) || !errors.Is(large.err, errTooLarge) {
		t.Errorf("past the limit: %v", err)
	}
}
