package memory

import (
	"bytes"
	"cmp"
	"context"
	"hash/fnv"
	"slices"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// deliveryKey is UNIQUE(provider, dedup_key).
type deliveryKey struct{ provider, dedup string }

// Receive implements ports.Inbox.
func (s *Store) Receive(ctx context.Context, rows []ports.InboxRow) ([]ports.ReceiveResult, error) {
	results := make([]ports.ReceiveResult, len(rows))
	err := s.write(ctx, func(x *tx) error {
		for i, row := range rows {
			results[i] = x.receive(row)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return results, nil
}

func (x *tx) receive(row ports.InboxRow) ports.ReceiveResult {
	if err := checkText(row.Provider, row.AccountID, row.DedupKey, row.ProviderEventID, row.ProviderTaskID, row.ClientRequestID, row.KeyVersion); err != nil {
		return ports.ReceiveResult{Err: err}
	}
	key := deliveryKey{row.Provider, row.DedupKey}
	if id, ok := x.deliveries[key]; ok {
		return x.receiveAgain(x.inbox[id], row)
	}
	row.ID = x.next()
	row.Status, row.NextRetryAt = ports.InboxPending, x.at
	row.ErrorCount, row.ClaimCount, row.LastError = 0, 0, ""
	put(x, x.inbox, row.ID, copyRow(row))
	put(x, x.deliveries, key, row.ID)
	x.enqueue(row.ID)
	return ports.ReceiveResult{}
}

// receiveAgain compares a repetition with what is stored. A known name with
// another content is kept as a conflict, about the attempt if it is known.
func (x *tx) receiveAgain(have, row ports.InboxRow) ports.ReceiveResult {
	if bytes.Equal(have.PayloadHash, row.PayloadHash) {
		return ports.ReceiveResult{Duplicate: true}
	}
	conflict := ports.ConflictRow{Kind: domain.ConflictPayload}
	if named := x.vendorsWord(refOf(row)); len(named) > 0 {
		conflict.AttemptID, conflict.TaskID = named[0], x.attempts[named[0]].TaskID
	}
	x.openConflict(conflict)
	return ports.ReceiveResult{Duplicate: true, Differs: true}
}

// refOf is what a delivery says about its attempt.
func refOf(row ports.InboxRow) ports.Ref {
	return ports.Ref{
		TokenHash: row.TokenHash, Provider: row.Provider, AccountID: row.AccountID,
		ProviderTaskID: row.ProviderTaskID, ClientRequestID: row.ClientRequestID,
	}
}

// enqueue puts a row to work, in the order of arrival.
func (x *tx) enqueue(id int64) {
	at, queued := slices.BinarySearch(x.queue, id)
	switch {
	case queued:
	case at == len(x.queue): // the usual case; a rollback forgets what is behind the length
		assign(x, &x.queue, append(x.queue, id))
	default:
		assign(x, &x.queue, slices.Insert(slices.Clone(x.queue), at, id))
	}
}

// inboxShard spreads rows over workers; rows that name one task share a worker.
func inboxShard(row ports.InboxRow) int {
	h := fnv.New32a()
	h.Write([]byte(row.Provider + "|" + row.AccountID + "|"))
	h.Write([]byte(cmp.Or(row.ProviderTaskID, row.ClientRequestID, string(row.TokenHash), row.DedupKey)))
	return int(h.Sum32() % ports.OutboxShards)
}

// requeue makes a row pending again.
func (x *tx) requeue(row ports.InboxRow) {
	row.Status, row.NextRetryAt = ports.InboxPending, x.at
	put(x, x.inbox, row.ID, row)
	x.enqueue(row.ID)
}

func copyRow(row ports.InboxRow) ports.InboxRow {
	row.TokenHash, row.PayloadHash, row.Payload = slices.Clone(row.TokenHash), slices.Clone(row.PayloadHash), slices.Clone(row.Payload)
	return row
}
