package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// testClient speaks to a handler.
func testClient(t *testing.T, h http.Handler) *apiClient {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return newClient(srv.URL, "prj_x", "ak_x")
}

// TestProblemSentences: what the API says of HTTP is said of flags.
func TestProblemSentences(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ answer, want, not string }{
		{`{"code":"possible_duplicate","title":"The vendor may have accepted the last attempt","detail":"repeat with accept_possible_duplicate set to true"}`, "--accept-possible-duplicate", "set to true"},
		{`{"code":"unauthenticated","title":"A valid API key is needed","detail":"Send a live key as \"Authorization: Bearer ak_…\".","trace_id":"trc_1"}`, "--api-key", "Authorization"},
		{`{"code":"unavailable","title":"T","detail":"Repeat the request after the time in Retry-After."}`, "try again", "Retry-After"},
		{`{"code":"idempotency_mismatch","title":"The Idempotency-Key was used with another request","detail":"D"}`, "--idempotency-key", "Idempotency-Key"},
		{`{"code":"validation_failed","title":"T","detail":"Correct the fields that are listed in errors.","errors":[{"field":"input.duration_seconds","detail":"use whole seconds"}]}`, "--duration: use whole seconds", "listed in errors"},
		{`{"code":"task_terminal","title":"The task has already ended","detail":"A failed task can be retried."}`, "The task has already ended. A failed task can be retried.", ""},
		{`<html>`, "base address of an aivedio server", "html"},
	} {
		c := testClient(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusConflict)
			fmt.Fprint(w, tt.answer)
		}))
		_, err := c.task(t.Context(), "tsk_x")
		if err == nil || !strings.Contains(err.Error(), tt.want) || tt.not != "" && strings.Contains(err.Error(), tt.not) {
			t.Errorf("%s\n gives %v, want %q", tt.answer, err, tt.want)
		}
	}
}

// TestNoAnswer: a fault of the connection is told once.
func TestNoAnswer(t *testing.T) {
	t.Parallel()
	c := newClient("http://127.0.0.1:1", "prj_x", "ak_x")
	if _, err := c.task(t.Context(), "tsk_x"); err == nil || err.Error() != "no connection to http://127.0.0.1:1: connection refused" {
		t.Error(err)
	}
	ended := make(chan struct{})
	slow := testClient(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-ended:
		}
	}))
	defer close(ended)
	slow.timeout = 20 * time.Millisecond
	if _, err := slow.task(context.Background(), "tsk_x"); err == nil || !strings.HasSuffix(err.Error(), "did not answer within 20ms") {
		t.Error(err)
	}
}
