package httpapi

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/aivedio/aivedio/ports"
)

// mediaFile reads a stored file as http.ServeContent wants it: it seeks by
// opening anew at the offset, since a blob store has no other way.
type mediaFile struct {
	ctx   context.Context //nolint:containedctx // the file lives within one request
	media ports.Media
	asset ports.Asset
	at    int64
	// body is open and stands at bodyAt; nil when nothing is open. It is opened
	// anew only when a read finds it elsewhere: ServeContent seeks to the end and
	// back just to learn the size.
	body   io.ReadCloser
	bodyAt int64
}

var _ io.ReadSeekCloser = (*mediaFile)(nil)

// openMedia opens the file at its start, so that a missing one is noticed before
// a status is sent.
func openMedia(ctx context.Context, media ports.Media, asset ports.Asset) (*mediaFile, error) {
	f := &mediaFile{ctx: ctx, media: media, asset: asset}
	if err := f.open(); err != nil {
		return nil, err
	}
	return f, nil
}

func (f *mediaFile) open() error {
	body, err := f.media.Open(f.ctx, f.asset.Key, f.at, -1)
	if err != nil {
		return fmt.Errorf("open media: %w", err)
	}
	f.body, f.bodyAt = body, f.at
	return nil
}

// Read reads from the position.
func (f *mediaFile) Read(p []byte) (int, error) {
	if f.at >= f.asset.Size {
		return 0, io.EOF
	}
	if f.bodyAt != f.at {
		if err := f.Close(); err != nil {
			return 0, err
		}
	}
	if f.body == nil {
		if err := f.open(); err != nil {
			return 0, err
		}
	}
	n, err := f.body.Read(p)
	f.at += int64(n)
	f.bodyAt = f.at
	return n, err
}

// Seek moves the position; the next Read opens there.
func (f *mediaFile) Seek(offset int64, whence int) (int64, error) {
	to := offset
	switch whence {
	case io.SeekStart:
	case io.SeekCurrent:
		to += f.at
	case io.SeekEnd:
		to += f.asset.Size
	default:
		return 0, errors.New("media: unknown whence")
	}
	if to < 0 {
		return 0, errors.New("media: negative position")
	}
	f.at = to
	return to, nil
}

// Close closes what is open.
func (f *mediaFile) Close() error {
	if f.body == nil {
		return nil
	}
	body := f.body
	f.body = nil
	return body.Close()
}
