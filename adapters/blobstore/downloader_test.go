package blobstore

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aivedio/aivedio/ports"
)

func serve(t *testing.T, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

func get(t *testing.T, url string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func class(t *testing.T, err error) *ports.ProviderError {
	t.Helper()
	var e *ports.ProviderError
	if !errors.As(err, &e) {
		t.Fatalf("error is no *ports.ProviderError: %v", err)
	}
	return e
}

func TestDownload(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer k" {
			t.Errorf("credential: %q", r.Header.Get("Authorization"))
		}
		w.Header().Set("Content-Type", "video/mp4")
		_, _ = io.WriteString(w, "0123456789")
	})
	d := NewDownloader(DownloaderConfig{AllowPrivate: true})
	for _, max := range []int64{10, 11, 1 << 40} {
		r := get(t, s.URL)
		r.Header.Set("Authorization", "Bearer k")
		got, err := d.Download(r, max)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(got.Body)
		if err := errors.Join(err, got.Body.Close()); err != nil || string(b) != "0123456789" || got.ContentType != "video/mp4" || got.Size != 10 {
			t.Errorf("limit %d: %q, %+v, %v", max, b, got, err)
		}
	}
}

func TestDownloadBoundsSize(t *testing.T) {
	t.Parallel()
	d := NewDownloader(DownloaderConfig{AllowPrivate: true})
	announced := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "0123456789") })
	if _, err := d.Download(get(t, announced.URL), 9); class(t, err).Code != "too_large" {
		t.Errorf("announced: %v", err)
	}
	silent := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		for range 100 {
			_, _ = io.WriteString(w, strings.Repeat("x", 100))
			w.(http.Flusher).Flush()
		}
	})
	got, err := d.Download(get(t, silent.URL), 500)
	if err != nil || got.Size != -1 {
		t.Fatalf("size %d, %v", got.Size, err)
	}
	defer got.Body.Close()
	if n, err := io.Copy(io.Discard, got.Body); n > 500 || class(t, err).Code != "too_large" {
		t.Errorf("chunked: %d bytes, %v", n, err)
	}
}

func TestDownloadNoticesACutBody(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/length" {
			w.Header().Set("Content-Length", "1000")
		}
		_, _ = io.WriteString(w, "only a start")
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	})
	d := NewDownloader(DownloaderConfig{AllowPrivate: true})
	for _, path := range []string{"/length", "/chunked"} {
		got, err := d.Download(get(t, s.URL+path), 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(got.Body); class(t, err).Class != ports.ClassTransport {
			t.Errorf("%s: %v", path, err)
		}
		got.Body.Close()
	}
}

func TestDownloadSortsAnswers(t *testing.T) {
	t.Parallel()
	status := make(chan int, 1)
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(<-status)
	})
	d := NewDownloader(DownloaderConfig{AllowPrivate: true})
	for code, want := range map[int]ports.ProviderClass{
		204: ports.ClassTransport, 304: ports.ClassTransport, 400: ports.ClassRejected, 401: ports.ClassAuth, 403: ports.ClassAuth,
		404: ports.ClassNotFound, 408: ports.ClassTransport, 410: ports.ClassNotFound, 429: ports.ClassThrottled, 500: ports.ClassTransport, 503: ports.ClassTransport,
	} {
		status <- code
		_, err := d.Download(get(t, s.URL+"/secret?sig=1"), 10)
		e := class(t, err)
		if e.Class != want || strings.Contains(err.Error(), "secret") {
			t.Errorf("%d: %v", code, err)
		}
		if wait := e.RetryAfter; (code == 429 || code == 503) != (wait == 7*time.Second) {
			t.Errorf("%d: wait %v", code, wait)
		}
	}
}

func TestGuardRefusesInsideAddresses(t *testing.T) {
	t.Parallel()
	asked := false
	s := serve(t, func(http.ResponseWriter, *http.Request) { asked = true })
	port := s.Listener.Addr().(*net.TCPAddr).AddrPort().Port()
	d := NewDownloader(DownloaderConfig{Ports: []uint16{port, 80, 443}, HeadTimeout: 2 * time.Second})
	for _, url := range []string{
		s.URL, strings.Replace(s.URL, "127.0.0.1", "localhost", 1), "http://[::1]/", "http://[::ffff:127.0.0.1]/", "http://0.0.0.0/", "http://10.0.0.1/",
		"http://172.16.0.1/", "http://192.168.1.1/", "http://169.254.169.254/latest/meta-data", "http://100.64.0.1/", "http://[fe80::1]/", "http://[fd00::1]/",
		"http://[64:ff9b::7f00:1]/", "http://[2002:7f00:1::]/", "http://2130706433/", "http://198.18.0.1/", "http://224.0.0.1/",
	} {
		_, err := d.Download(get(t, url), 10)
		if e := class(t, err); e.Code != "forbidden_address" && e.Code != "no_answer" {
			t.Errorf("%s: %v", url, err)
		}
	}
	if asked {
		t.Error("an inside server was asked")
	}
	_, err := d.Download(get(t, "http://127.0.0.1:1/"), 10)
	if class(t, err).Code != "forbidden_address" {
		t.Errorf("port 1: %v", err)
	}
	for _, url := range []string{"ftp://example.com/x", "file:///etc/passwd", "http://user:pw@example.com/", "http:///x", "gopher://x"} {
		if _, err := d.Download(get(t, url), 10); class(t, err).Code != "bad_url" {
			t.Errorf("%s: %v", url, err)
		}
	}
}

