package main

import (
	"testing"
	"time"
)

// TestVendorClient holds the client's limit above that of a create.
func TestVendorClient(t *testing.T) {
	t.Parallel()
	cfg := DefaultConfig()
	for _, timeout := range []time.Duration{time.Second, cfg.Work.SubmitTimeout, 3 * time.Minute} {
		cfg.Work.SubmitTimeout = timeout
		if got := vendorClient(cfg).Timeout; got < timeout || got < 30*time.Second {
			t.Errorf("a create may take %s, the client gives up after %s", timeout, got)
		}
	}
}
