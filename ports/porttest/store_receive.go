package porttest

import (
	"bytes"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

func receiveTests() []storeTest {
	return []storeTest{
		{"KeepsEverything", receiveKeepsEverything},
		{"Duplicate", receiveDuplicate},
		{"Differs", receiveDiffers},
		{"KeyIsOfProvider", receiveKeyIsOfProvider},
		{"OneBadRow", receiveOneBadRow},
		{"ConcurrentDuplicates", receiveConcurrentDuplicates},
		{"Rollback", receiveRollback},
		{"Empty", receiveEmpty},
	}
}

// delivery is a verified webhook about a job. name makes it unique.
func (b *storeBench) delivery(m made, name string) ports.InboxRow {
	body := []byte(fmt.Sprintf(`{"id":%q,"event":%q}`, m.vendorID, name))
	return ports.InboxRow{
		Provider: acme, AccountID: acmeAccount, DedupKey: acmeAccount + "|authentic|" + name,
		ProviderEventID: name, ProviderTaskID: m.vendorID, TokenHash: hash(m.token), Trust: domain.TrustAuthentic,
		ReceivedAt: b.Clock.Now(), KeyVersion: "v1", PayloadHash: hash(string(body)), Payload: body, TraceID: domain.TraceID{ID: newID()},
	}
}

// receive stores deliveries and fails the test when the call does.
func (b *storeBench) receive(rows ...ports.InboxRow) []ports.ReceiveResult {
	b.t.Helper()
	results, err := b.Store.Receive(b.ctx, rows)
	if err != nil {
		b.t.Fatalf("Receive: %v", err)
	}
	if len(results) != len(rows) {
		b.t.Fatalf("Receive of %d rows gave %d results", len(rows), len(results))
	}
	return results
}

func wantReceived(t *testing.T, what string, r ports.ReceiveResult, duplicate, differs bool) {
	t.Helper()
	if r.Err != nil || r.Differs != differs || (!differs && r.Duplicate != duplicate) {
		t.Errorf("%s: %+v, want duplicate %v, differs %v", what, r, duplicate, differs)
	}
}

func receiveKeepsEverything(t *testing.T, b *storeBench) {
	m := b.submitted()
	row := b.delivery(m, "evt-1")
	occurred := b.Clock.Now().Add(-time.Second)
	row.ProviderOccurredAt, row.ClientRequestID = &occurred, m.client
	row.Payload = []byte("{\"any\": \"bytes \\u0000\"}\x00\xff") // no database text
	row.PayloadHash = hash(string(row.Payload))
	wantReceived(t, "a new delivery", b.receive(row)[0], false, false)

	got := b.takenRows(1)[0]
	if got.ID == 0 || got.Provider != row.Provider || got.AccountID != row.AccountID || got.DedupKey != row.DedupKey ||
		got.ProviderEventID != row.ProviderEventID || got.ProviderTaskID != row.ProviderTaskID || got.ClientRequestID != row.ClientRequestID ||
		got.Trust != row.Trust || got.KeyVersion != row.KeyVersion || got.TraceID != row.TraceID {
		t.Errorf("names: %+v\nwant %+v", got, row)
	}
	if !bytes.Equal(got.Payload, row.Payload) || !bytes.Equal(got.PayloadHash, row.PayloadHash) || !bytes.Equal(got.TokenHash, row.TokenHash) {
		t.Errorf("bytes: %q %x %x", got.Payload, got.PayloadHash, got.TokenHash)
	}
	if !got.ReceivedAt.Equal(row.ReceivedAt) || got.ProviderOccurredAt == nil || !got.ProviderOccurredAt.Equal(occurred) {
		t.Errorf("times: %v, %v", got.ReceivedAt, got.ProviderOccurredAt)
	}
	stored, err := b.Store.InboxRow(b.ctx, got.ID)
	if err != nil || !bytes.Equal(stored.Payload, row.Payload) || stored.Status != ports.InboxDone {
		t.Errorf("InboxRow: %+v, %v", stored, err)
	}
	_, err = b.Store.InboxRow(b.ctx, got.ID+1_000_000)
	wantErr(t, "an unknown row", err, ports.ErrNotFound)
}

// takenRows processes what is due as running news and returns the rows in the
// order in which they were decoded.
func (b *storeBench) takenRows(want int) []ports.InboxRow {
	b.t.Helper()
	var rows []ports.InboxRow
	for {
		report := b.process(func(row ports.InboxRow) ports.Decoded {
			rows = append(rows, row)
			return b.news(row, domain.ObservedRunning)
		})
		if report.Taken == 0 {
			break
		}
	}
	if len(rows) != want {
		b.t.Fatalf("%d rows were taken, want %d", len(rows), want)
	}
	return rows
}

func receiveDuplicate(t *testing.T, b *storeBench) {
	m := b.submitted()
	one, two := b.delivery(m, "evt-1"), b.delivery(m, "evt-2")
	results := b.receive(one, two, one)
	if results[0].Duplicate == results[2].Duplicate || results[0].Differs || results[2].Differs {
		t.Errorf("one delivery twice in a batch: %+v", results)
	}
	wantReceived(t, "another one", results[1], false, false)
	late := one
	late.ReceivedAt, late.TraceID = late.ReceivedAt.Add(time.Minute), domain.TraceID{ID: newID()}
	wantReceived(t, "the same later", b.receive(late)[0], true, false)
	b.takenRows(2)
	wantReceived(t, "the same after it was digested", b.receive(one)[0], true, false)
	b.takenRows(0)
	if conflicts := b.conflicts(); len(conflicts) != 0 {
		t.Errorf("conflicts %+v", conflicts)
	}
}

// receiveDiffers: a known name with another content is a conflict, and the first
// content stands.
func receiveDiffers(t *testing.T, b *storeBench) {
	m := b.submitted()
	row := b.delivery(m, "evt-1")
	b.receive(row)
	forged := row
	forged.Payload = []byte(`{"another":"body"}`)
	forged.PayloadHash = hash(string(forged.Payload))
	wantReceived(t, "another body", b.receive(forged)[0], true, true)
	if conflicts := b.conflicts(); len(conflicts) != 1 || conflicts[0].Kind != domain.ConflictPayload {
		t.Errorf("conflicts %+v, want one %s", conflicts, domain.ConflictPayload)
	}
	if got := b.takenRows(1)[0]; !bytes.Equal(got.Payload, row.Payload) {
		t.Errorf("payload %q, want the first one", got.Payload)
	}
}

func receiveKeyIsOfProvider(t *testing.T, b *storeBench) {
	m := b.submitted()
	row := b.delivery(m, "evt-1")
	other := row
	other.Provider = "other"
	for i, r := range b.receive(row, other) {
		wantReceived(t, fmt.Sprintf("provider %d", i), r, false, false)
	}
}

func receiveOneBadRow(t *testing.T, b *storeBench) {
	m := b.submitted()
	bad := b.delivery(m, "evt-bad")
	bad.DedupKey = "a\x00b"
	results := b.receive(b.delivery(m, "evt-1"), bad, b.delivery(m, "evt-2"))
	wantReceived(t, "the row before", results[0], false, false)
	wantReceived(t, "the row after", results[2], false, false)
	if results[1].Err == nil || errors.Is(results[1].Err, ports.ErrUnavailable) {
		t.Errorf("a row that no database can hold: %+v", results[1])
	}
	b.takenRows(2)
}

func receiveConcurrentDuplicates(t *testing.T, b *storeBench) {
	m := b.submitted()
	const names, senders = 10, 6
	var fresh atomic.Int64
	together(senders, func(s int) {
		var rows []ports.InboxRow
		for i := range names { // half of the senders in opposite order
			if s%2 == 0 {
				i = names - 1 - i
			}
			rows = append(rows, b.delivery(m, fmt.Sprintf("evt-%d", i)))
		}
		results, err := retryUnavailable(func() ([]ports.ReceiveResult, error) { return b.Store.Receive(b.ctx, rows) })
		if err != nil {
			t.Errorf("Receive: %v", err)
		}
		for _, r := range results {
			if r.Err != nil || r.Differs {
				t.Errorf("Receive: %+v", r)
			} else if !r.Duplicate {
				fresh.Add(1)
			}
		}
	})
	if n := fresh.Load(); n != names {
		t.Errorf("%d deliveries were new, want %d", n, names)
	}
	b.takenRows(names)
}

func receiveRollback(t *testing.T, b *storeBench) {
	b.needRollback()
	m := b.submitted()
	row := b.delivery(m, "evt-1")
	b.InjectRollback(1)
	_, err := b.Store.Receive(b.ctx, []ports.InboxRow{row})
	wantErr(t, "a lost transaction", err, ports.ErrUnavailable)
	b.InjectRollback(0)
	b.takenRows(0)
	wantReceived(t, "the vendor's next try", b.receive(row)[0], false, false)
	b.takenRows(1)
}

func receiveEmpty(t *testing.T, b *storeBench) {
	if results, err := b.Store.Receive(b.ctx, nil); err != nil || len(results) != 0 {
		t.Errorf("Receive of nothing: %v, %v", results, err)
	}
}
