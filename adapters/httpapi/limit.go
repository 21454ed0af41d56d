package httpapi

import (
	"math"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/time/rate"
)

// limitSize bounds how many sources are remembered; the longest quiet one is
// forgotten first.
const limitSize = 16_384

// limits are those of deliveries; a part that is nil limits nothing. The one of the
// source comes first, so that a single stranger is stopped before it uses up what a
// vendor may send.
type limits struct{ source, provider *limiter }

// take returns nil, or the problem of a sender that has to wait.
func (l limits) take(provider string, source netip.Prefix, now time.Time) error {
	if l.source != nil {
		if err := l.source.take(limitKey{provider, source}, now); err != nil {
			return err
		}
	}
	if l.provider != nil {
		return l.provider.take(limitKey{provider: provider}, now)
	}
	return nil
}

// limiter is a token bucket per key. It keeps strangers from spending our signatures
// and our inbox on guesses; it is no proof of anything. Safe for concurrent use.
type limiter struct {
	perSecond rate.Limit
	burst     int
	buckets   *lru.Cache[limitKey, *rate.Limiter]
}

// limitKey is a vendor and, where each has its own bucket, the source.
type limitKey struct {
	provider string
	source   netip.Prefix
}

// newLimiter returns nil for a rate of 0: there is no limit.
func newLimiter(perSecond float64, burst int) *limiter {
	if perSecond <= 0 {
		return nil
	}
	buckets, err := lru.New[limitKey, *rate.Limiter](limitSize)
	if err != nil {
		panic("httpapi: a constant size must do: " + err.Error())
	}
	return &limiter{perSecond: rate.Limit(perSecond), burst: max(burst, 1), buckets: buckets}
}

func (l *limiter) take(key limitKey, now time.Time) error {
	bucket, ok := l.buckets.Get(key)
	if !ok {
		bucket = rate.NewLimiter(l.perSecond, l.burst)
		if old, found, _ := l.buckets.PeekOrAdd(key, bucket); found {
			bucket = old
		}
	}
	r := bucket.ReserveN(now, 1)
	wait := r.DelayFrom(now)
	if wait == 0 {
		return nil
	}
	r.CancelAt(now) // a refused request costs no token
	return problemLimited.sending("Retry-After", strconv.Itoa(int(math.Ceil(wait.Seconds()))))
}

// trusted reports whether an address belongs to a proxy of ours.
func (s *Server) trusted(addr netip.Addr) bool {
	for _, prefix := range s.cfg.TrustedProxies {
		if prefix.Contains(addr) {
			return true
		}
	}
	return false
}

// source is the network a request came from: an IPv4 address or an IPv6 /64,
// since a host may use all of one. Behind a trusted proxy it is the last address
// of X-Forwarded-For that is no proxy; what stands before it is the client's own
// claim.
func (s *Server) source(r *http.Request) netip.Prefix {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Prefix{}
	}
	addr := from.Addr().Unmap()
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for i := len(hops) - 1; i >= 0 && s.trusted(addr); i-- {
		hop, err := netip.ParseAddr(strings.TrimSpace(hops[i]))
		if err != nil {
			break
		}
		addr = hop.Unmap().WithZone("")
	}
	bits := addr.BitLen()
	if addr.Is6() {
		bits = 64
	}
	prefix, err := addr.Prefix(bits)
	if err != nil {
		return netip.Prefix{}
	}
	return prefix
}
