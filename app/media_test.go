package app_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aivedio/aivedio/app"
	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// shelf is a media store in memory.
type shelf struct {
	fail bool

	mu    sync.Mutex
	files map[string][]byte
}

func (s *shelf) Put(_ context.Context, key, _ string, content io.Reader) (int64, []byte, error) {
	data, err := io.ReadAll(content)
	if err != nil {
		return 0, nil, err
	}
	if s.fail {
		return 0, nil, errAway
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.files == nil {
		s.files = map[string][]byte{}
	}
	s.files[key] = data
	sum := sha256.Sum256(data)
	return int64(len(data)), sum[:], nil
}

func (s *shelf) Open(_ context.Context, key string, offset, length int64) (io.ReadCloser, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	data, ok := s.files[key]
	if !ok {
		return nil, ports.ErrNotFound
	}
	data = data[offset:]
	if length >= 0 {
		data = data[:length]
	}
	return io.NopCloser(bytes.NewReader(data)), nil
}

// download answers a request for an output.
type download func(req *http.Request) (ports.Download, error)

func (d download) Download(req *http.Request, _ int64) (ports.Download, error) { return d(req) }

// mp4 begins like a video.
var mp4 = []byte("\x00\x00\x00\x18ftypisom\x00\x00\x02\x00isommp41" + strings.Repeat("frame", 100))

func file(data []byte, size int64) download {
	return func(*http.Request) (ports.Download, error) {
		return ports.Download{Body: io.NopCloser(bytes.NewReader(data)), Size: size}, nil
	}
}

func refused(class ports.ProviderClass) download {
	return func(*http.Request) (ports.Download, error) {
		return ports.Download{}, &ports.ProviderError{Class: class}
	}
}

func newMedia(b *bundle, d ports.Downloader, s *shelf) *app.Media {
	b.t.Helper()
	m, err := app.NewMedia(app.MediaDeps{
		Env: b.env, Transitions: b.store, Work: b.store, Vendors: app.NewVendors(b.vendor), Downloader: d, Media: s,
	}, app.MediaConfig{MaxBytes: 1 << 16, OperationConfig: app.OperationConfig{MaxTries: b.mediaTries}})
	b.must(err)
	return m
}

// finishedAtVendor is a task whose output waits to be fetched.
func finishedAtVendor(b *bundle) ports.TaskView {
	b.t.Helper()
	b.vendor.onQuery = succeeded
	view := b.submitted()
	b.clock.Advance(10 * time.Second)
	b.step(b.poll)
	return b.want(view.Task.ID, providerDone, domain.AttemptSucceeded)
}

const (
	ready      = domain.Status(domain.PhaseReady)
	processing = domain.Status(domain.PhaseProcessingMedia)
)

func TestMediaPublishes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	task := finishedAtVendor(b).Task.ID
	s := &shelf{}
	var asked *http.Request
	m := newMedia(b, download(func(req *http.Request) (ports.Download, error) {
		asked = req
		return file(mp4, int64(len(mp4)))(req)
	}), s)
	if n := b.step(m); n != 1 {
		t.Fatalf("worked %d", n)
	}
	view := b.want(task, ready, domain.AttemptSucceeded)
	asset, err := b.store.Asset(b.ctx(), b.project.ID, view.Task.AssetID)
	b.must(err)
	sum := sha256.Sum256(mp4)
	want := ports.Asset{
		ID: view.Task.AssetID, TenantID: b.project.TenantID, ProjectID: b.project.ID, TaskID: task, AttemptID: view.Attempt.ID,
		Kind: "video", ContentType: "video/mp4", Size: int64(len(mp4)), SHA256: sum[:], CreatedAt: b.clock.Now(),
		Key: b.project.TenantID.String() + "/" + b.project.ID.String() + "/" + view.Task.AssetID.String() + "/original.mp4",
	}
	if diff := cmp.Diff(want, asset); diff != "" {
		t.Errorf("asset (-want +got):\n%s", diff)
	}
	if !bytes.Equal(s.files[asset.Key], mp4) || asked.URL.String() != "https://cdn.acme.example/out.mp4" {
		t.Error("another file was stored")
	}
	page, err := b.store.After(b.ctx(), b.project.ID, domain.Cursor{}, 100)
	b.must(err)
	var stages []domain.Stage
	for _, e := range page.Events {
		if e.Phase == domain.PhaseProcessingMedia || e.Phase == domain.PhaseReady {
			stages = append(stages, e.Stage)
		}
	}
	if want := []domain.Stage{domain.StageFetching, domain.StageValidating, domain.StagePublishing, domain.StageDone}; !slices.Equal(stages, want) {
		t.Errorf("stages %v, want %v", stages, want)
	}
	if n := b.step(m); n != 0 {
		t.Error("the operation is not finished")
	}
}

