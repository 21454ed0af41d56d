package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// readBody reads a body once, at most max bytes of it, before anything parses it.
func (s *Server) readBody(w http.ResponseWriter, r *http.Request, max int64) ([]byte, error) {
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return nil, problemMediaType
	}
	tooLarge := problemTooLarge.saying("Send at most " + strconv.FormatInt(max, 10) + " bytes.")
	if r.ContentLength > max {
		return nil, tooLarge
	}
	s.bodyDeadline(w, r)
	// One allocation of the right size; the length that a client claims counts only
	// up to the limit.
	buf := bytes.NewBuffer(make([]byte, 0, min(r.ContentLength, max)+bytes.MinRead+1))
	_, err := buf.ReadFrom(http.MaxBytesReader(w, r.Body, max))
	body := buf.Bytes()
	var over *http.MaxBytesError
	switch {
	case errors.As(err, &over):
		return nil, tooLarge
	case err != nil:
		return nil, problemTruncated
	case r.ContentLength > int64(len(body)):
		return nil, problemTruncated
	}
	return body, nil
}

// bodyDeadline bounds the time in which a body must have come. It belongs to the
// socket, so it is the real clock. Nothing here lifts it: net/http does when the
// body has ended, and where it has not, the drain before the answer must meet it,
// or a client that sends a part and falls silent holds the connection for ever.
func (s *Server) bodyDeadline(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength != 0 {
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(s.cfg.BodyTimeout)) // not every writer has deadlines
	}
}

// isJSON reports a JSON content type in UTF-8; without one the body is taken for
// JSON.
func isJSON(r *http.Request) bool {
	text := r.Header.Get("Content-Type")
	if text == "" {
		return true
	}
	media, params, err := mime.ParseMediaType(text)
	if charset := params["charset"]; charset != "" && !strings.EqualFold(charset, "utf-8") && !strings.EqualFold(charset, "us-ascii") {
		return false
	}
	return err == nil && (media == "application/json" || (strings.HasPrefix(media, "application/") && strings.HasSuffix(media, "+json")))
}

// readJSON reads a request's JSON object into a struct, strictly. optional
// allows an empty body. It returns the raw bytes, for their hash.
func (s *Server) readJSON(w http.ResponseWriter, r *http.Request, into any, optional bool) ([]byte, error) {
	body, err := s.readBody(w, r, s.cfg.MaxBody)
	if err != nil {
		return nil, err
	}
	if len(body) == 0 && optional {
		return body, nil
	}
	if !isJSON(r) {
		return nil, problemMediaType
	}
	return body, decodeJSON(body, into)
}

// answer writes a JSON value.
func answer(w http.ResponseWriter, status int, value any) error {
	var body bytes.Buffer
	enc := json.NewEncoder(&body)
	enc.SetEscapeHTML(false) // a URL in an answer should read as one
	if err := enc.Encode(value); err != nil {
		return fmt.Errorf("encode answer: %w", err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(body.Bytes()) // the client may have gone
	return nil
}

// oneOf says which words a field takes.
func oneOf[T ~string](words []T) string {
	return "use one of: " + strings.Join(each(words, func(w T) string { return string(w) }), ", ")
}

// limitOf reads the limit parameter.
func limitOf(r *http.Request, normal, most int) (int, error) {
	text := r.URL.Query().Get("limit")
	if text == "" {
		return normal, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		return 0, problemQuery.with(Fault{"limit", "out_of_range", "use a whole number from 1 to " + strconv.Itoa(most)})
	}
	return n, nil
}
