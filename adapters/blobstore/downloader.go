package blobstore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"time"

	"code.dny.dev/ssrf"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// DownloaderConfig says what may be fetched. Zero values have defaults.
type DownloaderConfig struct {
	// AllowPrivate also lets addresses of the own machine and network pass, at any
	// port, and plain http after https: for development only.
	AllowPrivate bool
	// AllowNets are networks that pass although they are not public, for a vendor
	// of one's own inside the house.
	AllowNets []netip.Prefix
	// Ports are the ports of servers; 80 and 443 when empty.
	Ports []uint16
	// MaxRedirects is how many redirects are followed; 5 when zero, none when
	// negative.
	MaxRedirects int
	// HeadTimeout bounds the time to the head of the answer; 30 s when zero.
	HeadTimeout time.Duration
	// IdleTimeout is the longest pause within a body; 30 s when zero.
	IdleTimeout time.Duration
	// Timeout bounds a whole download; 30 min when zero.
	Timeout time.Duration
}

// WithDefaults returns a copy with every zero field set.
func (c DownloaderConfig) WithDefaults() DownloaderConfig {
	if len(c.Ports) == 0 {
		c.Ports = []uint16{80, 443}
	}
	if c.MaxRedirects == 0 {
		c.MaxRedirects = 5
	}
	for _, d := range []struct {
		have *time.Duration
		def  time.Duration
	}{{&c.HeadTimeout, 30 * time.Second}, {&c.IdleTimeout, 30 * time.Second}, {&c.Timeout, 30 * time.Minute}} {
		if *d.have == 0 {
			*d.have = d.def
		}
	}
	return c
}

// Downloader fetches vendors' outputs. The address is checked when the connection
// is dialed, after the name was resolved, so that a name cannot show one address
// to the check and another to the dial.
type Downloader struct {
	cfg    DownloaderConfig
	client *http.Client
}

var _ ports.Downloader = (*Downloader)(nil)

// NewDownloader returns a downloader. It takes no proxy from the environment: the
// guard would then see the proxy's address alone.
func NewDownloader(cfg DownloaderConfig) *Downloader {
	cfg = cfg.WithDefaults()
	dialer := &net.Dialer{Timeout: cfg.HeadTimeout}
	if !cfg.AllowPrivate {
		dialer.Control = guard(cfg).Safe
	}
	d := &Downloader{cfg: cfg}
	d.client = &http.Client{
		CheckRedirect: d.redirect,
		Transport: &http.Transport{
			DialContext: dialer.DialContext, ForceAttemptHTTP2: true,
			TLSHandshakeTimeout: cfg.HeadTimeout, ResponseHeaderTimeout: cfg.HeadTimeout,
			MaxResponseHeaderBytes: 64 << 10, MaxIdleConnsPerHost: 2, IdleConnTimeout: 30 * time.Second,
			// The bytes of the vendor, not of a decoder that could blow them up.
			DisableCompression: true,
		},
	}
	return d
}

func guard(cfg DownloaderConfig) *ssrf.Guardian {
	var v4, v6 []netip.Prefix
	for _, p := range cfg.AllowNets {
		if p.Addr().Is4() {
			v4 = append(v4, p)
		} else {
			v6 = append(v6, p)
		}
	}
	return ssrf.New(ssrf.WithPorts(cfg.Ports...), ssrf.WithAllowedV4Prefixes(v4...), ssrf.WithAllowedV6Prefixes(v6...))
}

// Download starts the GET. Reading more than maxBytes is an error of the body;
// a body that announces more is refused at once.
func (d *Downloader) Download(req *http.Request, maxBytes int64) (ports.Download, error) {
	if err := checkURL(req.URL); err != nil {
		return ports.Download{}, err
	}
	ctx, cancel := context.WithTimeout(req.Context(), d.cfg.Timeout)
	resp, err := d.client.Do(req.Clone(ctx))
	if err != nil {
		cancel()
		return ports.Download{}, failure(err)
	}
	if err := refuse(resp, maxBytes); err != nil {
		resp.Body.Close()
		cancel()
		return ports.Download{}, err
	}
	return ports.Download{
		Body:        newBody(resp.Body, cancel, bodyLimits{left: maxBytes, idle: d.cfg.IdleTimeout}),
		ContentType: resp.Header.Get("Content-Type"),
		Size:        resp.ContentLength,
	}, nil
}

