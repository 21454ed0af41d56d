package httpcall

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// TestMalformedHasAShape: what cannot be understood is outlined for operators, and
// nothing that it says is kept.
func TestMalformedHasAShape(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"renamed":"SECRET","count":3}`)
	}))
	t.Cleanup(srv.Close)
	read := Reading{Read: func([]byte) (domain.Observation, error) { return domain.Observation{}, errors.New("no id") }}
	calls, req := New(nil, nil), Request{Method: http.MethodGet, URL: srv.URL}
	_, queried := calls.Query(t.Context(), req, "job", read)
	_, created := calls.Create(t.Context(), req, read)
	read.Read = func([]byte) (domain.Observation, error) { return domain.Observation{}, nil }
	_, anonymous := calls.Create(t.Context(), req, read)
	for name, err := range map[string]error{"query": queried, "create": created, "create without an id": anonymous} {
		var pe *ports.ProviderError
		if !errors.As(err, &pe) || pe.Class != ports.ClassMalformed || pe.Shape != "{count:number,renamed:text}" {
			t.Errorf("%s: %+v", name, pe)
		}
	}
}
