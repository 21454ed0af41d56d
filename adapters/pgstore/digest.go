package pgstore

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/aivedio/aivedio/adapters/pgstore/internal/dbgen"
	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// delivery is a claimed row with what the adapter made of it.
type delivery struct {
	ports.InboxRow
	decoded ports.Decoded
	result  ports.Result
	applied bool
}

// batch is a unit whose items are deliveries.
type batch struct {
	*unit
	at         time.Time
	deliveries []delivery
	settled    []settled
	marked     []marked
}

// settled is a delivery that is done, with its verdict.
type settled struct {
	id int64
	domain.Verdict
}

// marked is a delivery that is not done: it waits, or it is given up.
type marked struct {
	id     int64
	status ports.InboxStatus
	errors int
	code   string
	next   time.Time
}

// newBatch opens and decodes the claimed rows. A row that killed too many
// workers, or that the database has refused, is not decoded any more.
func (r *round) newBatch(claimed []dbgen.InboxClaimRow, refused error) *batch {
	b := &batch{unit: r.newUnit(), at: r.params.Now, deliveries: make([]delivery, len(claimed))}
	for i, c := range claimed {
		row, err := r.openRow(c.ProviderCallbackInbox)
		row.ClaimCount++
		d := delivery{InboxRow: row}
		switch {
		case c.Deaths >= maxDeaths:
			d.decoded = ports.Decoded{Err: errDeadly, Code: codeDeadly}
		case err != nil:
			d.decoded = ports.Decoded{Err: err, Code: "sealed"}
		case refused != nil:
			d.decoded = ports.Decoded{Err: refused, Code: "refused"}
		default:
			d.decoded = safely(r.decode, row)
		}
		b.deliveries[i] = d
	}
	return b
}

// codeDeadly marks a row that workers died with.
const codeDeadly = "worker_died"

var errDeadly = fmt.Errorf("%d workers died with this delivery", maxDeaths)

// safely decodes a row; a panic is a body that does not parse.
func safely(decode func(ports.InboxRow) ports.Decoded, row ports.InboxRow) (decoded ports.Decoded) {
	defer func() {
		if r := recover(); r != nil {
			decoded = ports.Decoded{Err: fmt.Errorf("decode: panic: %v", r), Code: "panic"}
		}
	}()
	return decode(row)
}

// items are those of the rows that reach the state machine.
func (b *batch) items() []ports.Item {
	var items []ports.Item
	for _, d := range b.deliveries {
		if d.decoded.Err == nil && !d.decoded.Foreign {
			items = append(items, d.decoded.Item)
		}
	}
	return items
}

// digestAll decides the deliveries in the order of their arrival.
func (b *batch) digestAll() {
	for i := range b.deliveries {
		d := &b.deliveries[i]
		switch {
		case d.decoded.Err != nil:
			b.fail(d, cmp.Or(d.decoded.Code, "undecodable"))
		case d.decoded.Foreign:
			b.settled = append(b.settled, settled{d.ID, domain.Verdict{Kind: domain.VerdictIgnored, Reason: domain.ReasonForeignEvent}})
		default:
			b.digest(d)
		}
	}
}

func (b *batch) digest(d *delivery) {
	d.applied = true
	d.result = b.apply(d.decoded.Item, d.ID)
	b.results = append(b.results, &d.result)
	switch verdict := d.result.Decision.Verdict; {
	case d.result.Err != nil:
		b.fail(d, "apply")
	case verdict.Reason == domain.ReasonOrphan:
		b.marked = append(b.marked, marked{d.ID, ports.InboxOrphan, d.ErrorCount, string(verdict.Reason), b.at.Add(retryDelay(d.ClaimCount))})
	default:
		b.settled = append(b.settled, settled{d.ID, verdict})
	}
}

// fail counts a failure and puts the row off; a deadly one is given up.
func (b *batch) fail(d *delivery, code string) {
	m := marked{d.ID, ports.InboxRetry, d.ErrorCount + 1, code, b.at.Add(retryDelay(d.ErrorCount + 1))}
	if code == codeDeadly {
		m.status = ports.InboxDead
	}
	b.marked = append(b.marked, m)
}

// retryDelay doubles from a second to five minutes.
func retryDelay(n int) time.Duration {
	return min(time.Second<<min(max(n-1, 0), 16), 5*time.Minute)
}

// queueOutcomes writes what became of the rows: a narrow row for those that are
// done, an update of the wide one only for the others.
func (b *batch) queueOutcomes(ctx context.Context, p *pipeline) {
	q := dbgen.New(p)
	if len(b.settled) > 0 {
		params := dbgen.InboxOutcomeInsertManyParams{Now: at(b.now)}
		reserve(&params, len(b.settled))
		for _, o := range b.settled {
			params.InboxIds, params.Verdicts = append(params.InboxIds, o.id), append(params.Verdicts, string(o.Kind))
			params.Reasons = append(params.Reasons, string(o.Reason))
		}
		queued(q.InboxOutcomeInsertMany(ctx, &params))
	}
	if len(b.marked) == 0 {
		return
	}
	var params dbgen.InboxSetManyParams
	for _, m := range b.marked {
		params.Ids, params.Statuses = append(params.Ids, m.id), append(params.Statuses, string(m.status))
		params.ErrorCounts, params.LastErrorCodes = append(params.ErrorCounts, int32(m.errors)), append(params.LastErrorCodes, m.code)
		params.NextRetryAts = append(params.NextRetryAts, at(m.next))
		processed := time.Time{}
		if m.status == ports.InboxDead {
			processed = b.now
		}
		params.ProcessedAts = append(params.ProcessedAts, at(processed))
	}
	queued(q.InboxSetMany(ctx, &params))
}

// addTo counts a committed batch.
func (b *batch) addTo(report *ports.ProcessReport) {
	report.Taken += len(b.deliveries)
	for i := range b.deliveries {
		d := &b.deliveries[i]
		if d.decoded.Err != nil || d.result.Err != nil {
			report.Failed++
		}
		if !d.applied {
			continue
		}
		report.Results = append(report.Results, d.result)
		switch verdict := d.result.Decision.Verdict; {
		case verdict.Reason == domain.ReasonOrphan:
			report.Orphans++
		case verdict.Kind == domain.VerdictApplied:
			report.Applied++
		}
	}
}
