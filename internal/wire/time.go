package wire

import "time"

// Time is the form of every public time: RFC 3339, UTC, milliseconds.
const Time = "2006-01-02T15:04:05.000Z"

// FormatTime writes a time in the public form.
func FormatTime(t time.Time) string { return t.UTC().Format(Time) }

// formatTimePtr is nil for no time: the key stays, its value is null.
func formatTimePtr(t *time.Time) *string {
	if t == nil {
		return nil
	}
	s := FormatTime(*t)
	return &s
}

// stringPtr is nil for the empty string.
func stringPtr(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
