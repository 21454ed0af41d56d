package main

import (
	"context"
	"errors"
	"os"
)

// printing are the flags of every scenario.
type printing struct {
	JSON    bool   `name:"json" help:"Print one JSON object as the last line."`
	Compare string `help:"Print every figure divided by that of an older run: a file whose last line is its JSON object." placeholder:"OLD.json" type:"existingfile"`
}

// scenario measures something, together with its peers.
type scenario interface {
	// measure fills the report but for its verdict. dir is a folder of its own that
	// goes away afterwards.
	measure(ctx context.Context, r *report, dir string) error
	// close ends what measure started, also after a failure.
	close() error
	// complaints is what the processes logged, for a failure.
	complaints() string
}

// conduct runs a scenario, prints its report and says whether the figures may be
// used.
func (p printing) conduct(ctx context.Context, std output, r *report, s scenario) (err error) {
	var old *figures
	if p.Compare != "" { // a bad file is told before the work, not after it
		if old, err = readFigures(p.Compare); err != nil {
			return err
		}
		if old.scenario != r.Scenario {
			return errors.New("an older run of " + r.Scenario + " is needed to compare with, not one of " + old.scenario)
		}
	}
	dir, remove, err := scratch()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	defer func() { err = errors.Join(err, s.close()) }()
	if err := s.measure(ctx, r, dir); err != nil {
		if text := s.complaints(); text != "" {
			std.say("%s", text)
		}
		return err
	}
	if err := r.compareWith(old); err != nil {
		return err
	}
	write := r.writeTable
	if p.JSON {
		write = r.writeJSON
	}
	if err := write(std.out); err != nil {
		return err
	}
	return r.verdict()
}

// scratch makes a folder of a run's own.
func scratch() (dir string, remove func() error, err error) {
	dir, err = os.MkdirTemp("", "aivedio-bench-*")
	return dir, func() error { return os.RemoveAll(dir) }, err
}