func TestMediaFaults(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		download ports.Downloader
		tries    int // until the task ends; 0 for never
		code     domain.ErrorClass
	}{
		"gone":             {refused(ports.ClassNotFound), 3, domain.ClassOutputExpired},
		"refused":          {refused(ports.ClassRejected), 1, domain.ClassMedia},
		"reset":            {refused(ports.ClassTransport), 3, domain.ClassMedia},
		"forbidden":        {refused(ports.ClassAuth), 3, domain.ClassMedia},
		"a page":           {file([]byte("<html>sorry</html>"), -1), 3, domain.ClassMedia},
		"empty":            {file(nil, 0), 3, domain.ClassMedia},
		"cut short":        {file(mp4[:50], int64(len(mp4))), 3, domain.ClassMedia},
		"too large":        {file(append(slices.Clone(mp4), make([]byte, 1<<16)...), -1), 1, domain.ClassMedia},
		"breaks off":       {download(func(*http.Request) (ports.Download, error) { return broken(), nil }), 3, domain.ClassMedia},
		"our own fault":    {file(mp4, -1), 0, ""},
		"our own settings": {file(mp4, -1), 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			task := finishedAtVendor(b).Task.ID
			m := newMedia(b, tc.download, &shelf{fail: name == "our own fault"})
			if name == "our own settings" {
				b.vendor.accounts = nil
			}
			for try := 1; try <= 6; try++ {
				b.step(m)
				b.clock.Advance(10 * time.Minute)
				view := b.view(task)
				ended := tc.tries != 0 && try >= tc.tries
				if ended != view.Task.Status().Terminal() {
					t.Fatalf("after try %d the task is %s", try, view.Task.Status())
				}
				if ended && (view.Task.Error == nil || view.Task.Error.Code != tc.code) {
					t.Fatalf("error %+v, want %s", view.Task.Error, tc.code)
				}
			}
			if n := b.step(m); n != 0 && tc.tries != 0 {
				t.Error("tried on after the end")
			}
		})
	}
}

// A vendor's success may be ahead of its storage: an output that is not there yet
// is fetched when it is.
func TestMediaWaitsForALateOutput(t *testing.T) {
	t.Parallel()
	b := setup(t)
	task := finishedAtVendor(b).Task.ID
	asked := 0
	m := newMedia(b, download(func(req *http.Request) (ports.Download, error) {
		if asked++; asked < 3 {
			return refused(ports.ClassNotFound)(req)
		}
		return file(mp4, int64(len(mp4)))(req)
	}), &shelf{})
	for range 3 {
		b.step(m)
		b.clock.Advance(20 * time.Second)
	}
	if view := b.view(task); view.Task.Status() != "ready" {
		t.Errorf("the task is %s after %d tries", view.Task.Status(), asked)
	}
}

// broken is a download that starts well.
func broken() ports.Download {
	return ports.Download{Size: -1, Body: io.NopCloser(io.MultiReader(bytes.NewReader(mp4), errReader{}))}
}

type errReader struct{}

func (errReader) Read([]byte) (int, error) { return 0, errors.New("reset") }

// A short outage of ours uses tries up, and ends no task.
func TestMediaTriesForAWhile(t *testing.T) {
	t.Parallel()
	b := setup(t)
	task := finishedAtVendor(b).Task.ID
	m := newMedia(b, refused(ports.ClassTransport), &shelf{})
	for range 10 {
		b.step(m)
		b.clock.Advance(20 * time.Second)
	}
	b.want(task, processing, domain.AttemptSucceeded)
	b.clock.Advance(5 * time.Minute)
	b.step(m)
	b.want(task, hasFailed, domain.AttemptSucceeded)
}

