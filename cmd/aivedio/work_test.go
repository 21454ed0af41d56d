package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A lease that does not outlast its call would let a second process begin while
// the first still works: such a configuration is refused before anything starts.
func TestLeasesMustOutlastCalls(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		change func(*WorkConfig)
		want   string
	}{
		{"defaults", func(*WorkConfig) {}, ""},
		{"short and sound", func(w *WorkConfig) { w.SubmitTimeout, w.SubmitLease = 5*time.Second, 10*time.Second }, ""},
		{"submit", func(w *WorkConfig) { w.SubmitLease = w.SubmitTimeout }, "submitter: lease must exceed"},
		{"media", func(w *WorkConfig) { w.MediaLease = w.MediaTimeout }, "media: lease must exceed"},
		{"negative", func(w *WorkConfig) { w.MediaTimeout = -1 }, "negative"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := DefaultConfig()
			tt.change(&c.Work)
			var got string
			if err := c.Validate(); err != nil {
				got = err.Error() // other faults are there too: the defaults name no database
			}
			if tt.want == "" && strings.Contains(got, "lease") || !strings.Contains(got, tt.want) {
				t.Errorf("%s, want %q", got, tt.want)
			}
		})
	}
}

func TestWorkIsConfigured(t *testing.T) {
	t.Setenv("AIVEDIO_MEDIA_LEASE", "31s")
	file := filepath.Join(t.TempDir(), "aivedio.yaml")
	text := "work: {submit_timeout: 7s, submit_lease: 13s, media_timeout: 20s, media_lease: 30s}\nrocketmq: {group_prefix: films-}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := LoadConfig(file)
	if err != nil {
		t.Fatal(err)
	}
	if s := c.Work.submitter(); s.CallTimeout != 7*time.Second || s.Lease != 13*time.Second || s.Concurrency != 32 {
		t.Errorf("submitter %+v", s)
	}
	if m := c.Work.media(); m.Timeout != 20*time.Second || m.Lease != 31*time.Second || m.Concurrency != 4 {
		t.Errorf("media %+v", m)
	}
	if c.RocketMQ.GroupPrefix != "films-" {
		t.Errorf("group prefix %q", c.RocketMQ.GroupPrefix)
	}
}
