package domain

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// ErrBadCursor reports text that is no cursor.
var ErrBadCursor = errors.New("not a cursor")

// Cursor is a position in a project's stream: the number of an event and a tag
// that proves which event it was. A restored database, a lost tail or an expired
// event shows as another tag or as no row, and gives a reset instead of silence.
type Cursor struct {
	// EventID is the number of the event; 0 is before the first.
	EventID int64
	// Tag is empty when the reader knows the number alone; then only the number
	// can be checked.
	Tag string
}

// CursorOf is the cursor of a stored event. createdAt counts in milliseconds:
// finer parts are dropped, so that the public event alone gives the same cursor.
func CursorOf(eventID int64, task TaskID, version int64, createdAt time.Time) Cursor {
	const offset, prime = 14695981039346656037, 1099511628211 // FNV-1a, 64 bits
	h := uint64(offset)
	mix := func(b byte) { h = (h ^ uint64(b)) * prime }
	for _, b := range task.ID {
		mix(b)
	}
	for _, v := range []int64{version, createdAt.UnixMilli()} {
		for shift := 0; shift < 64; shift += 8 {
			mix(byte(uint64(v) >> shift))
		}
	}
	return Cursor{EventID: eventID, Tag: strconv.FormatUint(h>>24, 36)}
}

// String is the form of SSE ids and of every cursor field: "<event_id>.<tag>",
// or the number alone for a cursor without a tag.
func (c Cursor) String() string {
	if c.Tag == "" {
		return strconv.FormatInt(c.EventID, 10)
	}
	return strconv.FormatInt(c.EventID, 10) + "." + c.Tag
}

// maxTag is the length of the longest tag: 40 bits in base 36.
const maxTag = 8

// ParseCursor reads what [Cursor.String] wrote, and a bare number. Anything else
// is [ErrBadCursor]: a sign, a space, a leading zero, upper case, a missing tag.
func ParseCursor(s string) (Cursor, error) {
	number, tag, dotted := strings.Cut(s, ".")
	if dotted && (tag == "" || len(tag) > maxTag || strings.Trim(tag, "0123456789abcdefghijklmnopqrstuvwxyz") != "") {
		return Cursor{}, fmt.Errorf("%w: bad tag in %.40q", ErrBadCursor, s)
	}
	if number == "" || strings.Trim(number, "0123456789") != "" || (len(number) > 1 && number[0] == '0') {
		return Cursor{}, fmt.Errorf("%w: %.40q", ErrBadCursor, s)
	}
	id, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return Cursor{}, fmt.Errorf("%w: number out of range in %.40q", ErrBadCursor, s)
	}
	return Cursor{EventID: id, Tag: tag}, nil
}
