package blobstore

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"gocloud.dev/blob"
	"gocloud.dev/blob/fileblob"
	"gocloud.dev/gcerrors"

	"github.com/aivedio/aivedio/ports"
)

// Store keeps files in a bucket of gocloud.dev/blob.
type Store struct {
	bucket *blob.Bucket
	// directory is set when the bucket is one: then a file is on the disk before
	// Put returns, as it would be with an object store.
	directory bool
}

var _ ports.Media = (*Store)(nil)

// Open opens a bucket by URL, or a directory by path. A directory is made when it
// is missing; its files are plain files under their keys. Other schemes work when
// their driver is linked into the program.
func Open(ctx context.Context, location string) (*Store, error) {
	if location == "" {
		return nil, errors.New("media: no location is configured")
	}
	path := location
	scheme, _, hasScheme := strings.Cut(location, "://")
	if hasScheme && scheme != fileblob.Scheme {
		bucket, err := blob.OpenBucket(ctx, location)
		if err != nil {
			return nil, fmt.Errorf("media: open %s bucket: %w", scheme, err)
		}
		return &Store{bucket: bucket}, nil
	}
	if hasScheme {
		u, err := url.Parse(location)
		if err != nil || u.RawQuery != "" || u.Host != "" && u.Host != "localhost" {
			return nil, errors.New("media: want a file URL such as file:///var/lib/aivedio/media, without options")
		}
		path = filepath.FromSlash(u.Path)
	}
	// Temporary files stand beside the final ones: only then is the rename that
	// makes a file visible atomic, and possible at all.
	bucket, err := fileblob.OpenBucket(path, &fileblob.Options{
		CreateDir: true, NoTempDir: true, DirFileMode: 0o750, Metadata: fileblob.MetadataDontWrite,
	})
	if err != nil {
		return nil, fmt.Errorf("media: open directory: %w", err)
	}
	return &Store{bucket: bucket, directory: true}, nil
}

// Put stores the content under the key. Nothing becomes visible when the content
// ends with an error or the context ends.
func (s *Store) Put(ctx context.Context, key, contentType string, content io.Reader) (int64, []byte, error) {
	if err := checkKey(key); err != nil {
		return 0, nil, err
	}
	if contentType == "" {
		contentType = "application/octet-stream"
	}
	// A writer whose context has ended discards what it holds when it is closed.
	writing, discard := context.WithCancel(ctx)
	defer discard()
	w, err := s.bucket.NewWriter(writing, key, &blob.WriterOptions{ContentType: contentType, DisableContentTypeDetection: true})
	if err != nil {
		return 0, nil, unavailable("create file", err)
	}
	hash := sha256.New()
	size, err := io.Copy(io.MultiWriter(w, hash), content)
	if err != nil {
		discard()
		_ = w.Close() // reports the discarding, which was asked for
		return 0, nil, fmt.Errorf("media: write file: %w", err)
	}
	if err := w.Close(); err != nil {
		return 0, nil, unavailable("finish file", err)
	}
	if err := s.sync(ctx, key); err != nil {
		return 0, nil, unavailable("sync file", err)
	}
	return size, hash.Sum(nil), nil
}

// Open reads a file from the offset; length −1 means to the end.
func (s *Store) Open(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error) {
	if err := checkKey(key); err != nil {
		return nil, fmt.Errorf("%w: %w", ports.ErrNotFound, err)
	}
	if offset < 0 || length < -1 {
		return nil, fmt.Errorf("media: no such range: offset %d, length %d", offset, length)
	}
	r, err := s.bucket.NewRangeReader(ctx, key, offset, length, nil)
	switch {
	case gcerrors.Code(err) == gcerrors.NotFound:
		return nil, fmt.Errorf("media: open file: %w", ports.ErrNotFound)
	case err != nil:
		return nil, unavailable("open file", err)
	}
	return r, nil
}

// Close ends the store.
func (s *Store) Close() error {
	if err := s.bucket.Close(); err != nil {
		return fmt.Errorf("media: close: %w", err)
	}
	return nil
}

// sync puts a finished file and its name on the disk: a task may be called ready
// only if its file outlives a power cut.
func (s *Store) sync(ctx context.Context, key string) error {
	if !s.directory {
		return nil
	}
	r, err := s.bucket.NewRangeReader(ctx, key, 0, 0, &blob.ReaderOptions{BeforeRead: syncOpened})
	if err != nil {
		return err
	}
	return r.Close()
}

func syncOpened(as func(any) bool) error {
	var file *os.File
	if !as(&file) {
		return nil
	}
	if err := file.Sync(); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(file.Name()))
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.Sync()
}

func unavailable(what string, err error) error {
	return fmt.Errorf("media: %s: %w: %w", what, ports.ErrUnavailable, err)
}

const maxKey = 512

// checkKey takes relative paths of plain characters, which every store spells the
// same and none can lead out of its root.
func checkKey(key string) error {
	if key == "" || len(key) > maxKey {
		return fmt.Errorf("media: a key has 1 to %d characters", maxKey)
	}
	for part := range strings.SplitSeq(key, "/") {
		if part == "" || strings.HasPrefix(part, ".") || strings.ContainsFunc(part, odd) {
			return fmt.Errorf("media: key %.60q: want parts of letters, digits, '-', '_' and '.', joined by '/'", key)
		}
	}
	return nil
}

func odd(r rune) bool {
	switch {
	case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_', r == '.':
		return false
	default:
		return true
	}
}
