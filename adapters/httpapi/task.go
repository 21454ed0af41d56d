package httpapi

import (
	"crypto/sha256"
	"net/http"
	"slices"

	"github.com/aivedio/aivedio/app"
	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/internal/wire"
	"github.com/aivedio/aivedio/ports"
)

// taskAnswer is a task with the head of its project's stream.
type taskAnswer struct {
	Task   wire.Task `json:"task"`
	Cursor string    `json:"cursor"`
}

// taskPage is a page of tasks, the newest first.
type taskPage struct {
	Tasks  []wire.Task `json:"tasks"`
	Cursor string      `json:"cursor"`
	// Next is the after of the next page, null at the end.
	Next *string `json:"next"`
}

// submitBody is the body of a submit.
type submitBody struct {
	Provider string     `json:"provider"`
	Model    string     `json:"model"`
	Input    submitTask `json:"input"`
	Metadata object     `json:"metadata"`
}

type submitTask struct {
	Prompt          string `json:"prompt"`
	ImageURL        string `json:"image_url"`
	DurationSeconds int    `json:"duration_seconds"`
	AspectRatio     string `json:"aspect_ratio"`
	Resolution      string `json:"resolution"`
	Seed            *int64 `json:"seed"`
	Extra           object `json:"extra"`
}

func (b submitBody) input() ports.TaskInput {
	return ports.TaskInput{
		Prompt: b.Input.Prompt, ImageURL: b.Input.ImageURL, DurationSeconds: b.Input.DurationSeconds,
		AspectRatio: b.Input.AspectRatio, Resolution: b.Input.Resolution, Seed: b.Input.Seed,
		Extra: b.Input.Extra, Metadata: b.Metadata,
	}
}

// submit answers 201 after the commit; the vendor is called later.
func (s *Server) submit(w http.ResponseWriter, r *http.Request, c *call) error {
	var body submitBody
	raw, err := s.readJSON(w, r, &body, false)
	if err != nil {
		return err
	}
	hash := sha256.Sum256(raw)
	res, err := s.cfg.Submit.Create(r.Context(), app.CreateCommand{
		Project: c.project, Provider: body.Provider, Model: body.Model, Input: body.input(),
		IdempotencyKey: r.Header.Get("Idempotency-Key"), BodyHash: hash[:], TraceID: c.trace,
	})
	if err != nil {
		return err
	}
	task := wire.TaskOf(res.View)
	w.Header().Set("Location", "/projects/"+task.ProjectID+"/tasks/"+task.ID)
	if res.Replayed {
		w.Header().Set("Idempotent-Replayed", "true")
	}
	return answer(w, http.StatusCreated, taskAnswer{task, res.Cursor.String()})
}

func (s *Server) get(w http.ResponseWriter, r *http.Request, c *call) error {
	id, err := taskID(r)
	if err != nil {
		return err
	}
	view, cursor, err := s.cfg.Reader.Task(r.Context(), c.project.ID, id)
	if err != nil {
		return err
	}
	s.cfg.Watched(c.project.ID)
	return answer(w, http.StatusOK, taskAnswer{wire.TaskOf(view), cursor.String()})
}

// The bounds of a page of tasks.
const (
	pageNormal = 50
	pageMost   = 200
)

func (s *Server) list(w http.ResponseWriter, r *http.Request, c *call) error {
	params := ports.ListParams{ProjectID: c.project.ID}
	query := r.URL.Query()
	var err error
	if params.Limit, err = limitOf(r, pageNormal, pageMost); err != nil {
		return err
	}
	if text := query.Get("status"); text != "" {
		params.Status = domain.Status(text)
		if !slices.Contains(domain.Statuses(), params.Status) {
			return problemQuery.with(Fault{"status", "unknown", oneOf(domain.Statuses())})
		}
	}
	if text := query.Get("after"); text != "" {
		id, err := wire.ParseID(wire.PrefixTask, text)
		if err != nil {
			return problemCursor
		}
		params.After = domain.TaskID{ID: id}
	}
	page, err := s.cfg.Reader.Tasks(r.Context(), params)
	if err != nil {
		return err
	}
	s.cfg.Watched(c.project.ID)
	out := taskPage{Tasks: make([]wire.Task, len(page.Tasks)), Cursor: page.Cursor.String()}
	for i, view := range page.Tasks {
		out.Tasks[i] = wire.TaskOf(view)
	}
	if !page.Next.IsZero() {
		next := wire.TaskID(page.Next)
		out.Next = &next
	}
	return answer(w, http.StatusOK, out)
}

// commandBody is the body of cancel and retry, both optional.
type commandBody struct {
	Reason string `json:"reason"`
}

// retryBody repeats the reason instead of embedding it: encoding/json would name
// the embedded struct in its errors.
type retryBody struct {
	Reason                  string `json:"reason"`
	AcceptPossibleDuplicate bool   `json:"accept_possible_duplicate"`
}

// command reads what cancel and retry have in common.
func (s *Server) command(w http.ResponseWriter, r *http.Request, c *call, body any, reason *string) (app.TaskCommand, error) {
	id, err := taskID(r)
	if err != nil {
		return app.TaskCommand{}, err
	}
	raw, err := s.readJSON(w, r, body, true)
	if err != nil {
		return app.TaskCommand{}, err
	}
	hash := sha256.Sum256(raw)
	return app.TaskCommand{
		Project: c.project, TaskID: id, Actor: c.actor(), Reason: *reason,
		IdempotencyKey: r.Header.Get("Idempotency-Key"), BodyHash: hash[:],
	}, nil
}

func (s *Server) cancel(w http.ResponseWriter, r *http.Request, c *call) error {
	var body commandBody
	cmd, err := s.command(w, r, c, &body, &body.Reason)
	if err != nil {
		return err
	}
	view, err := s.cfg.Cancel.Request(r.Context(), cmd)
	if err != nil {
		return err
	}
	return s.accepted(w, r, view)
}

func (s *Server) retry(w http.ResponseWriter, r *http.Request, c *call) error {
	var body retryBody
	cmd, err := s.command(w, r, c, &body, &body.Reason)
	if err != nil {
		return err
	}
	view, err := s.cfg.Retry.Request(r.Context(), app.RetryCommand{TaskCommand: cmd, AcceptPossibleDuplicate: body.AcceptPossibleDuplicate})
	if err != nil {
		return err
	}
	return s.accepted(w, r, view)
}

// accepted answers a command with the task as it is now: the head of the stream
// has to be read together with it, and the task may have gone on meanwhile.
func (s *Server) accepted(w http.ResponseWriter, r *http.Request, after ports.TaskView) error {
	view, cursor, err := s.cfg.Reader.Task(r.Context(), after.Task.ProjectID, after.Task.ID)
	if err != nil {
		// The command is committed, so its answer must not be an error. Without a
		// head, the task's own newest event is where a client can go on from.
		view, cursor = after, domain.Cursor{EventID: after.Task.LastEventID}
	}
	return answer(w, http.StatusAccepted, taskAnswer{wire.TaskOf(view), cursor.String()})
}
