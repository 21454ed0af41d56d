package stream

import (
	"encoding/json"
	"time"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/internal/wire"
	"github.com/aivedio/aivedio/ports"
)

// frame is one event, encoded once and shared by all clients; it is never
// changed.
type frame struct {
	cursor    domain.Cursor
	task      domain.TaskID
	step      step
	terminal  bool
	createdAt time.Time
	// sse is the whole SSE block, data the JSON within it.
	sse  []byte
	data []byte
}

// step is what a client can tell apart beside the progress: two events of a task
// with equal steps differ in progress alone.
type step struct {
	attempt domain.AttemptID
	status  domain.Status
	phase   domain.Phase
	cancel  domain.Cancel
	stage   domain.Stage
}

func (f *frame) id() int64 { return f.cursor.EventID }

// newFrame encodes a stored event.
func newFrame(e ports.StoredEvent) *frame {
	data, err := json.Marshal(wire.EventOf(e))
	if err != nil {
		panic("stream: an event of plain values must encode: " + err.Error())
	}
	f := &frame{
		cursor: e.Cursor(), task: e.TaskID, terminal: e.Status.Terminal(), createdAt: e.CreatedAt,
		step: step{e.AttemptID, e.Status, e.Phase, e.Cancel, e.Stage},
	}
	head := "id: " + f.cursor.String() + "\nevent: " + wire.StreamEvent + "\ndata: "
	f.sse = make([]byte, 0, len(head)+len(data)+2)
	f.sse = append(append(append(f.sse, head...), data...), "\n\n"...)
	f.data = f.sse[len(head) : len(head)+len(data)]
	return f
}

func newFrames(events []ports.StoredEvent) []*frame {
	frames := make([]*frame, len(events))
	for i, e := range events {
		frames[i] = newFrame(e)
	}
	return frames
}

// conflate drops progress that a newer one has overtaken: of each run of equal
// steps of a task the first, which may be the change of stage itself, and the
// last stay. Terminals stay. The order is kept.
func conflate(queue []*frame) []*frame {
	keep := make([]bool, len(queue))
	newer := make(map[domain.TaskID]step, len(queue))
	for i := len(queue) - 1; i >= 0; i-- {
		f := queue[i]
		next, seen := newer[f.task]
		keep[i] = f.terminal || !seen || next != f.step
		newer[f.task] = f.step
	}
	older := newer
	clear(older)
	kept := make([]*frame, 0, len(queue))
	for i, f := range queue {
		last, seen := older[f.task]
		if keep[i] || !seen || last != f.step {
			kept = append(kept, f)
		}
		older[f.task] = f.step
	}
	return kept
}