func TestMediaOfACanceledTask(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.project.OnLateSuccess = domain.LateSuccessDiscard
	c := newCommands(b)
	task := finishedAtVendor(b).Task.ID
	_, err := c.cancel.Request(b.ctx(), about(b, task))
	b.must(err)
	s := &shelf{}
	m := newMedia(b, file(mp4, -1), s)
	b.step(m)
	b.want(task, canceled, domain.AttemptSucceeded)
	if len(s.files) != 0 || b.step(m) != 0 {
		t.Error("the output of a canceled task was fetched")
	}
}

func TestMediaResumesAfterACrash(t *testing.T) {
	t.Parallel()
	b := setup(t)
	task := finishedAtVendor(b).Task.ID
	s := &shelf{}
	m := newMedia(b, file(mp4, -1), s)
	dying := &flaky{Store: b.store, before: func(n int, _ []ports.Item) error {
		if n == 4 { // the publication itself
			panic("killed")
		}
		return nil
	}}
	dead, err := app.NewMedia(app.MediaDeps{
		Env: b.env, Transitions: dying, Work: b.store, Vendors: app.NewVendors(b.vendor), Downloader: file(mp4, -1), Media: s,
	}, app.MediaConfig{})
	b.must(err)
	_, _ = dead.Step(b.ctx())
	b.want(task, processing, domain.AttemptSucceeded)
	b.clock.Advance(10 * time.Minute)
	b.step(m)
	b.want(task, ready, domain.AttemptSucceeded)
	if len(s.files) != 1 {
		t.Errorf("%d files: the second try left the first one behind", len(s.files))
	}
}

func TestMediaProgress(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		task := finishedAtVendor(b).Task.ID
		data := slices.Concat(mp4, make([]byte, 10*100-len(mp4)))
		m := newMedia(b, download(func(*http.Request) (ports.Download, error) {
			return ports.Download{Size: int64(len(data)), Body: io.NopCloser(&slow{data: data, clock: b.clock})}, nil
		}), &shelf{})
		b.step(m)
		b.want(task, ready, domain.AttemptSucceeded)
		page, err := b.store.After(b.ctx(), b.project.ID, domain.Cursor{}, 100)
		b.must(err)
		var seen []int
		for _, e := range page.Events {
			if e.Stage == domain.StageFetching && e.Progress != nil {
				seen = append(seen, *e.Progress)
			}
		}
		if len(seen) < 4 || !slices.IsSorted(seen) || seen[len(seen)-1] > 99 {
			t.Errorf("progress %v", seen)
		}
	})
}

// slow gives a tenth of its data every two seconds.
type slow struct {
	data  []byte
	clock *clock
}

func (s *slow) Read(p []byte) (int, error) {
	if len(s.data) == 0 {
		return 0, io.EOF
	}
	<-time.After(2 * time.Second)
	s.clock.Advance(2 * time.Second)
	n := copy(p, s.data[:min(100, len(s.data))])
	s.data = s.data[n:]
	return n, nil
}

// Whatever a vendor's server sends, the task ends or waits, and only media is
// published.
func FuzzMediaContent(f *testing.F) {
	f.Add(mp4, int64(-1))
	f.Add([]byte("RIFF....WEBP"), int64(12))
	f.Add([]byte("\x00\x00\x00\x18ftypqt  "), int64(3))
	f.Add([]byte("<html>"), int64(0))
	f.Fuzz(func(t *testing.T, content []byte, size int64) {
		b := setup(t)
		task := finishedAtVendor(b).Task.ID
		b.step(newMedia(b, file(content, size), &shelf{}))
		view := b.view(task)
		if view.Task.Status() != ready {
			return
		}
		asset, err := b.store.Asset(b.ctx(), b.project.ID, view.Task.AssetID)
		b.must(err)
		if asset.Size != int64(len(content)) || asset.Size == 0 || (size >= 0 && size != asset.Size) {
			t.Errorf("published %d bytes of %d, declared %d", asset.Size, len(content), size)
		}
	})
}
