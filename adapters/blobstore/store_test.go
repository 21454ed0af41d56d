package blobstore

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gocloud.dev/blob/memblob"

	"github.com/aivedio/aivedio/ports"
)

func open(t *testing.T, location string) *Store {
	t.Helper()
	s, err := Open(t.Context(), location)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func read(t *testing.T, s *Store, key string, offset, length int64) string {
	t.Helper()
	r, err := s.Open(t.Context(), key, offset, length)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestStoreKeepsFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	stores := map[string]*Store{
		"path": open(t, filepath.Join(dir, "a", "b")),
		"url":  open(t, "file://"+filepath.Join(dir, "c")),
		"mem":  {bucket: memblob.OpenBucket(nil)},
	}
	for name, s := range stores {
		t.Run(name, func(t *testing.T) {
			const content = "moving pictures"
			size, sum, err := s.Put(t.Context(), "prj_1/ast_1/video.mp4", "video/mp4", strings.NewReader(content))
			want := sha256.Sum256([]byte(content))
			if err != nil || size != int64(len(content)) || !bytes.Equal(sum, want[:]) {
				t.Fatalf("put: size %d, sum %x, error %v", size, sum, err)
			}
			if got := read(t, s, "prj_1/ast_1/video.mp4", 0, -1); got != content {
				t.Errorf("whole file: %q", got)
			}
			if got := read(t, s, "prj_1/ast_1/video.mp4", 7, 4); got != "pict" {
				t.Errorf("range: %q", got)
			}
			if _, _, err := s.Put(t.Context(), "prj_1/ast_1/video.mp4", "", strings.NewReader("")); err != nil {
				t.Fatal(err)
			}
			if got := read(t, s, "prj_1/ast_1/video.mp4", 0, -1); got != "" {
				t.Errorf("after a second put: %q", got)
			}
			if _, err := s.Open(t.Context(), "prj_1/none.mp4", 0, -1); !errors.Is(err, ports.ErrNotFound) {
				t.Errorf("missing file: %v", err)
			}
		})
	}
	got, err := os.ReadFile(filepath.Join(dir, "a", "b", "prj_1", "ast_1", "video.mp4"))
	if err != nil {
		t.Errorf("the file does not stand under its key: %q, %v", got, err)
	}
}

// failing gives some content and then an error.
type failing struct{ given bool }

var errCut = errors.New("cut")

func (f *failing) Read(p []byte) (int, error) {
	if f.given {
		return 0, errCut
	}
	f.given = true
	return copy(p, "half a file"), nil
}

func TestUnfinishedFilesStayInvisible(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir)
	if _, _, err := s.Put(t.Context(), "x/whole.mp4", "", strings.NewReader("old")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Put(t.Context(), "x/whole.mp4", "", &failing{}); !errors.Is(err, errCut) {
		t.Errorf("put of a cut source: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := s.Put(ctx, "x/other.mp4", "", strings.NewReader("new")); err == nil {
		t.Error("put with an ended context succeeded")
	}
	if got := read(t, s, "x/whole.mp4", 0, -1); got != "old" {
		t.Errorf("the old file became %q", got)
	}
	var files []string
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if !d.IsDir() {
			files = append(files, filepath.Base(path))
		}
		return err
	})
	if err != nil || len(files) != 1 {
		t.Errorf("files in the directory: %v, %v", files, err)
	}
}

func TestHalfWrittenFileIsNotReadable(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	from, to := io.Pipe()
	done := make(chan error, 1)
	go func() {
		_, _, err := s.Put(context.Background(), "slow.mp4", "", from)
		done <- err
	}()
	if _, err := to.Write([]byte("first half")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Open(t.Context(), "slow.mp4", 0, -1); !errors.Is(err, ports.ErrNotFound) {
		t.Errorf("a half-written file opened: %v", err)
	}
	to.Close()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if got := read(t, s, "slow.mp4", 0, -1); got != "first half" {
		t.Errorf("afterwards: %q", got)
	}
}

func TestKeysCannotLeaveTheRoot(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	for _, key := range []string{"", "/etc/passwd", "../x", "a/../../x", "a//b", "a/", "a\\b", "a\x00b", ".hidden", "a/.hidden", "ü", "a b", strings.Repeat("k", 513)} {
		if _, _, err := s.Put(t.Context(), key, "", strings.NewReader("x")); err == nil {
			t.Errorf("put under %q succeeded", key)
		}
		if _, err := s.Open(t.Context(), key, 0, -1); !errors.Is(err, ports.ErrNotFound) {
			t.Errorf("open of %q: %v", key, err)
		}
	}
	if _, err := s.Open(t.Context(), "a", -1, 2); err == nil {
		t.Error("a negative offset was taken")
	}
}

func TestOpenRefusesWhatItCannotKeep(t *testing.T) {
	t.Parallel()
	for _, location := range []string{"", "gopher://x", "file:///tmp/x?metadata=skip", "file://host/x"} {
		if s, err := Open(t.Context(), location); err == nil {
			s.Close()
			t.Errorf("opened %q", location)
		}
	}
}
