package app_test

import (
	"context"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/aivedio/aivedio/app"
	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// TestRelaysNeverReorder has relays overlap in every way that frozen processes can:
// each keeps on sending what it read long ago. First occurrences stay in order.
func TestRelaysNeverReorder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		b := setup(t)
		bus := &fakeBus{}
		projects := []domain.ProjectID{b.project.ID, secondProject(b)}
		var frozen []*frozenBus
		var relays []*app.Relay
		for range 3 {
			f := &frozenBus{fakeBus: bus}
			frozen = append(frozen, f)
			relays = append(relays, newRelay(b, f, b.store, app.RelayConfig{Batch: 2}))
		}
		for range rapid.IntRange(5, 40).Draw(rt, "steps") {
			n := rapid.IntRange(0, 2).Draw(rt, "relay")
			switch rapid.IntRange(0, 3).Draw(rt, "what") {
			case 0:
				b.create()
			case 1:
				frozen[n].freeze = rapid.Bool().Draw(rt, "freeze")
				_, _ = relays[n].Step(b.ctx()) // a frozen one fails, as it should
			case 2:
				frozen[n].thaw()
			case 3:
				b.clock.Advance(time.Duration(rapid.IntRange(1, 20).Draw(rt, "seconds")) * time.Second)
			}
		}
		for _, f := range frozen {
			f.freeze = false
			f.thaw()
		}
		for range 60 { // the last one alone
			b.clock.Advance(15 * time.Second)
			b.step(relays[2])
		}
		for _, p := range projects {
			next := int64(1)
			for _, id := range bus.of(p) {
				if id > next {
					rt.Fatalf("event %d came before %d: %v", id, next, bus.of(p))
				}
				next = max(next, id+1)
			}
			if backlog, err := b.store.Backlog(b.ctx()); err != nil || backlog.Rows != 0 {
				rt.Fatalf("%d rows wait, %v", backlog.Rows, err)
			}
		}
	})
}

// frozenBus keeps what a frozen relay was about to send, and sends it when it thaws:
// the relay itself learns of a time-out.
type frozenBus struct {
	*fakeBus
	freeze bool
	kept   [][]ports.OutboxRow
}

func (f *frozenBus) Publish(ctx context.Context, rows []ports.OutboxRow) error {
	if f.freeze {
		f.kept = append(f.kept, rows)
		return errAway
	}
	return f.fakeBus.Publish(ctx, rows)
}

func (f *frozenBus) thaw() {
	for _, rows := range f.kept {
		_ = f.fakeBus.Publish(context.Background(), rows) // never fails here
	}
	f.kept = nil
}
