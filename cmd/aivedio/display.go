package main

import (
	"fmt"
	"os"

	"github.com/schollz/progressbar/v3"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/internal/wire"
)

// display shows a watch: JSON lines, a line an event, or a bar on a terminal.
type display interface {
	event(e wire.Event)
	end(last taskAnswer) error
	close()
}

func newDisplay(std streams, asJSON bool) display {
	if asJSON {
		return jsonDisplay{std}
	}
	if f, ok := std.err.(*os.File); ok && isTerminal(f) {
		return newBarDisplay(std)
	}
	return lineDisplay{std}
}

func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

type jsonDisplay struct{ std streams }

func (d jsonDisplay) event(e wire.Event)        { _ = d.std.json(e) } // a closed pipe shows at the end
func (d jsonDisplay) end(last taskAnswer) error { return d.std.json(last) }
func (d jsonDisplay) close()                    {}

type lineDisplay struct{ std streams }

func (d lineDisplay) event(e wire.Event) {
	fmt.Fprintf(d.std.out, "%s  v%-3d %-18s %-11s %s\n", clockOf(e.OccurredAt), e.TaskVersion, e.Status, e.Stage, percent(e.Progress))
}
func (d lineDisplay) end(last taskAnswer) error { return printTask(d.std, last, false) }
func (d lineDisplay) close()                    {}

// barDisplay draws one bar per stage; the bar of a stage that was left stays.
type barDisplay struct {
	std   streams
	bar   *progressbar.ProgressBar
	stage domain.Stage
}

func newBarDisplay(std streams) *barDisplay { return &barDisplay{std: std} }

func (d *barDisplay) event(e wire.Event) {
	if d.bar == nil || d.stage != e.Stage {
		d.close()
		d.stage = e.Stage
		d.bar = progressbar.NewOptions(100, progressbar.OptionSetWriter(d.std.err), progressbar.OptionSetWidth(30),
			progressbar.OptionSetDescription(fmt.Sprintf("%-11s", e.Stage)), progressbar.OptionShowElapsedTimeOnFinish(), progressbar.OptionSetPredictTime(false))
	}
	d.bar.Describe(fmt.Sprintf("%-11s %-18s", e.Stage, e.Status))
	if e.Progress != nil {
		_ = d.bar.Set(*e.Progress)
		return
	}
	_ = d.bar.RenderBlank()
}

func (d *barDisplay) end(last taskAnswer) error {
	d.close()
	return printTask(d.std, last, false)
}

func (d *barDisplay) close() {
	if d.bar != nil {
		fmt.Fprintln(d.std.err)
		d.bar = nil
	}
}
