package stream

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/aivedio/aivedio/internal/wire"
	"github.com/aivedio/aivedio/ports"
)

// writes is a response that keeps each write by itself.
type writes struct {
	header http.Header
	mu     sync.Mutex
	list   [][]byte
}

func (w *writes) Header() http.Header { return w.header }
func (w *writes) WriteHeader(int)     {}
func (w *writes) Flush()              {}

func (w *writes) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.list = append(w.list, bytes.Clone(p))
	return len(p), nil
}

// stored returns what was written until now.
func (w *writes) stored() [][]byte {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.list
}

// TestResetStandsAlone looks at the bytes of a stream that begins with a reset, for
// every reason. An id that came before it would be where a browser goes on when the
// connection is cut there, and the reset would never be heard.
func TestResetStandsAlone(t *testing.T) {
	t.Parallel()
	for target, reason := range map[string]ports.ResetReason{
		"/events?after=abc": ports.ResetBad, "/events?after=-1": ports.ResetBad, "/events?after=9": ports.ResetFuture,
		"/events?after=3.zzz": ports.ResetTag, "/events?after=1": ports.ResetExpired,
	} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, nil)
			for range 3 {
				b.commit(taskA)
			}
			b.store.oldest = 2
			head := b.store.head(testProject).String()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			w := &writes{header: http.Header{}}
			go func() {
				r := httptest.NewRequestWithContext(ctx, http.MethodGet, target, nil)
				_ = b.hub.ServeEvents(w, r, StreamRequest{Project: testProject}) // ends with the test
			}()
			want := "id: " + head + "\nevent: reset\ndata: {\"cursor\":\"" + head + "\",\"reason\":\"" + string(reason) + "\"}\n\n"
			before := true
			for _, p := range w.stored() {
				switch {
				case string(p) == want:
					before = false
				case bytes.Contains(p, []byte("id:")) || bytes.Contains(p, []byte("event:")):
					t.Errorf("%s: %q beside the reset", target, p)
				}
			}
			if before {
				t.Errorf("%s: no write is the block %q alone: %q", target, want, w.stored())
			}
			b.commit(taskB)
			if last := w.stored()[len(w.stored())-1]; !bytes.Contains(last, []byte("event: "+wire.StreamEvent)) {
				t.Errorf("%s: the stream does not go on: %q", target, last)
			}
			cancel()
			synctest.Wait()
		})
	}
}
