package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"github.com/aivedio/aivedio/internal/e2e/load"
)

// payloadSize is the length of a delivery's body in bytes.
const payloadSize = 600

// volley is a delivery for each task, each of them news: the progress is higher
// than that of the volley before.
type volley struct {
	deliveries []*load.Delivery
	conns      int
	next       atomic.Int64
}

// newVolley signs a delivery for every task. Its progress must be at least five
// points above that of the last one, or the state machine would rightly hold it
// back.
func newVolley(s load.Sender, tasks []seededTask, progress, conns int) (*volley, error) {
	v := &volley{conns: conns, deliveries: make([]*load.Delivery, len(tasks))}
	now := time.Now()
	for i, t := range tasks {
		// The id is random in the way of the peer's: the same work for the unique index.
		id := fmt.Sprintf("msg_%024d", rand.Int64N(9e18))
		d, err := s.Sign(t.path, id, load.Job{ID: t.providerTask, Progress: progress, Began: began, Size: payloadSize}, now)
		if err != nil {
			return nil, err
		}
		v.deliveries[i] = d
	}
	return v, nil
}

// began is when the vendor started every job: all news of a job carry the same
// vendor time, as Replicate's do.
var began = time.Now().Add(-time.Minute).Truncate(time.Millisecond)

// fired is what came back.
type fired struct {
	acknowledged []string // message ids
	refused      int
	took         time.Duration // from the first request to the last answer
	answers      []figure      // sorted, in ms, of the acknowledged
}

// fire sends until the time is over or every task has had its delivery. rate 0
// is as fast as answers come.
func (v *volley) fire(ctx context.Context, addr string, d time.Duration, rate float64) fired {
	type shots struct {
		ids     []string
		answers []figure
		refused int
	}
	per := make([]shots, v.conns)
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	start := time.Now()
	load.Run{
		Addr: addr, Conns: v.conns, Rate: rate,
		Next: func(int) *load.Delivery {
			if n := v.next.Add(1) - 1; n < int64(len(v.deliveries)) {
				return v.deliveries[n]
			}
			return nil
		},
		Done: func(n int, r load.Result) {
			if !r.Acknowledged() {
				per[n].refused++
				return
			}
			per[n].ids = append(per[n].ids, r.Delivery.ID)
			per[n].answers = append(per[n].answers, milliseconds(r.Took))
		},
	}.Do(ctx)
	f := fired{took: time.Since(start)}
	for _, s := range per {
		f.acknowledged = append(f.acknowledged, s.ids...)
		f.answers = append(f.answers, s.answers...)
		f.refused += s.refused
	}
	slices.Sort(f.answers)
	return f
}

func milliseconds(d time.Duration) figure { return figure(d.Seconds() * 1000) }

// perSecond is a rate.
func perSecond(n int, d time.Duration) figure {
	if d <= 0 {
		return 0
	}
	return figure(float64(n) / d.Seconds())
}
