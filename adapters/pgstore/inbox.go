package pgstore

import (
	"bytes"
	"cmp"
	"context"
	"hash/fnv"
	"slices"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/aivedio/aivedio/adapters/pgstore/internal/dbgen"
	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// inboxShards is how many shards the queue of deliveries has: an upper bound of
// useful workers.
const inboxShards = 64

// deliveryKey is UNIQUE(provider, dedup_key).
type deliveryKey struct{ provider, dedup string }

// Receive implements ports.Inbox. It uses a pool of its own. Rows are written in
// the order of their keys, since concurrent groups would deadlock otherwise; a
// row that the database refuses is found by halving.
func (s *Store) Receive(ctx context.Context, rows []ports.InboxRow) ([]ports.ReceiveResult, error) {
	results := make([]ports.ReceiveResult, len(rows))
	order := make([]int, len(rows))
	for i := range rows {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(rows[a].Provider, rows[b].Provider), cmp.Compare(rows[a].DedupKey, rows[b].DedupKey))
	})
	if err := s.receive(ctx, rows, order, results); err != nil {
		return nil, outward("receive", err)
	}
	return results, nil
}

// receive stores the rows at the places of order.
func (s *Store) receive(ctx context.Context, rows []ports.InboxRow, order []int, results []ports.ReceiveResult) error {
	if len(order) == 0 {
		return nil
	}
	err := s.retry(ctx, func() error { return s.receiveOnce(ctx, rows, order, results) })
	if faultOf(err) != faultData {
		return err
	}
	if len(order) == 1 {
		results[order[0]] = ports.ReceiveResult{Err: outward("receive", err)}
		return nil
	}
	half := len(order) / 2
	if err := s.receive(ctx, rows, order[:half], results); err != nil {
		return err
	}
	return s.receive(ctx, rows, order[half:], results)
}

// receiveOnce inserts a group with one statement, which is its own transaction.
// What did not come back was there before; its payload is compared afterwards:
// when we die in between, the vendor has no answer and repeats the delivery.
func (s *Store) receiveOnce(ctx context.Context, rows []ports.InboxRow, order []int, results []ports.ReceiveResult) error {
	q := dbgen.New(s.callbacks)
	if err := s.hit(ctx, PointWritten); err != nil {
		return err
	}
	stored, err := q.InboxInsertMany(ctx, s.inboxInsert(rows, order))
	if err != nil {
		return err
	}
	fresh := make(map[deliveryKey]bool, len(stored))
	for _, r := range stored {
		fresh[deliveryKey{r.Provider, r.DedupKey}] = true
	}
	var again []int
	for _, i := range order {
		key := deliveryKey{rows[i].Provider, rows[i].DedupKey}
		results[i] = ports.ReceiveResult{Duplicate: !fresh[key]}
		if !fresh[key] {
			again = append(again, i)
		}
		delete(fresh, key) // a second row of the group with the same key is a duplicate
	}
	return s.compare(ctx, q, rows, again, results)
}

func (s *Store) inboxInsert(rows []ports.InboxRow, order []int) *dbgen.InboxInsertManyParams {
	p := &dbgen.InboxInsertManyParams{}
	reserve(p, len(order))
	now := s.now()
	for _, i := range order {
		r := rows[i]
		p.Providers, p.AccountIds, p.DedupKeys = append(p.Providers, r.Provider), append(p.AccountIds, r.AccountID), append(p.DedupKeys, r.DedupKey)
		p.Trusts, p.ProviderEventIds = append(p.Trusts, string(r.Trust)), append(p.ProviderEventIds, r.ProviderEventID)
		p.ProviderTaskIds, p.ClientRequestIds = append(p.ProviderTaskIds, r.ProviderTaskID), append(p.ClientRequestIds, r.ClientRequestID)
		p.TokenHashes = append(p.TokenHashes, notNil(r.TokenHash))
		p.ProviderOccurredAts = append(p.ProviderOccurredAts, atPtr(r.ProviderOccurredAt))
		p.ReceivedAts = append(p.ReceivedAts, at(firstTime(r.ReceivedAt, now)))
		p.SignatureKeyVersions, p.PayloadHashes = append(p.SignatureKeyVersions, r.KeyVersion), append(p.PayloadHashes, notNil(r.PayloadHash))
		p.Payloads = append(p.Payloads, s.cfg.Keyring.seal(identityOf(r.Provider, r.DedupKey), r.Payload))
		p.PayloadKeyVersions = append(p.PayloadKeyVersions, s.cfg.Keyring.Current)
		p.TraceIds, p.Shards = append(p.TraceIds, uid(r.TraceID.ID)), append(p.Shards, inboxShard(r))
	}
	return p
}