// redirect decides about one step. Credentials belong to the first host alone:
// net/http keeps headers of its own choosing, so after the first foreign host all
// of them are dropped, and stay dropped.
func (d *Downloader) redirect(req *http.Request, via []*http.Request) error {
	if len(via) > max(d.cfg.MaxRedirects, 0) {
		return errRedirects
	}
	if err := checkURL(req.URL); err != nil {
		return err
	}
	last := via[len(via)-1]
	if last.URL.Scheme == "https" && req.URL.Scheme != "https" && !d.cfg.AllowPrivate {
		return errDowngrade
	}
	req.Header.Del("Referer") // the URL before may be a signed one
	for _, r := range append(via[1:len(via):len(via)], req) {
		if r.URL.Scheme != via[0].URL.Scheme || r.URL.Host != via[0].URL.Host {
			req.Header = http.Header{}
			break
		}
	}
	return nil
}

var (
	errRedirects = errors.New("too many redirects")
	errDowngrade = errors.New("redirect from https to http")
)

func checkURL(u *url.URL) error {
	if u == nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil {
		return &ports.ProviderError{
			Class: ports.ClassRejected, ErrorClass: string(domain.ClassMedia), Code: "bad_url",
			Err: errors.New("an output must have an http or https URL without a user"),
		}
	}
	return nil
}

// refuse sorts answers that are no file.
func refuse(resp *http.Response, maxBytes int64) error {
	e := &ports.ProviderError{Code: "http_" + strconv.Itoa(resp.StatusCode), Class: ports.ClassTransport}
	switch status := resp.StatusCode; {
	case status == http.StatusOK && resp.ContentLength > maxBytes:
		return tooLarge(maxBytes)
	case status == http.StatusOK:
		return nil
	case status == http.StatusNotFound, status == http.StatusGone:
		e.Class = ports.ClassNotFound
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		e.Class = ports.ClassAuth
	case status == http.StatusTooManyRequests:
		e.Class = ports.ClassThrottled
		e.RetryAfter = seconds(resp.Header.Get("Retry-After"))
	case status == http.StatusServiceUnavailable:
		e.RetryAfter = seconds(resp.Header.Get("Retry-After"))
	case status >= 400 && status < 500 && status != http.StatusRequestTimeout && status != http.StatusTooEarly:
		e.Class, e.ErrorClass = ports.ClassRejected, string(domain.ClassMedia)
	}
	return e
}

func seconds(text string) time.Duration {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0
	}
	return min(time.Duration(min(n, 3600))*time.Second, time.Hour)
}

func tooLarge(maxBytes int64) error {
	return &ports.ProviderError{
		Class: ports.ClassRejected, ErrorClass: string(domain.ClassMedia), Code: "too_large",
		Err: fmt.Errorf("output of more than %d bytes", maxBytes),
	}
}

// failure sorts an error of the client. The text of a refused address stays, the
// URL does not.
func failure(err error) error {
	var own *ports.ProviderError
	if errors.As(err, &own) {
		return own
	}
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	for _, prohibited := range []error{
		ssrf.ErrProhibitedIP, ssrf.ErrProhibitedPort, ssrf.ErrProhibitedNetwork, errRedirects, errDowngrade,
	} {
		if errors.Is(err, prohibited) {
			return &ports.ProviderError{Class: ports.ClassRejected, ErrorClass: string(domain.ClassMedia), Code: "forbidden_address", Err: err}
		}
	}
	return &ports.ProviderError{Class: ports.ClassTransport, Code: "no_answer", Err: err}
}
