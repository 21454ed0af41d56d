package domain_test

import (
	"testing"
	"time"

	"github.com/aivedio/aivedio/domain"
)

func TestTypical(t *testing.T) {
	t.Parallel()
	known := domain.Typical{P50: 100 * time.Second, P95: 200 * time.Second}
	for _, tc := range []struct {
		typical     domain.Typical
		age         time.Duration
		early, near bool
	}{
		{domain.Typical{}, 0, false, false},
		{domain.Typical{}, time.Hour, false, false},
		{known, 0, true, false},
		{known, 49 * time.Second, true, false},
		{known, 50 * time.Second, false, false},
		{known, 139 * time.Second, false, false},
		{known, 140 * time.Second, false, true},
		{known, 399 * time.Second, false, true},
		{known, 400 * time.Second, false, false},
	} {
		if tc.typical.Early(tc.age) != tc.early || tc.typical.NearDone(tc.age) != tc.near {
			t.Errorf("%+v at %v: early %v, near %v", tc.typical, tc.age, tc.typical.Early(tc.age), tc.typical.NearDone(tc.age))
		}
	}
}
