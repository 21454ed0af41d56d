package backlog

import (
	"testing"
	"time"

	"github.com/aivedio/aivedio/domain"
)

func TestAudit(t *testing.T) {
	t.Parallel()
	one, two := domain.ProjectID{ID: domain.ID{1}}, domain.ProjectID{ID: domain.ID{2}}
	type seen struct {
		project domain.ProjectID
		event   int64
	}
	for _, tt := range []struct {
		name string
		seen []seen
		want Finding
	}{
		{"in order", []seen{{one, 1}, {two, 1}, {one, 2}, {one, 3}}, Finding{Messages: 4}},
		{"repeats", []seen{{one, 1}, {one, 2}, {one, 1}, {one, 2}, {one, 3}, {two, 1}, {two, 1}}, Finding{Messages: 7, Repeats: 3}},
		{"a loss at the end", []seen{{one, 1}, {one, 2}, {two, 1}}, Finding{Messages: 3, Lost: 1}},
		{"a gap", []seen{{one, 1}, {one, 3}, {two, 1}}, Finding{Messages: 3, Lost: 2, Early: 1}},
		{"the wrong order", []seen{{one, 2}, {one, 1}, {one, 2}, {one, 3}, {two, 1}}, Finding{Messages: 5, Early: 1}},
		{"strangers", []seen{{one, 4}, {one, 0}, {domain.ProjectID{}, 1}}, Finding{Messages: 3, Lost: 4, Strange: 3}},
	} {
		a := NewAudit(map[domain.ProjectID]int64{one: 3, two: 1})
		for i, s := range tt.seen {
			a.See(s.project, s.event, time.UnixMilli(int64(1000+i)))
		}
		got := a.Finding()
		if took := time.Duration(len(tt.seen)-1) * time.Millisecond; got.Took != took {
			t.Errorf("%s: took %v, want %v", tt.name, got.Took, took)
		}
		if (got.Example != "") != (got.Early > 0) || a.Complete() != (got.Lost == 0) {
			t.Errorf("%s: %+v, complete %v", tt.name, got, a.Complete())
		}
		got.Took, got.Example = 0, ""
		if got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
	}
}

func TestShape(t *testing.T) {
	t.Parallel()
	s := Shape{Projects: 3, Rows: 11}
	if s.Of(0) != 4 || s.Of(1) != 4 || s.Of(2) != 3 {
		t.Errorf("%d, %d and %d", s.Of(0), s.Of(1), s.Of(2))
	}
}
