package main

import (
	"context"
	"time"

	"github.com/aivedio/aivedio/internal/simulator"
)

// outage is the time without Redis.
type outage struct{ began, lost, back, end time.Time }

// alone is the rate before, during and after an outage of Redis, in which each
// worker keeps to a part of the limits for itself.
type alone struct {
	Before figure `json:"before_per_s"`
	During figure `json:"during_per_s"`
	After  figure `json:"after_per_s"`
}

// loseRedis ends Redis under load and brings it back, empty.
func (p *poll) loseRedis(ctx context.Context) error {
	third := max(p.seconds()/6, 3*time.Second)
	o := &outage{began: time.Now()}
	if err := pause(ctx, third); err != nil {
		return err
	}
	if err := p.redis.Halt(); err != nil {
		return err
	}
	o.lost = time.Now()
	if err := pause(ctx, third); err != nil {
		return err
	}
	if err := p.redis.Start(ctx); err != nil {
		return err
	}
	o.back = time.Now()
	if err := pause(ctx, third); err != nil {
		return err
	}
	o.end = time.Now()
	p.outage = o
	return nil
}

// of counts what the vendor saw.
func (o *outage) of(queries []simulator.QueryEntry) *alone {
	rate := func(from, to time.Time) figure {
		n := 0
		for _, q := range queries {
			if q.At >= from.UnixNano() && q.At < to.UnixNano() {
				n++
			}
		}
		return perSecond(n, to.Sub(from))
	}
	return &alone{Before: rate(o.began, o.lost), During: rate(o.lost, o.back), After: rate(o.back, o.end)}
}