// notNil keeps an empty value from becoming NULL in an array.
func notNil(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// compare finds repetitions that came with another payload and keeps each as a
// conflict.
func (s *Store) compare(ctx context.Context, q *dbgen.Queries, rows []ports.InboxRow, again []int, results []ports.ReceiveResult) error {
	if len(again) == 0 {
		return nil
	}
	var providers, keys []string
	for _, i := range again {
		providers, keys = append(providers, rows[i].Provider), append(keys, rows[i].DedupKey)
	}
	have, err := q.InboxHashes(ctx, providers, keys)
	if err != nil {
		return err
	}
	hashes := make(map[deliveryKey][]byte, len(have))
	for _, h := range have {
		hashes[deliveryKey{h.Provider, h.DedupKey}] = h.PayloadHash
	}
	var differ []ports.InboxRow
	for _, i := range again {
		hash, known := hashes[deliveryKey{rows[i].Provider, rows[i].DedupKey}]
		if results[i].Differs = known && !bytes.Equal(hash, rows[i].PayloadHash); results[i].Differs {
			differ = append(differ, rows[i])
		}
	}
	return s.keepDifferences(ctx, q, differ)
}

// keepDifferences opens a conflict for each row, about its attempt if it is known.
func (s *Store) keepDifferences(ctx context.Context, q *dbgen.Queries, rows []ports.InboxRow) error {
	if len(rows) == 0 {
		return nil
	}
	items := make([]ports.Item, len(rows))
	for i, r := range rows {
		items[i].Ref = refOf(r)
	}
	w := newWorld()
	m, err := w.find(ctx, q, items)
	if err != nil {
		return err
	}
	owner := make(map[domain.AttemptID]domain.TaskID, len(m.attempts))
	for i, id := range m.attempts {
		owner[domain.AttemptID{ID: idOf(id)}] = domain.TaskID{ID: idOf(m.tasks[i])}
	}
	var conflicts []conflict
	for i, r := range rows {
		c := conflict{Conflict: domain.Conflict{Kind: domain.ConflictPayload}, subject: r.Provider + ":" + r.DedupKey}
		if named := w.vendorsWord(items[i].Ref); len(named) > 0 {
			c.attempt, c.task = named[0], owner[named[0]]
		}
		conflicts = append(conflicts, c)
	}
	return q.ConflictInsertMany(ctx, conflictRows(conflicts, s.now()))
}

// refOf is what a delivery says about its attempt.
func refOf(r ports.InboxRow) ports.Ref {
	return ports.Ref{
		TokenHash: r.TokenHash, Provider: r.Provider, AccountID: r.AccountID,
		ProviderTaskID: r.ProviderTaskID, ClientRequestID: r.ClientRequestID,
	}
}

// inboxShard brings the rows of one job to one worker. The vendor's id comes
// first, since deliveries by both kinds of URL carry it.
func inboxShard(r ports.InboxRow) int16 {
	h := fnv.New32a()
	for _, part := range []string{r.Provider, r.AccountID, cmp.Or(r.ProviderTaskID, r.ClientRequestID, string(r.TokenHash), r.DedupKey)} {
		h.Write([]byte(part))
		h.Write([]byte{0})
	}
	return int16(h.Sum32() % inboxShards)
}

// inboxRowOf reads a row but for its payload.
func inboxRowOf(r dbgen.ProviderCallbackInbox) ports.InboxRow {
	return ports.InboxRow{
		ID: r.ID, Provider: r.Provider, AccountID: r.AccountID, DedupKey: r.DedupKey,
		ProviderEventID: text(r.ProviderEventID), ProviderTaskID: text(r.ProviderTaskID), ClientRequestID: text(r.ClientRequestID),
		TokenHash: r.TokenHash, Trust: domain.Trust(r.Trust), ProviderOccurredAt: timePtr(r.ProviderOccurredAt),
		ReceivedAt: timeOf(r.ReceivedAt), KeyVersion: text(r.SignatureKeyVersion), PayloadHash: r.PayloadHash,
		TraceID: domain.TraceID{ID: idOf(r.TraceID)}, Status: ports.InboxStatus(r.ProcessStatus), ErrorCount: int(r.ErrorCount),
		ClaimCount: int(r.ClaimCount), LastError: text(r.LastErrorCode), NextRetryAt: timeOf(r.NextRetryAt),
	}
}

// openRow reads a row; its payload stays nil when it was removed and when no key
// opens it, which is an error.
func (s *Store) openRow(r dbgen.ProviderCallbackInbox) (row ports.InboxRow, err error) {
	row = inboxRowOf(r)
	if r.Payload != nil {
		row.Payload, err = s.cfg.Keyring.open(text(r.PayloadKeyVersion), identityOf(r.Provider, r.DedupKey), r.Payload)
	}
	return row, err
}

// uids converts ids for an array parameter.
func uids[T any](ids []T, of func(T) domain.ID) []pgtype.UUID {
	out := make([]pgtype.UUID, len(ids))
	for i, id := range ids {
		out[i] = uid(of(id))
	}
	return out
}
