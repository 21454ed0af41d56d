package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/aivedio/aivedio/adapters/pgstore"
)

// RetentionConfig is how long rows are kept. Tasks, attempts, operations, ledger and
// assets are kept for ever.
type RetentionConfig struct {
	// Events are kept in whole days; a stream's reader further behind gets a reset.
	Events time.Duration `yaml:"events" env:"AIVEDIO_RETENTION_EVENTS"`
	// Deliveries that are done, and with them the keys by which a repetition is known:
	// longer than any vendor repeats one.
	Deliveries time.Duration `yaml:"deliveries" env:"AIVEDIO_RETENTION_DELIVERIES"`
	// Payloads of deliveries that are done.
	Payloads time.Duration `yaml:"payloads" env:"AIVEDIO_RETENTION_PAYLOADS"`
	// DeadLetters wait so long for a person.
	DeadLetters time.Duration `yaml:"dead_letters" env:"AIVEDIO_RETENTION_DEAD_LETTERS"`
	// Desk is for closed conflicts and cases.
	Desk time.Duration `yaml:"desk" env:"AIVEDIO_RETENTION_DESK"`
	// Audit is for the audit log; 0 keeps it for ever.
	Audit time.Duration `yaml:"audit" env:"AIVEDIO_RETENTION_AUDIT"`
}

const oneDay = 24 * time.Hour

// longestRetry is how long vendors repeat a delivery that nobody took: three days
// are the longest that any of them documents.
const longestRetry = 3 * oneDay

func defaultRetention() RetentionConfig {
	return RetentionConfig{Events: 90 * oneDay, Deliveries: 7 * oneDay, Payloads: 3 * oneDay, DeadLetters: 30 * oneDay, Desk: 365 * oneDay}
}

// validate joins every fault.
func (r RetentionConfig) validate() error {
	var faults []error
	if r.Events < oneDay || r.Events%oneDay != 0 {
		faults = append(faults, errors.New("retention.events must be whole days, such as 2160h"))
	}
	if r.Deliveries < longestRetry {
		faults = append(faults, fmt.Errorf("retention.deliveries must be at least %v: vendors repeat deliveries for so long, and a repetition is known by its key", longestRetry))
	}
	if r.Payloads < time.Hour || r.Payloads > r.Deliveries {
		faults = append(faults, errors.New("retention.payloads must be at least 1h and at most retention.deliveries"))
	}
	if r.DeadLetters < oneDay || r.Desk < oneDay {
		faults = append(faults, errors.New("retention.dead_letters and retention.desk must be at least 24h"))
	}
	if r.Audit != 0 && r.Audit < oneDay {
		faults = append(faults, errors.New("retention.audit must be 0, which keeps the log for ever, or at least 24h"))
	}
	return errors.Join(faults...)
}

// keep tells the store.
func (r RetentionConfig) keep(cfg *pgstore.Config) {
	cfg.EventRetention, cfg.InboxRetention, cfg.PayloadRetention = r.Events, r.Deliveries, r.Payloads
	cfg.DeadRetention, cfg.DeskRetention, cfg.AuditRetention = r.DeadLetters, r.Desk, r.Audit
}
