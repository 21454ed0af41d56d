package openaivideo

import (
	"fmt"
	"strconv"
	"strings"
)

// What is taken when only one of resolution and shape is asked for.
const (
	defaultShort = 720
	defaultShape = "16:9"
)

// size turns a resolution such as "720p" and a shape such as "9:16" into the
// API's "720x1280". A resolution that is already a size passes; nothing asked
// for gives nothing, and the vendor chooses.
func size(resolution, ratio string) (string, error) {
	resolution, ratio = strings.ToLower(strings.TrimSpace(resolution)), strings.TrimSpace(ratio)
	if resolution == "" && ratio == "" {
		return "", nil
	}
	if w, h, ok := pair(resolution, "x"); ok {
		return fmt.Sprintf("%dx%d", w, h), nil
	}
	short := defaultShort
	if resolution != "" {
		n, err := strconv.Atoi(strings.TrimSuffix(resolution, "p"))
		if err != nil || n < 1 || n > maxSide {
			return "", fmt.Errorf("resolution %.20q: want a form such as 720p or 1280x720", resolution)
		}
		short = n
	}
	if ratio == "" {
		ratio = defaultShape
	}
	w, h, ok := pair(ratio, ":")
	if !ok || max(w, h) > 10*min(w, h) {
		return "", fmt.Errorf("aspect ratio %.20q: want a form such as 16:9", ratio)
	}
	long := short * max(w, h) / min(w, h)
	long += long % 2 // encoders want even sides
	if w >= h {
		return fmt.Sprintf("%dx%d", long, short), nil
	}
	return fmt.Sprintf("%dx%d", short, long), nil
}

const maxSide = 16384

func pair(s, separator string) (a, b int, ok bool) {
	left, right, found := strings.Cut(s, separator)
	a, errA := strconv.Atoi(left)
	b, errB := strconv.Atoi(right)
	return a, b, found && errA == nil && errB == nil && a > 0 && b > 0 && a <= maxSide && b <= maxSide
}
