package redisnotify

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/aivedio/aivedio/internal/wire"
	"github.com/aivedio/aivedio/ports"
)

// encode is the payload of one PUBLISH: a JSON array of bus messages. One array
// per shard costs Redis one command for a whole batch.
func encode(events []ports.StoredEvent) ([]byte, error) {
	messages := make([]wire.Message, len(events))
	for i, e := range events {
		messages[i] = wire.MessageOf(e)
	}
	return json.Marshal(messages)
}

// decode reads what encode wrote. Events that cannot be read are left out and
// reported; the others are good.
func decode(payload []byte) ([]ports.StoredEvent, error) {
	var raw []json.RawMessage
	if err := json.Unmarshal(payload, &raw); err != nil {
		return nil, fmt.Errorf("hint: %w", err)
	}
	events := make([]ports.StoredEvent, 0, len(raw))
	var errs []error
	for _, r := range raw {
		e, err := wire.ParseMessage(r)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		events = append(events, e)
	}
	return events, errors.Join(errs...)
}
