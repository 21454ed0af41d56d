package memory_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/aivedio/aivedio/adapters/memory"
	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/internal/wire"
	"github.com/aivedio/aivedio/ports"
)

// TestBusDecodesMessages: a handler gets the whole event of a row that has its
// message, and a message that is no event refuses its project alone.
func TestBusDecodesMessages(t *testing.T) {
	t.Parallel()
	b := memory.NewBus(memory.BusConfig{})
	defer func() { _ = b.Close() }()
	var got []ports.StoredEvent
	if _, err := b.Subscribe(t.Context(), "g", func(_ context.Context, events []ports.StoredEvent) error {
		got = append(got, events...)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	whole := busRow(1, 1).Event
	whole.TenantID, whole.TaskID = domain.TenantID{ID: domain.ID{9}}, domain.TaskID{ID: domain.ID{8}}
	whole.Stage, whole.CreatedAt = domain.StageGenerating, time.UnixMilli(1_700_000_000_000).UTC()
	message, err := json.Marshal(wire.MessageOf(whole))
	if err != nil {
		t.Fatal(err)
	}
	good, bad, behind := busRow(1, 1), busRow(1, 2), busRow(2, 2)
	good.Message, bad.Message = message, []byte(`{}`)
	err = b.Publish(t.Context(), []ports.OutboxRow{good, bad, behind})
	var failed *ports.PublishError
	if !errors.As(err, &failed) || len(failed.FailedProjects) != 1 || !errors.Is(failed.FailedProjects[bad.Event.ProjectID.String()], ports.ErrRefused) {
		t.Errorf("publish: %v", err)
	}
	if len(got) != 1 || got[0].TaskID != whole.TaskID || got[0].Stage != whole.Stage || !got[0].CreatedAt.Equal(whole.CreatedAt) {
		t.Errorf("delivered %+v", got)
	}
}
