package rocketbus

import (
	"slices"

	"github.com/apache/rocketmq-client-go/v2/primitive"

	"github.com/aivedio/aivedio/internal/wire"
	"github.com/aivedio/aivedio/ports"
)

// parse reads a batch into (project, event) order, repeats within it left out. A
// message that is no event will never be one: it is logged and acknowledged.
func (s *subscription) parse(messages []*primitive.MessageExt) []ports.StoredEvent {
	events := make([]ports.StoredEvent, 0, len(messages))
	for _, m := range messages {
		e, err := wire.ParseMessage(m.Body)
		if err != nil {
			s.bus.cfg.Logger.Error("a bus message is no event and is dropped", "group", s.group, "message_id", m.MsgId, "error", err)
			continue
		}
		events = append(events, e)
	}
	slices.SortStableFunc(events, compareEvents)
	return slices.CompactFunc(events, func(a, b ports.StoredEvent) bool { return compareEvents(a, b) == 0 })
}
