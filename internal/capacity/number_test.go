package capacity

import (
	"math"
	"testing"
)

func TestNumber(t *testing.T) {
	t.Parallel()
	for v, want := range map[float64]string{
		0: "0", 7200: "7,200", 702000: "702,000", 1e6: "1,000,000", 999: "999", 1000: "1,000", 100: "100", 10: "10",
		1.3: "1.3", 2.861: "2.86", 0.4: "0.4", 0.001: "0.001", 1e-9: "1e-09", -1500: "-1,500", -0.5: "-0.5", 999.999: "1,000",
		1e15: "1e+15", math.Inf(1): "+Inf",
	} {
		if got := number(v); got != want {
			t.Errorf("number(%v) is %q, want %q", v, got, want)
		}
	}
	if got := number(math.NaN()); got != "NaN" {
		t.Errorf("number(NaN) is %q", got)
	}
}

func TestPercentRoundsUp(t *testing.T) {
	t.Parallel()
	for v, want := range map[float64]string{0: "0 %", 0.5833333: "58.4 %", 0.5: "50 %", 0.6: "60 %", 1.731: "173.1 %", 0.0001: "0.1 %"} {
		if got := percent(v); got != want {
			t.Errorf("percent(%v) is %q, want %q", v, got, want)
		}
	}
}

func TestAtLeastRoundsUp(t *testing.T) {
	t.Parallel()
	for v, want := range map[float64]string{36: "36", 100. / 3: "33.34", 33.33: "33.33", 0.001: "0.01"} {
		if got := atLeast(v); got != want {
			t.Errorf("atLeast(%v) is %q, want %q", v, got, want)
		}
	}
}
