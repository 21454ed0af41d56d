package stream

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aivedio/aivedio/domain"
)

func TestConflate(t *testing.T) {
	t.Parallel()
	gen, done := step{stage: domain.StageGenerating}, step{stage: domain.StageDone}
	fr := func(id int64, task domain.TaskID, s step, terminal bool) *frame {
		return &frame{cursor: domain.Cursor{EventID: id}, task: task, step: s, terminal: terminal}
	}
	tests := []struct {
		name  string
		queue []*frame
		want  []int64
	}{
		{"empty", nil, []int64{}},
		{"a run keeps its ends", []*frame{fr(1, taskA, gen, false), fr(2, taskA, gen, false), fr(3, taskA, gen, false)}, []int64{1, 3}},
		{"tasks are apart", []*frame{fr(1, taskA, gen, false), fr(2, taskB, gen, false), fr(3, taskA, gen, false), fr(4, taskB, gen, false)}, []int64{1, 2, 3, 4}},
		{"stages stay", []*frame{fr(1, taskA, gen, false), fr(2, taskA, done, false), fr(3, taskA, gen, false)}, []int64{1, 2, 3}},
		{"terminals stay", []*frame{fr(1, taskA, done, true), fr(2, taskA, done, true), fr(3, taskA, done, true)}, []int64{1, 2, 3}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := []int64{}
			for _, f := range conflate(tt.queue) {
				got = append(got, f.id())
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("kept (-want +got):\n%s", diff)
			}
		})
	}
}
