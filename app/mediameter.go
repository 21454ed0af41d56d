package app

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync/atomic"
	"time"

	"github.com/aivedio/aivedio/domain"
)

// errTooLarge ends a download that is larger than allowed, whatever its server
// had announced.
var errTooLarge = errors.New("the output is too large")

// meter reads a download from its start, counts it and keeps it within the limit.
// It remembers the fault of the download, so that it is not taken for one of the
// store.
type meter struct {
	head  []byte
	body  io.Reader
	limit int64
	err   error
	read  atomic.Int64
}

// Read implements io.Reader for one reader; only the count may be read beside it.
func (m *meter) Read(p []byte) (n int, err error) {
	if len(m.head) > 0 {
		n = copy(p, m.head)
		m.head = m.head[n:]
	} else {
		n, err = m.body.Read(p)
	}
	if m.read.Add(int64(n)) > m.limit {
		err = errTooLarge
	}
	if err != nil && err != io.EOF {
		m.err = err
	}
	return n, err
}

// watch reports the progress of a download of known size until stop is called.
// It runs beside the download, so that a slow database does not slow it down; a
// report that fails is only a report.
func (m *Media) watch(ctx context.Context, f fetch, content *meter, size int64) (stop func()) {
	if size <= 0 {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(m.cfg.ProgressEvery)
		defer ticker.Stop()
		last := int64(0)
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			if percent := min(99, 100*content.read.Load()/size); percent > last {
				last = percent
				p := int(percent)
				_ = m.stage(ctx, f, domain.StageFetching, &p)
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// sniffLen is how much of a file is looked at.
const sniffLen = 64

// sniff recognises media by its first bytes: its kind in the platform's words, its
// content type and the end of its file name. Everything is empty for what is no
// media, for instance a page that says sorry.
func sniff(head []byte) (kind, contentType, ext string) {
	switch {
	case len(head) >= 12 && string(head[4:8]) == "ftyp":
		return isoMedia(string(head[8:12]))
	case bytes.HasPrefix(head, []byte("\x1a\x45\xdf\xa3")):
		return "video", "video/webm", ".webm"
	case bytes.HasPrefix(head, []byte("\x89PNG\r\n\x1a\n")):
		return "image", "image/png", ".png"
	case bytes.HasPrefix(head, []byte("\xff\xd8\xff")):
		return "image", "image/jpeg", ".jpg"
	case bytes.HasPrefix(head, []byte("GIF87a")), bytes.HasPrefix(head, []byte("GIF89a")):
		return "image", "image/gif", ".gif"
	case len(head) >= 12 && string(head[:4]) == "RIFF" && string(head[8:12]) == "WEBP":
		return "image", "image/webp", ".webp"
	default:
		return "", "", ""
	}
}

// isoMedia tells the relatives of MP4 apart by their brand.
func isoMedia(brand string) (kind, contentType, ext string) {
	switch brand {
	case "qt  ":
		return "video", "video/quicktime", ".mov"
	case "avif", "avis":
		return "image", "image/avif", ".avif"
	case "heic", "heix", "mif1":
		return "image", "image/heic", ".heic"
	default:
		return "video", "video/mp4", ".mp4"
	}
}
