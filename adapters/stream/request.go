package stream

import (
	"context"
	"errors"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/aivedio/aivedio/app"
	"github.com/aivedio/aivedio/domain"
)

// StreamRequest is an authorised wish for a project's events. Its fields are
// plain, so that a caller may convert a struct of its own.
type StreamRequest struct {
	Project domain.ProjectID
	// Task limits the stream to one task when set. TaskTerminal and
	// TaskLastEventID are the task as it stood when the request came: whether
	// anything is left to come.
	Task            domain.TaskID
	TaskTerminal    bool
	TaskLastEventID int64
	// Auth is asked again while the stream lives: app.ErrUnauthenticated or
	// ports.ErrNotFound ends it, any other error is taken for a passing fault. nil
	// asks nothing.
	Auth func(ctx context.Context) error
	// Denied: the caller has no right. A stream says so in its own words, since a
	// browser's EventSource cannot read a status; a long-poll gets
	// app.ErrUnauthenticated.
	Denied bool
	// Unavailable: it cannot be told whether the caller has a right, since the store
	// does not answer. A stream says that it is busy; a long-poll gets
	// ports.ErrUnavailable.
	Unavailable bool
}

// filtered reports whether the stream is limited to one task.
func (r StreamRequest) filtered() bool { return !r.Task.IsZero() }

// overAt reports whether a client at the position has seen all of the task.
func (r StreamRequest) overAt(at domain.Cursor) bool {
	return r.filtered() && r.TaskTerminal && at.EventID >= r.TaskLastEventID
}

// cursorKind says what a request knows of its position.
type cursorKind int

const (
	cursorNone  cursorKind = iota // from now on
	cursorGiven                   // after Cursor
	cursorBad                     // not a cursor at all: reset
)

// query is what the URL and the header ask for.
type query struct {
	kind   cursorKind
	cursor domain.Cursor
	wait   time.Duration
	limit  int
}

// The bounds of a long-poll.
const (
	defaultWait  = 25 * time.Second
	defaultLimit = 100
	maxLimit     = 1000
)

// parseQuery reads the position and the bounds of a long-poll. The header wins
// over the URL: a browser that reconnects sends the old URL with the new header.
// Text that is no cursor is not an error here, it becomes a reset.
func parseQuery(header http.Header, values url.Values, maxWait time.Duration) (query, error) {
	q := query{wait: min(defaultWait, maxWait), limit: defaultLimit}
	if text := cursorText(header, values); text != "" {
		q.kind = cursorGiven
		c, err := domain.ParseCursor(text)
		if err != nil {
			q.kind = cursorBad
		}
		q.cursor = c
	}
	if text := values.Get("wait"); text != "" {
		wait, err := parseWait(text)
		if err != nil || wait > maxWait {
			return query{}, queryFault("wait", "use a time from 0s to "+strconv.Itoa(int(maxWait.Seconds()))+`s, such as "25s", or a number of seconds`)
		}
		q.wait = wait
	}
	if text := values.Get("limit"); text != "" {
		limit, err := strconv.Atoi(text)
		if err != nil || limit < 1 || limit > maxLimit {
			return query{}, queryFault("limit", "use a whole number from 1 to "+strconv.Itoa(maxLimit))
		}
		q.limit = limit
	}
	return q, nil
}

func queryFault(field, detail string) error {
	return &app.FieldErrors{Fields: []app.FieldError{{Field: field, Code: "invalid", Detail: detail}}}
}

// cursorText finds the cursor under one of its names.
func cursorText(header http.Header, values url.Values) string {
	if text := header.Get("Last-Event-ID"); text != "" {
		return text
	}
	for _, name := range []string{"after", "last_event_id", "cursor"} {
		if text := values.Get(name); text != "" {
			return text
		}
	}
	return ""
}

// parseWait reads "25s", "1500ms" and a bare number of seconds.
func parseWait(text string) (time.Duration, error) {
	if strings.Trim(text, "0123456789") == "" {
		text += "s"
	}
	wait, err := time.ParseDuration(text)
	if err == nil && wait < 0 {
		err = errors.New("a time cannot be negative")
	}
	return wait, err
}

// wantsJSON reports whether the client asks for a long-poll: it names JSON and
// does not rate a stream higher. A client that takes anything gets the stream.
func wantsJSON(header http.Header) bool {
	json, stream := 0.0, 0.0
	for _, line := range header.Values("Accept") {
		for part := range strings.SplitSeq(line, ",") {
			media, params, err := mime.ParseMediaType(part)
			if err != nil {
				continue
			}
			quality := 1.0
			if q, err := strconv.ParseFloat(params["q"], 64); err == nil {
				quality = q
			}
			switch media {
			case "application/json":
				json = max(json, quality)
			case "text/event-stream":
				stream = max(stream, quality)
			}
		}
	}
	return json > stream
}
