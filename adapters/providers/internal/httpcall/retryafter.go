package httpcall

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// MaxWait bounds every wish of a vendor: a typo there must not put a job to
// sleep for a year.
const MaxWait = time.Hour

// RetryAfter reads how long the vendor wants to be left alone: "Retry-After-Ms"
// before "Retry-After", the latter in seconds or as an HTTP date. 0 when it does
// not say or cannot be understood; never above [MaxWait].
func RetryAfter(header http.Header, now time.Time) time.Duration {
	if d := milliseconds(header.Get("Retry-After-Ms")); d > 0 {
		return d
	}
	value := strings.TrimSpace(header.Get("Retry-After"))
	if value == "" {
		return 0
	}
	if n, ok := number(value); ok {
		return bounded(n * float64(time.Second))
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	return bounded(float64(at.Sub(now)))
}

// PollAfter reads "Openai-Poll-After-Ms", the wish for the next query. 0 when it
// does not say; never above [MaxWait].
func PollAfter(header http.Header) time.Duration {
	return milliseconds(header.Get("Openai-Poll-After-Ms"))
}

func milliseconds(value string) time.Duration {
	n, ok := number(strings.TrimSpace(value))
	if !ok {
		return 0
	}
	return bounded(n * float64(time.Millisecond))
}

// number takes plain decimals only: ParseFloat alone also reads "inf" and "0x1p4".
func number(s string) (float64, bool) {
	if s == "" || len(s) > 32 || strings.Trim(s, "0123456789.") != "" {
		return 0, false
	}
	f, err := strconv.ParseFloat(s, 64)
	return f, err == nil
}

func bounded(nanoseconds float64) time.Duration {
	if math.IsNaN(nanoseconds) || nanoseconds <= 0 {
		return 0
	}
	return time.Duration(min(nanoseconds, float64(MaxWait)))
}
