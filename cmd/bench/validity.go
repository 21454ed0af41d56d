package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// invalidError says that something ran and its figures must not be used.
type invalidError struct{ why string }

func (e *invalidError) Error() string { return "the measurement is not valid: " + e.why }

func invalid(format string, args ...any) error {
	return &invalidError{why: fmt.Sprintf(format, args...)}
}

// durability are the settings without which a server acknowledges what it may
// lose; compared are those that both sides must have alike and that are reported.
var (
	durability = []string{"fsync", "synchronous_commit", "full_page_writes"}
	compared   = append(slices.Clone(durability), "wal_sync_method", "shared_buffers", "max_wal_size", "server_version")
)

// verdict joins every reason why the figures must not be used; nil when there is
// none.
func (r *report) verdict() error {
	var faults []error
	bad := func(wrong bool, format string, args ...any) {
		if wrong {
			faults = append(faults, invalid(format, args...))
		}
	}
	faults = append(faults, r.Settings.verdict())
	bad(len(r.Commands) == 0, "no command lines are known")
	bad(len(r.PIDs) == 0, "no process ids are known")
	bad(len(r.Rounds) == 0, "there was no round")
	for _, name := range r.wanted {
		bad(r.Median.Peers[name] <= 0, "the peer %s did nothing", name)
	}
	faults = append(faults, r.faults...)
	bad(r.Lost > 0, "%d acknowledged deliveries are not there", r.Lost)
	bad(r.Violations > 0, "%d violations", r.Violations)
	return errors.Join(faults...)
}

// verdict says whether both sides keep what they acknowledge, in the same way.
func (s settings) verdict() error {
	var faults []error
	for _, name := range durability {
		if value := s.Ours[name]; value != "on" {
			faults = append(faults, invalid("%s is %q", name, value))
		}
	}
	if len(s.Peer) > 0 && !maps.Equal(s.Ours, s.Peer) {
		faults = append(faults, invalid("the servers are set up differently: %v and %v", s.Ours, s.Peer))
	}
	return errors.Join(faults...)
}
