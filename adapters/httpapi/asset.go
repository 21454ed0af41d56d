package httpapi

import (
	"context"
	"encoding/hex"
	"net/http"
	"time"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/internal/wire"
	"github.com/aivedio/aivedio/ports"
)

// assetAnswer is a published file and a URL that plays it for a while.
type assetAnswer struct {
	Asset assetView `json:"asset"`
}

type assetView struct {
	ID          string `json:"id"`
	ProjectID   string `json:"project_id"`
	TaskID      string `json:"task_id"`
	Kind        string `json:"kind"`
	ContentType string `json:"content_type"`
	Size        int64  `json:"size"`
	SHA256      string `json:"sha256"`
	CreatedAt   string `json:"created_at"`
	// ContentURL is relative to the service's base URL and needs no key until
	// ContentURLExpiresAt.
	ContentURL          string `json:"content_url"`
	ContentURLExpiresAt string `json:"content_url_expires_at"`
}

func (s *Server) signer() signer { return signer{s.cfg.SigningKeys, s.cfg.SignedFor} }

func (s *Server) asset(w http.ResponseWriter, r *http.Request, c *call) error {
	id, err := pathID(wire.PrefixAsset, r.PathValue("asset_id"))
	if err != nil {
		return err
	}
	a, err := s.cfg.Reader.Asset(r.Context(), c.project.ID, domain.AssetID{ID: id})
	if err != nil {
		return err
	}
	query, end := s.signer().query(a.ProjectID, a.ID, s.cfg.Now())
	project, asset := wire.ProjectID(a.ProjectID), wire.AssetID(a.ID)
	return answer(w, http.StatusOK, assetAnswer{assetView{
		ID: asset, ProjectID: project, TaskID: wire.TaskID(a.TaskID), Kind: a.Kind, ContentType: a.ContentType,
		Size: a.Size, SHA256: hex.EncodeToString(a.SHA256), CreatedAt: wire.FormatTime(a.CreatedAt),
		ContentURL:          "/projects/" + project + "/assets/" + asset + "/content?" + query,
		ContentURLExpiresAt: wire.FormatTime(end),
	}})
}

// contentTimeout bounds the download of one file by one client.
const contentTimeout = 30 * time.Minute

// assetContent serves the bytes, whole or in ranges, to the holder of a signed
// URL or of a key.
func (s *Server) assetContent(w http.ResponseWriter, r *http.Request, c *call) error {
	ctx, cancel := context.WithTimeout(r.Context(), s.cfg.RequestTimeout) // the file itself may take longer
	a, err := s.contentAsset(r.WithContext(ctx), c)
	cancel()
	if err != nil {
		return err
	}
	file, err := openMedia(r.Context(), s.cfg.Media, a)
	if err != nil {
		return err
	}
	defer file.Close()
	header := w.Header()
	header.Set("Content-Type", a.ContentType)
	header.Set("ETag", `"`+hex.EncodeToString(a.SHA256)+`"`)
	header.Set("Cache-Control", "private, max-age=300")
	header.Set("Content-Security-Policy", "default-src 'none'; media-src 'self'")
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(contentTimeout)) // not every writer has deadlines
	out := &rangeWriter{ResponseWriter: w}
	http.ServeContent(out, r, "", a.CreatedAt, file)
	if out.refused {
		return problemRange
	}
	return nil
}

// contentAsset proves the caller and finds the asset.
func (s *Server) contentAsset(r *http.Request, c *call) (ports.Asset, error) {
	query := r.URL.Query()
	signed := query.Has("sig") || query.Has("exp")
	if !signed {
		if err := s.authorize(r, c, ports.ScopeRead); err != nil {
			return ports.Asset{}, err
		}
	}
	project, err := pathID(wire.PrefixProject, r.PathValue("project_id"))
	if err != nil {
		return ports.Asset{}, err
	}
	asset, err := pathID(wire.PrefixAsset, r.PathValue("asset_id"))
	if err != nil {
		return ports.Asset{}, err
	}
	projectID, assetID := domain.ProjectID{ID: project}, domain.AssetID{ID: asset}
	if signed {
		if err := s.signer().check(projectID, assetID, query, s.cfg.Now()); err != nil {
			return ports.Asset{}, err
		}
	}
	return s.cfg.Reader.Asset(r.Context(), projectID, assetID)
}

// rangeWriter holds back the plain text that ServeContent sends for a range
// outside the file, so that a problem can take its place.
type rangeWriter struct {
	http.ResponseWriter
	refused bool
}

// WriteHeader passes every status on but 416.
func (w *rangeWriter) WriteHeader(status int) {
	if status == http.StatusRequestedRangeNotSatisfiable {
		w.refused = true
		return
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write drops the text of a refused range.
func (w *rangeWriter) Write(b []byte) (int, error) {
	if w.refused {
		return len(b), nil
	}
	return w.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController pass.
func (w *rangeWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
