package main

import (
	"fmt"
	"slices"
)

// figure prints with a precision that a person can read.
type figure float64

// MarshalJSON rounds to three digits behind the point, and to whole numbers from
// a hundred on.
func (f figure) MarshalJSON() ([]byte, error) { return []byte(f.String()), nil }

// String is the rounded number.
func (f figure) String() string {
	if f >= 100 {
		return fmt.Sprintf("%.0f", float64(f))
	}
	return fmt.Sprintf("%.3f", float64(f))
}

// quantiles of a sample.
type quantiles struct {
	P50 figure `json:"p50"`
	P99 figure `json:"p99"`
}

// String is for a person.
func (q quantiles) String() string { return fmt.Sprintf("p50 %v, p99 %v", q.P50, q.P99) }

// quantilesOf sorts the values.
func quantilesOf(values []figure) quantiles {
	slices.Sort(values)
	return quantiles{P50: percentile(values, 50), P99: percentile(values, 99)}
}

// median of the values; 0 for none.
func median[T ~float64](values []T) T {
	if len(values) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(values))
	if n := len(s); n%2 == 0 {
		return (s[n/2-1] + s[n/2]) / 2
	}
	return s[len(s)/2]
}

// percentile of sorted values, the nearest rank; 0 for none.
func percentile[T ~float64](sorted []T, p float64) T {
	if len(sorted) == 0 {
		return 0
	}
	at := int(p/100*float64(len(sorted))+0.9999999) - 1
	return sorted[min(max(at, 0), len(sorted)-1)]
}

// each is one figure of every round.
func each[R any](rounds []R, of func(R) figure) []figure {
	all := make([]figure, 0, len(rounds))
	for _, r := range rounds {
		all = append(all, of(r))
	}
	return all
}
