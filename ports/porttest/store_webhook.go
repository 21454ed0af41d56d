package porttest

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aivedio/aivedio/ports"
)

func webhookTests() []storeTest {
	return []storeTest{
		{"CountsAddUp", webhookCountsAddUp},
		{"Silence", webhookSilence},
		{"SilenceHasOneAuthor", webhookSilenceHasOneAuthor},
	}
}

func (b *storeBench) addCounts(counts ...ports.WebhookCount) {
	b.t.Helper()
	if err := b.Store.AddWebhookCounts(b.ctx, counts); err != nil {
		b.t.Fatalf("AddWebhookCounts: %v", err)
	}
}

func webhookCountsAddUp(t *testing.T, b *storeBench) {
	main, spare := ports.AccountRef{Provider: acme, AccountID: "main"}, ports.AccountRef{Provider: acme, AccountID: "spare"}
	now := b.Clock.Now().Truncate(ports.WebhookSlice)
	before := now.Add(-ports.WebhookSlice)
	b.addCounts()
	b.addCounts(
		ports.WebhookCount{AccountRef: spare, Slice: now, ByPoll: 1},
		ports.WebhookCount{AccountRef: main, Slice: now, ByWebhook: 1, Late: 2},
		ports.WebhookCount{AccountRef: main, Slice: before, ByPoll: 3},
	)
	b.addCounts(ports.WebhookCount{AccountRef: main, Slice: now, ByWebhook: 10, ByPoll: 20, Late: 30, Hinted: 40})
	want := []ports.WebhookCount{
		{AccountRef: main, Slice: now, ByWebhook: 11, ByPoll: 20, Late: 32, Hinted: 40},
		{AccountRef: main, Slice: before, ByPoll: 3},
		{AccountRef: spare, Slice: now, ByPoll: 1},
	}
	got, err := b.Store.WebhookCounts(b.ctx, before)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("counts %+v, %v; want %+v", got, err, want)
	}
	if got, err = b.Store.WebhookCounts(b.ctx, before.Add(time.Millisecond)); err != nil || len(got) != 2 {
		t.Errorf("of the newest slice: %+v, %v", got, err)
	}
}

func webhookSilence(t *testing.T, b *storeBench) {
	ref := ports.AccountRef{Provider: acme, AccountID: "main"}
	set := func(since time.Time, want bool) {
		t.Helper()
		if changed, err := b.Store.SetWebhookSilence(b.ctx, ref, since); err != nil || changed != want {
			t.Errorf("changed %v, %v; want %v", changed, err, want)
		}
	}
	began := b.Clock.Now()
	set(time.Time{}, false)
	set(began, true)
	set(began.Add(time.Minute), false)
	silent, err := b.Store.WebhookSilences(b.ctx)
	if err != nil || len(silent) != 1 || !silent[ref].Equal(began) {
		t.Errorf("silences %v, %v; want since %v", silent, err, began)
	}
	health, err := b.Store.AccountHealth(b.ctx)
	if err != nil || len(health) != 1 || health[0].WebhookSilentSince == nil || !health[0].WebhookSilentSince.Equal(began) {
		t.Errorf("the account's health %+v, %v", health, err)
	}
	set(time.Time{}, true)
	set(time.Time{}, false)
	if silent, err = b.Store.WebhookSilences(b.ctx); err != nil || len(silent) != 0 {
		t.Errorf("silences after their end: %v, %v", silent, err)
	}
}

// webhookSilenceHasOneAuthor: of several processes that notice the same, one says
// so.
func webhookSilenceHasOneAuthor(t *testing.T, b *storeBench) {
	var authors atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			changed, err := b.Store.SetWebhookSilence(b.ctx, ports.AccountRef{Provider: acme, AccountID: "main"}, b.Clock.Now())
			if err != nil {
				t.Error(err)
			}
			if changed {
				authors.Add(1)
			}
		})
	}
	wg.Wait()
	if n := authors.Load(); n != 1 {
		t.Errorf("%d callers changed it, want one", n)
	}
}
