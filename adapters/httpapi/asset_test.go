package httpapi

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aivedio/aivedio/internal/wire"
)

func (f *fixture) assetPath() string {
	return "/projects/" + f.project + "/assets/" + wire.AssetID(f.store.asset.ID)
}

func TestAsset(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	w := f.do(request{path: f.assetPath(), key: f.reader})
	a := decoded[assetAnswer](t, w).Asset
	if w.Code != http.StatusOK || a.Size != 10 || len(a.SHA256) != 64 || !strings.HasPrefix(a.ContentURL, f.assetPath()+"/content?exp=") {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	if strings.Contains(w.Body.String(), "video.mp4") {
		t.Error("the place in the media store is shown")
	}
	wantProblem(t, f.do(request{path: f.assetPath(), key: f.foreignKey}), http.StatusNotFound, "not_found")

	whole := f.do(request{path: a.ContentURL})
	if whole.Code != http.StatusOK || whole.Body.String() != "0123456789" || whole.Header().Get("Content-Type") != "video/mp4" {
		t.Errorf("content: %d %q %v", whole.Code, whole.Body, whole.Header())
	}
	for span, want := range map[string]string{"bytes=2-4": "234", "bytes=-3": "789", "bytes=7-": "789"} {
		part := f.do(request{path: a.ContentURL, header: map[string]string{"Range": span}})
		if part.Code != http.StatusPartialContent || part.Body.String() != want {
			t.Errorf("%s: %d %q, want %q", span, part.Code, part.Body, want)
		}
	}
	wantProblem(t, f.do(request{path: a.ContentURL, header: map[string]string{"Range": "bytes=99-"}}), http.StatusRequestedRangeNotSatisfiable, "range_not_satisfiable")
	same := f.do(request{path: a.ContentURL, header: map[string]string{"If-None-Match": whole.Header().Get("ETag")}})
	if same.Code != http.StatusNotModified {
		t.Errorf("same ETag: %d", same.Code)
	}
	head := f.do(request{method: http.MethodHead, path: a.ContentURL})
	if head.Code != http.StatusOK || head.Header().Get("Content-Length") != "10" || head.Body.Len() != 0 {
		t.Errorf("HEAD: %d %v", head.Code, head.Header())
	}
}

func TestContentRights(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	url := decoded[assetAnswer](t, f.do(request{path: f.assetPath(), key: f.reader})).Asset.ContentURL
	content := f.assetPath() + "/content"
	if w := f.do(request{path: content, key: f.reader}); w.Code != http.StatusOK {
		t.Errorf("by key: %d", w.Code)
	}
	wantProblem(t, f.do(request{path: content}), http.StatusUnauthorized, "unauthenticated")
	wantProblem(t, f.do(request{path: content, key: f.foreignKey}), http.StatusNotFound, "not_found")
	wantProblem(t, f.do(request{path: content + "?exp=1&sig=AAAA"}), http.StatusForbidden, "url_invalid")
	wantProblem(t, f.do(request{path: content + "?sig=%21"}), http.StatusForbidden, "url_invalid")
	longer := strings.Replace(url, "exp=1", "exp=2", 1)
	wantProblem(t, f.do(request{path: longer}), http.StatusForbidden, "url_invalid")
	moved := strings.Replace(url, f.project, f.foreign, 1)
	wantProblem(t, f.do(request{path: moved}), http.StatusForbidden, "url_invalid")
	f.now = f.now.Add(16 * time.Minute)
	wantProblem(t, f.do(request{path: url}), http.StatusForbidden, "url_expired")
	f.store.asset.Key = "gone"
	wantProblem(t, f.do(request{path: content, key: f.reader}), http.StatusNotFound, "not_found")
}
