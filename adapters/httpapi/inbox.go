package httpapi

import (
	"encoding/hex"
	"net/http"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/internal/wire"
	"github.com/aivedio/aivedio/ports"
)

// inboxView is a delivery as an operator sees it; the payload only by itself.
type inboxView struct {
	ID             int64             `json:"id"`
	Provider       string            `json:"provider"`
	AccountID      *string           `json:"account_id"`
	Status         ports.InboxStatus `json:"status"`
	Trust          domain.Trust      `json:"trust"`
	DedupKey       string            `json:"dedup_key"`
	ProviderTaskID *string           `json:"provider_task_id"`
	ReceivedAt     string            `json:"received_at"`
	NextRetryAt    string            `json:"next_retry_at"`
	ErrorCount     int               `json:"error_count"`
	ClaimCount     int               `json:"claim_count"`
	LastError      *string           `json:"last_error"`
	PayloadSHA256  string            `json:"payload_sha256"`
	TraceID        string            `json:"trace_id"`
	Payload        *[]byte           `json:"payload,omitempty"` // base 64
}

func inboxOf(row ports.InboxRow) inboxView {
	return inboxView{
		ID: row.ID, Provider: row.Provider, AccountID: present(row.AccountID), Status: row.Status, Trust: row.Trust,
		DedupKey: row.DedupKey, ProviderTaskID: present(row.ProviderTaskID),
		ReceivedAt: wire.FormatTime(row.ReceivedAt), NextRetryAt: wire.FormatTime(row.NextRetryAt),
		ErrorCount: row.ErrorCount, ClaimCount: row.ClaimCount, LastError: present(row.LastError),
		PayloadSHA256: hex.EncodeToString(row.PayloadHash), TraceID: wire.TraceID(row.TraceID),
	}
}

func (s *Server) deadLetters(w http.ResponseWriter, r *http.Request, _ *call) error {
	limit, err := limitOf(r, deskNormal, deskMost)
	if err != nil {
		return err
	}
	rows, err := s.cfg.Inbox.Troubled(r.Context(), limit)
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, map[string]any{"inbox": each(rows, inboxOf)})
}

func (s *Server) inboxRow(w http.ResponseWriter, r *http.Request, _ *call) error {
	id, err := rowID(r)
	if err != nil {
		return err
	}
	row, err := s.cfg.Inbox.InboxRow(r.Context(), id)
	if err != nil {
		return err
	}
	view := inboxOf(row)
	view.Payload = &row.Payload
	return answer(w, http.StatusOK, map[string]any{"inbox": view})
}

// requeue puts a delivery back to work; the reason is kept.
func (s *Server) requeue(w http.ResponseWriter, r *http.Request, c *call) error {
	id, err := rowID(r)
	if err != nil {
		return err
	}
	var body commandBody
	if _, err := s.readJSON(w, r, &body, false); err != nil {
		return err
	}
	if err := checkReason(body.Reason); err != nil {
		return err
	}
	err = s.cfg.Inbox.Requeue(r.Context(), id, ports.Audit{
		ActionID: domain.ActionID{ID: wire.NewID()}, Actor: c.actor(), Action: "inbox.requeue", Reason: body.Reason,
	})
	if err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
