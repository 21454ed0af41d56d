package app

import (
	"context"
	"sync"
	"time"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// typicals holds what is learned of the models' durations, read anew now and then.
type typicals struct {
	env    Env
	source ports.Durations

	mu    sync.Mutex
	next  time.Time
	known map[modelRef]domain.Typical
}

// modelRef names a vendor's model.
type modelRef struct{ provider, model string }

// typicalsEvery is the age at which the durations are read anew.
const typicalsEvery = 30 * time.Second

func newTypicals(env Env, source ports.Durations) *typicals {
	return &typicals{env: env, source: source}
}

// refresh reads the durations when they are old. They only shape the pace of
// queries, so a failure leaves what was known.
func (t *typicals) refresh(ctx context.Context) {
	now := t.env.Now()
	if t.source == nil || now.Before(t.next) {
		return
	}
	t.next = now.Add(typicalsEvery)
	list, err := t.source.Durations(ctx)
	if err != nil {
		t.env.Logger.Debug("durations of models could not be read", "error", err)
		return
	}
	known := make(map[modelRef]domain.Typical, len(list))
	for _, d := range list {
		known[modelRef{d.Provider, d.Model}] = d.Typical
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.known = known
}

// of is what is known of the attempt's model.
func (t *typicals) of(a domain.Attempt) domain.Typical {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.known[modelRef{a.Provider, a.Model}]
}