func TestGuardLetsNamedNetworksPass(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })
	port := s.Listener.Addr().(*net.TCPAddr).AddrPort().Port()
	d := NewDownloader(DownloaderConfig{Ports: []uint16{port}, AllowNets: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	got, err := d.Download(get(t, s.URL), 10)
	if err != nil {
		t.Fatal(err)
	}
	got.Body.Close()
}

func TestRedirectsAreCheckedAgain(t *testing.T) {
	t.Parallel()
	inside := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("the inside server was asked") })
	insidePort := inside.Listener.Addr().(*net.TCPAddr).AddrPort().Port()
	var target string
	first := serve(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, target, http.StatusFound) })
	port := first.Listener.Addr().(*net.TCPAddr).AddrPort().Port()
	// The first server passes as the only "public" one.
	d := NewDownloader(DownloaderConfig{Ports: []uint16{port, insidePort}, AllowNets: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}})
	for to, code := range map[string]string{
		strings.Replace(inside.URL, "127.0.0.1", "127.0.0.2", 1): "forbidden_address",
		"file:///etc/passwd":      "bad_url",
		"http://u:p@127.0.0.1/":   "bad_url",
		"http://169.254.169.254/": "forbidden_address",
		first.URL:                 "forbidden_address", // for ever
	} {
		target = to
		if _, err := d.Download(get(t, first.URL), 10); class(t, err).Code != code {
			t.Errorf("to %s: %v", to, err)
		}
	}
}

func TestRedirectsCarryNoCredentials(t *testing.T) {
	t.Parallel()
	var away http.Header
	other := serve(t, func(w http.ResponseWriter, r *http.Request) {
		away = r.Header
		_, _ = io.WriteString(w, "file")
	})
	first := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/a" {
			http.Redirect(w, r, "/b?sig=secret", http.StatusFound)
			return
		}
		if r.Header.Get("X-Api-Key") != "k" || r.Header.Get("Authorization") != "Bearer k" {
			t.Errorf("the same host lost its credentials: %v", r.Header)
		}
		if ref := r.Header.Get("Referer"); ref != "" {
			t.Errorf("the URL before went along: %q", ref)
		}
		// The same machine under another port is another host.
		http.Redirect(w, r, other.URL, http.StatusFound)
	})
	r := get(t, first.URL+"/a")
	r.Header.Set("Authorization", "Bearer k")
	r.Header.Set("X-Api-Key", "k")
	r.Header.Set("Cookie", "s=k")
	got, err := NewDownloader(DownloaderConfig{AllowPrivate: true}).Download(r, 10)
	if err != nil {
		t.Fatal(err)
	}
	got.Body.Close()
	for _, name := range []string{"Authorization", "X-Api-Key", "Cookie", "Referer"} {
		if v := away.Get(name); v != "" {
			t.Errorf("%s went along: %q", name, v)
		}
	}
}

func TestRedirectFromHTTPSToHTTP(t *testing.T) {
	t.Parallel()
	d := NewDownloader(DownloaderConfig{})
	if err := d.redirect(get(t, "http://a.example/"), []*http.Request{get(t, "https://a.example/")}); !errors.Is(err, errDowngrade) {
		t.Errorf("downgrade: %v", err)
	}
	if err := d.redirect(get(t, "https://a.example/"), []*http.Request{get(t, "http://a.example/")}); err != nil {
		t.Errorf("upgrade: %v", err)
	}
	none := NewDownloader(DownloaderConfig{MaxRedirects: -1})
	if err := none.redirect(get(t, "https://a.example/"), []*http.Request{get(t, "https://a.example/")}); !errors.Is(err, errRedirects) {
		t.Errorf("no redirects allowed: %v", err)
	}
}

// stream is a body that gives what is put into it, and ends with its context.
type stream struct {
	ctx  context.Context
	data chan string
}

func (s stream) Read(p []byte) (int, error) {
	select {
	case d := <-s.data:
		return copy(p, d), nil
	case <-s.ctx.Done():
		return 0, s.ctx.Err()
	}
}

func (s stream) Close() error { return nil }

func TestBodyEndsWhenTheSenderStalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := stream{ctx, make(chan string, 1)}
		b := newBody(s, cancel, bodyLimits{left: 100, idle: 30 * time.Second})
		buf := make([]byte, 10)
		s.data <- "a"
		if n, err := b.Read(buf); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		began := time.Now()
		<-time.After(time.Hour) // a slow taker
		if ctx.Err() != nil {
			t.Fatal("the taker's pause ended the download")
		}
		_, err := b.Read(buf)
		if class(t, err).Class != ports.ClassTransport || time.Since(began) != time.Hour+30*time.Second {
			t.Errorf("stalled: %v after %v", err, time.Since(began))
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
}
