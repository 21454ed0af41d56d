package capacity

import (
	"math"
	"strconv"
	"strings"
)

// number prints v for a person: whole thousands grouped, at most two digits
// behind the point, and small values with two significant digits.
func number(v float64) string {
	switch size := math.Abs(v); {
	case math.IsNaN(v) || math.IsInf(v, 0) || size >= 1e15:
		return strconv.FormatFloat(v, 'g', 3, 64)
	case size > 0 && size < 0.01:
		return strconv.FormatFloat(v, 'g', 2, 64)
	case size >= 999.995: // what prints as 1000.00
		return grouped(strconv.FormatFloat(v, 'f', 0, 64))
	}
	text := strconv.FormatFloat(v, 'f', 2, 64)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

// grouped puts a comma after every third digit of a whole number, from the right.
func grouped(digits string) string {
	sign := ""
	if strings.HasPrefix(digits, "-") {
		sign, digits = "-", digits[1:]
	}
	var b strings.Builder
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(d)
	}
	return sign + b.String()
}

// span prints a range with its unit.
func span(low, high float64, unit string) string {
	return number(low) + "–" + number(high) + " " + unit
}

// percent prints a share, rounded up to a tenth: a share that must be reached
// may not be printed smaller than it is.
func percent(share float64) string {
	return number(max(0, math.Ceil(share*1000-1e-9))/10) + " %"
}

// atLeast prints v rounded up to a hundredth: a limit that must be kept may not
// be printed smaller than it is.
func atLeast(v float64) string {
	return number(math.Ceil(v*100-1e-6) / 100)
}
