package wire

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/aivedio/aivedio/domain"
)

func TestIDRoundTrip(t *testing.T) {
	t.Parallel()
	prefixes := []string{PrefixTask, PrefixAttempt, PrefixProject, PrefixTenant, PrefixUser, PrefixAsset, PrefixTrace, PrefixOperation, PrefixAction, PrefixKey}
	rapid.Check(t, func(t *rapid.T) {
		prefix := rapid.SampledFrom(prefixes).Draw(t, "prefix")
		want := domain.ID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "id"))
		text := FormatID(prefix, want)
		if want.IsZero() {
			if text != "" {
				t.Fatalf("no id is %q", text)
			}
			return
		}
		if len(text) != len(prefix)+27 || !strings.HasPrefix(text, prefix+"_") {
			t.Fatalf("form %q", text)
		}
		got, err := ParseID(prefix, text)
		if err != nil || got != want {
			t.Fatalf("%v became %v, %v", want, got, err)
		}
	})
}

func TestParseIDRefuses(t *testing.T) {
	t.Parallel()
	good := FormatID(PrefixTask, id(4))
	bad := []string{
		"", "tsk", "tsk_", good[4:], "att" + good[3:], strings.ToUpper(good), good + "0", good[:29],
		" " + good, "tsk_zzzzzzzzzzzzzzzzzzzzzzzzzz", "tsk_01hwy5x2g0e00800000000000u", id(4).String(),
	}
	for _, s := range bad {
		if got, err := ParseID(PrefixTask, s); err == nil {
			t.Errorf("%q was read as %v", s, got)
		} else if !strings.Contains(err.Error(), "tsk_") {
			t.Errorf("the error does not say what was expected: %v", err)
		}
	}
}

func TestTypedIDs(t *testing.T) {
	t.Parallel()
	got := []string{
		TaskID(domain.TaskID{ID: id(1)}), AttemptID(domain.AttemptID{ID: id(1)}), ProjectID(domain.ProjectID{ID: id(1)}),
		TenantID(domain.TenantID{ID: id(1)}), UserID(domain.UserID{ID: id(1)}), AssetID(domain.AssetID{ID: id(1)}),
		TraceID(domain.TraceID{ID: id(1)}),
	}
	for i, prefix := range []string{"tsk", "att", "prj", "ten", "usr", "ast", "trc"} {
		if want := prefix + "_01hwy5x2g0e008000000000001"; got[i] != want {
			t.Errorf("got %s, want %s", got[i], want)
		}
	}
}

// TestNewIDIsOrdered draws many: each is new, and they sort by creation.
func TestNewIDIsOrdered(t *testing.T) {
	t.Parallel()
	var texts []string
	for range 10_000 {
		texts = append(texts, FormatID(PrefixTask, NewID()))
	}
	if !slices.IsSorted(texts) {
		t.Error("ids do not sort by creation")
	}
	if len(slices.Compact(texts)) != 10_000 {
		t.Error("an id was drawn twice")
	}
}

func FuzzParseID(f *testing.F) {
	f.Add(FormatID(PrefixProject, id(9)))
	f.Add("prj_7zzzzzzzzzzzzzzzzzzzzzzzzz")
	f.Add("prj_8zzzzzzzzzzzzzzzzzzzzzzzzz")
	f.Add("_")
	f.Fuzz(func(t *testing.T, s string) {
		got, err := ParseID(PrefixProject, s)
		if err != nil || got.IsZero() {
			return
		}
		if again := FormatID(PrefixProject, got); again != s {
			t.Fatalf("%q was read and is written as %q", s, again)
		}
	})
}
