package domain_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/aivedio/aivedio/domain"
)

func TestParseCursor(t *testing.T) {
	t.Parallel()
	good := map[string]domain.Cursor{
		"0":                            {},
		"7":                            {EventID: 7},
		"7.k3":                         {EventID: 7, Tag: "k3"},
		"9223372036854775807.zzzzzzzz": {EventID: math.MaxInt64, Tag: "zzzzzzzz"},
		"0.a":                          {Tag: "a"},
	}
	for text, want := range good {
		got, err := domain.ParseCursor(text)
		if err != nil || got != want {
			t.Errorf("ParseCursor(%q) = %v, %v", text, got, err)
		}
		if got.String() != text {
			t.Errorf("%q comes back as %q", text, got)
		}
	}
	bad := []string{
		"", ".", "7.", ".k3", "-1", "+1", " 7", "7 ", "07", "00", "7.K3", "7.k3.x", "7.k-3", "7.123456789",
		"0x7", "1e3", "seven", "9223372036854775808", "99999999999999999999999999", "7.k\x00", "\u0667", "7\n", "null", "7,8",
	}
	for _, text := range bad {
		if got, err := domain.ParseCursor(text); !errors.Is(err, domain.ErrBadCursor) || got != (domain.Cursor{}) {
			t.Errorf("ParseCursor(%q) = %v, %v; want ErrBadCursor", text, got, err)
		}
	}
}

// TestCursorTag: the tag tells events apart that a number alone does not: after a
// restore the same number may be another task, version or moment.
func TestCursorTag(t *testing.T) {
	t.Parallel()
	task := domain.TaskID{ID: id(1)}
	base := domain.CursorOf(41, task, 3, epoch)
	if base.EventID != 41 || len(base.Tag) == 0 || len(base.Tag) > 8 {
		t.Fatalf("cursor %v", base)
	}
	if parsed, err := domain.ParseCursor(base.String()); err != nil || parsed != base {
		t.Fatalf("%v comes back as %v, %v", base, parsed, err)
	}
	same := []domain.Cursor{
		domain.CursorOf(41, task, 3, epoch.Add(999*time.Microsecond)),
		domain.CursorOf(41, task, 3, epoch.In(time.FixedZone("east", 8*3600))),
	}
	for _, c := range same {
		if c != base {
			t.Errorf("%v differs from %v: JSON keeps milliseconds and no zone", c, base)
		}
	}
	other := map[string]domain.Cursor{
		"task":    domain.CursorOf(41, domain.TaskID{ID: id(2)}, 3, epoch),
		"version": domain.CursorOf(41, task, 4, epoch),
		"moment":  domain.CursorOf(41, task, 3, epoch.Add(time.Millisecond)),
	}
	for what, c := range other {
		if c.Tag == base.Tag {
			t.Errorf("another %s has the same tag", what)
		}
	}
}

// TestCursorTagIsStable pins the tag: cursors live in browsers longer than a
// release, so another hash would send every client into a reset.
func TestCursorTagIsStable(t *testing.T) {
	t.Parallel()
	task := domain.TaskID{ID: domain.ID{0x01, 0x99, 15: 0xff}}
	if got := domain.CursorOf(1, task, 1, time.UnixMilli(1_789_999_999_123)).String(); got != "1.4p016dli" {
		t.Errorf("cursor %s", got)
	}
}

func TestIDString(t *testing.T) {
	t.Parallel()
	v := domain.ID{0x01, 0x99, 0xab, 0xcd, 0xef, 0x01, 0x72, 0x34, 0x81, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef}
	if got := v.String(); got != "0199abcd-ef01-7234-8123-456789abcdef" || v.IsZero() || !(domain.ID{}).IsZero() {
		t.Errorf("id %s", got)
	}
}

func FuzzParseCursor(f *testing.F) {
	for _, seed := range []string{"0", "7.k3", "07", "-1", "7.", "9223372036854775808", "7.K", "1.zzzzzzzz", "1.123456789", "\xff", "7.k3.9"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := domain.ParseCursor(text)
		if err != nil {
			if !errors.Is(err, domain.ErrBadCursor) || c != (domain.Cursor{}) {
				t.Fatalf("%q: %v, %v", text, c, err)
			}
			return
		}
		if c.EventID < 0 || c.String() != text {
			t.Fatalf("%q was read as %v", text, c)
		}
	})
}
