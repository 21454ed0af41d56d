package main

import (
	"strings"
	"testing"
	"time"

	"github.com/aivedio/aivedio/adapters/pgstore"
)

func TestRetention(t *testing.T) {
	t.Parallel()
	if err := defaultRetention().validate(); err != nil {
		t.Errorf("the defaults: %v", err)
	}
	for name, tt := range map[string]struct {
		change func(*RetentionConfig)
		field  string
	}{
		"no events":                    {func(r *RetentionConfig) { r.Events = 0 }, "events"},
		"half a day of events":         {func(r *RetentionConfig) { r.Events = 36 * time.Hour }, "events"},
		"keys that go before a repeat": {func(r *RetentionConfig) { r.Deliveries, r.Payloads = 71*time.Hour, time.Hour }, "deliveries"},
		"payloads that outlive rows":   {func(r *RetentionConfig) { r.Payloads = r.Deliveries + 1 }, "payloads"},
		"no payloads":                  {func(r *RetentionConfig) { r.Payloads = 0 }, "payloads"},
		"dead letters for an hour":     {func(r *RetentionConfig) { r.DeadLetters = time.Hour }, "dead_letters"},
		"no desk":                      {func(r *RetentionConfig) { r.Desk = 0 }, "desk"},
		"audit for an hour":            {func(r *RetentionConfig) { r.Audit = time.Hour }, "audit"},
	} {
		r := defaultRetention()
		tt.change(&r)
		if err := r.validate(); err == nil || !strings.Contains(err.Error(), "retention."+tt.field) {
			t.Errorf("%s: %v", name, err)
		}
	}
	var cfg pgstore.Config
	defaultRetention().keep(&cfg)
	if cfg.EventRetention != 90*oneDay || cfg.InboxRetention != 7*oneDay || cfg.PayloadRetention != 3*oneDay || cfg.DeadRetention != 30*oneDay || cfg.DeskRetention != 365*oneDay || cfg.AuditRetention != 0 {
		t.Errorf("the store is told %+v", cfg)
	}
}
