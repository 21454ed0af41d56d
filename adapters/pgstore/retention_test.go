package pgstore_test

import (
	"testing"

	"github.com/aivedio/aivedio/adapters/pgstore"
	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// TestHeadPastRetention: the cursor of a quiet project's snapshot stays good when
// the event behind it is gone; it is what a reset hands out, too.
func TestHeadPastRetention(t *testing.T) {
	t.Parallel()
	db := database(t)
	s := openShop(t, pgstore.Config{URL: db.URL})
	p := s.submitted(t)
	_, head, err := s.Task(t.Context(), s.project, p.Task.ID)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := connect(t, db.URL).Exec(t.Context(), "DELETE FROM task_events"); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		cursor domain.Cursor
		want   ports.ResetReason
	}{
		"head":                {head, ""},
		"head of another tag": {domain.Cursor{EventID: head.EventID, Tag: "zzz"}, ports.ResetExpired},
		"the beginning":       {domain.Cursor{}, ports.ResetExpired},
		"before the head":     {domain.Cursor{EventID: head.EventID - 1}, ports.ResetExpired},
	} {
		page, err := s.After(t.Context(), s.project, tc.cursor, 10)
		if err != nil || page.Reset != tc.want || page.Head != head || len(page.Events) > 0 {
			t.Errorf("%s: %+v, %v; want reset %q at head %v", name, page, err, tc.want, head)
		}
	}
}
