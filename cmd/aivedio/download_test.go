package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/internal/wire"
)

// fileServer serves one task and its file.
func fileServer(t *testing.T, task wire.Task, bytes, promised string) string {
	t.Helper()
	sum := sha256.Sum256([]byte(promised))
	mux := http.NewServeMux()
	mux.HandleFunc("/projects/prj_x/tasks/tsk_x", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(taskAnswer{Task: task})
	})
	mux.HandleFunc("/projects/prj_x/assets/ast_x", func(w http.ResponseWriter, _ *http.Request) {
		a := asset{ID: "ast_x", ContentType: "video/mp4", Size: int64(len(promised)), SHA256: hex.EncodeToString(sum[:])}
		_ = json.NewEncoder(w).Encode(map[string]asset{"asset": a})
	})
	mux.HandleFunc("/projects/prj_x/assets/ast_x/content", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer ak_x" {
			w.WriteHeader(http.StatusUnauthorized)
		}
		_, _ = w.Write([]byte(bytes))
	})
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	return srv.URL
}

func TestDownload(t *testing.T) {
	t.Parallel()
	ready := wire.Task{ID: "tsk_x", Status: domain.Status(domain.PhaseReady), AssetID: new("ast_x")}
	for _, tt := range []struct {
		name, bytes, promised string
		task                  wire.Task
		wrong                 string
	}{
		{"good", "video", "video", ready, ""},
		{"damaged", "vid", "video", ready, "damaged"},
		{"running", "", "", wire.Task{ID: "tsk_x", Status: domain.Status(domain.PhaseRunning)}, "`aivedio task watch tsk_x`"},
		{"failed", "", "", wire.Task{ID: "tsk_x", Status: domain.Status(domain.PhaseFailed)}, "`aivedio task retry tsk_x`"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			url := fileServer(t, tt.task, tt.bytes, tt.promised)
			path := filepath.Join(t.TempDir(), "clip.mp4")
			code, out, errs := ran(t, "task", "download", "tsk_x", "--out", path, "--url", url, "--api-key", "ak_x", "--project", "prj_x")
			got, err := os.ReadFile(path)
			if tt.wrong == "" {
				if code != exitOK || err != nil || string(got) != tt.bytes || !strings.Contains(out, path) {
					t.Errorf("exit %d, %q, %v: %s%s", code, got, err, out, errs)
				}
				return
			}
			left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*"))
			if code != exitUsage || !strings.Contains(errs, tt.wrong) || len(left) > 0 {
				t.Errorf("exit %d, files %v: %s", code, left, errs)
			}
		})
	}
}
