package httpapi

import (
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aivedio/aivedio/app"
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
	// PayloadShape is null where the payload was removed; both only on one row.
	PayloadShape *json.RawMessage `json:"payload_shape,omitempty"`
	Payload      *[]byte          `json:"payload,omitempty"` // base 64; with ?payload=full alone
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

// deadLetters lists a page of deliveries that need a look.
func (s *Server) deadLetters(w http.ResponseWriter, r *http.Request, _ *call) error {
	filter, err := s.troubledFilter(r.URL.Query())
	if err != nil {
		return err
	}
	if filter.Limit, err = limitOf(r, deskNormal, deskMost); err != nil {
		return err
	}
	rows, err := s.cfg.Inbox.Troubled(r.Context(), filter)
	if err != nil {
		return err
	}
	var next *string
	if len(rows) == filter.Limit && filter.Limit > 0 {
		next = present(strconv.FormatInt(rows[len(rows)-1].ID, 10))
	}
	return answer(w, http.StatusOK, map[string]any{"inbox": each(rows, inboxOf), "next": next})
}

// troubledFilter reads the filter of a list.
func (s *Server) troubledFilter(q url.Values) (f ports.TroubledFilter, err error) {
	var faults []Fault
	f.Status, f.Provider, f.Code = ports.InboxStatus(q.Get("status")), q.Get("provider"), q.Get("code")
	if f.Status != "" && !slices.Contains(troubledStatuses, f.Status) {
		faults = append(faults, Fault{"status", "unknown", oneOf(troubledStatuses)})
	}
	if strings.ContainsRune(f.Provider+f.Code, 0) {
		faults = append(faults, Fault{"provider", "invalid", "use text without NUL"})
	}
	var fault *Fault
	if f.ReceivedBefore, fault = s.olderThan(q.Get("older_than")); fault != nil {
		faults = append(faults, *fault)
	}
	if text := q.Get("before"); text != "" {
		if f.BeforeID, err = strconv.ParseInt(text, 10, 64); err != nil || f.BeforeID < 1 {
			faults = append(faults, Fault{"before", "invalid", "use the number in next of the page before"})
		}
	}
	if len(faults) > 0 {
		return f, problemQuery.with(faults...)
	}
	return f, nil
}

// troubledStatuses are the statuses of deliveries that need a look.
var troubledStatuses = []ports.InboxStatus{ports.InboxDead, ports.InboxRetry, ports.InboxOrphan}

// olderThan turns an age into a time; zero for none.
func (s *Server) olderThan(text string) (time.Time, *Fault) {
	if text == "" {
		return time.Time{}, nil
	}
	age, err := time.ParseDuration(text)
	if err != nil || age < 0 {
		return time.Time{}, &Fault{"older_than", "invalid", "use an age such as 90m or 24h"}
	}
	return s.cfg.Now().Add(-age), nil
}

// inboxRow shows a delivery with the shape of its payload. The payload itself is
// for ?payload=full, and who looked is kept.
func (s *Server) inboxRow(w http.ResponseWriter, r *http.Request, c *call) error {
	id, err := rowID(r)
	if err != nil {
		return err
	}
	q := r.URL.Query()
	var row ports.InboxRow
	switch q.Get("payload") {
	case "", "shape":
		row, err = s.cfg.Inbox.InboxRow(r.Context(), id)
	case "full":
		if len(q.Get("reason")) > maxReason || strings.ContainsRune(q.Get("reason"), 0) {
			return problemQuery.with(Fault{"reason", "invalid", "use at most " + strconv.Itoa(maxReason) + " bytes without NUL"})
		}
		row, err = s.cfg.Inbox.ReadPayload(r.Context(), id, ports.Audit{
			ActionID: domain.ActionID{ID: wire.NewID()}, Actor: c.actor(), Action: "inbox.read_payload", Reason: q.Get("reason"),
		})
	default:
		return problemQuery.with(Fault{"payload", "unknown", "use shape or full"})
	}
	if err != nil {
		return err
	}
	view := inboxOf(row)
	shape := json.RawMessage("null")
	if row.Payload != nil {
		if shape, err = json.Marshal(shapeOf(row.Payload)); err != nil {
			return err
		}
	}
	view.PayloadShape = &shape
	if q.Get("payload") == "full" {
		view.Payload = &row.Payload
	}
	return answer(w, http.StatusOK, map[string]any{"inbox": view})
}

// requeueMany gives chosen deliveries another life, or says which it would choose.
func (s *Server) requeueMany(w http.ResponseWriter, r *http.Request, c *call) error {
	var body struct {
		Status    ports.InboxStatus `json:"status"`
		Provider  string            `json:"provider"`
		Code      string            `json:"code"`
		OlderThan string            `json:"older_than"`
		Limit     int               `json:"limit"`
		Rate      int               `json:"rate"`
		DryRun    bool              `json:"dry_run"`
		Reason    string            `json:"reason"`
	}
	if _, err := s.readJSON(w, r, &body, false); err != nil {
		return err
	}
	before, fault := s.olderThan(body.OlderThan)
	if fault != nil {
		return problemFields.with(*fault)
	}
	report, err := s.cfg.Requeue.Run(r.Context(), app.RequeueCommand{
		Filter: ports.TroubledFilter{Status: body.Status, Provider: body.Provider, Code: body.Code, ReceivedBefore: before, Limit: body.Limit},
		Rate:   body.Rate, DryRun: body.DryRun, Actor: c.actor(), Reason: body.Reason,
	})
	if err != nil {
		return err
	}
	view := requeueView{DryRun: body.DryRun, Rows: report.Rows, Groups: each(report.Groups, groupOf)}
	if report.Rows > 0 {
		view.LastDueAt = present(wire.FormatTime(report.LastDueAt))
	}
	return answer(w, http.StatusOK, map[string]any{"requeue": view})
}

// requeueView is what a requeue took, or would take.
type requeueView struct {
	DryRun    bool        `json:"dry_run"`
	Rows      int         `json:"rows"`
	LastDueAt *string     `json:"last_due_at"`
	Groups    []groupView `json:"groups"`
}

// groupView is how many of them share vendor, status and code.
type groupView struct {
	Provider string            `json:"provider"`
	Status   ports.InboxStatus `json:"status"`
	Code     *string           `json:"code"`
	Rows     int               `json:"rows"`
	Oldest   string            `json:"oldest"`
	Newest   string            `json:"newest"`
}

func groupOf(g ports.TroubledGroup) groupView {
	return groupView{
		Provider: g.Provider, Status: g.Status, Code: present(g.Code), Rows: g.Rows,
		Oldest: wire.FormatTime(g.Oldest), Newest: wire.FormatTime(g.Newest),
	}
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
