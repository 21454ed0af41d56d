package e2e

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"
)

// figure is a metric of specification 12.11.6 and what an outage does to it. It is
// read in all processes of a role and added up.
type figure struct {
	role, name string
	// label is a part of the series' labels, such as `outcome="stored"`; "" takes all.
	label string
	// want compares the figure before, during and after the outage.
	want movement
}

// movement is what a figure does over an outage.
type movement int

const (
	// rises: it is a counter that grows while the thing is away.
	rises movement = iota
	// resumes: it is a counter that grows once the thing is back.
	resumes
	// bulges: it is a gauge that is higher during the outage than before and after.
	bulges
	// rests: it is a gauge that is zero afterwards.
	rests
	// known: it is there.
	known
)

// readings are figures at one moment, in their order.
type readings []float64

// read scrapes the figures. A counter that nothing has raised yet is not shown and
// counts as zero.
func (f *fleet) read(ctx context.Context, figures []figure) (readings, error) {
	pages := map[string][]string{}
	out := make(readings, len(figures))
	for i, g := range figures {
		if pages[g.role] == nil {
			for _, p := range f.processes[g.role] {
				lines, err := scrape(ctx, p.URL())
				if err != nil {
					return nil, fmt.Errorf("metrics of %s: %w", p.Name(), err)
				}
				pages[g.role] = append(pages[g.role], lines...)
			}
		}
		var found bool
		if out[i], found = sum(pages[g.role], g); !found && g.want == known {
			return nil, fmt.Errorf("no process of role %s shows %s", g.role, g.name)
		}
	}
	return out, nil
}

// mustRead is read, and a failure ends the test.
func (f *fleet) mustRead(ctx context.Context, t *testing.T, figures []figure) readings {
	t.Helper()
	r, err := f.read(ctx, figures)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func scrape(ctx context.Context, base string) ([]string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close() //nolint:errcheck // read only
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("/metrics answered %s", resp.Status)
	}
	var lines []string
	scanner := bufio.NewScanner(resp.Body)
	for scanner.Scan() {
		if !strings.HasPrefix(scanner.Text(), "#") {
			lines = append(lines, scanner.Text())
		}
	}
	return lines, scanner.Err()
}

// sum adds the series of a figure; found is false when there is none.
func sum(lines []string, g figure) (total float64, found bool) {
	for _, line := range lines {
		series, text, _ := strings.Cut(line, " ")
		if i := strings.LastIndexByte(line, ' '); i >= 0 {
			series, text = line[:i], line[i+1:]
		}
		name, labels, _ := strings.Cut(series, "{")
		if name != g.name || !strings.Contains(labels, g.label) {
			continue
		}
		value, err := strconv.ParseFloat(text, 64)
		if err != nil {
			continue
		}
		total, found = total+value, true
	}
	return total, found
}

// ok reports whether a figure moved as it should.
func (g figure) ok(before, during, after float64) bool {
	switch g.want {
	case rises:
		return during > before
	case resumes:
		return after > during
	case bulges:
		return during > before && after < during
	case rests:
		return after == 0
	default:
		return true
	}
}

// outage takes a part of the world away, and holds until every figure that should
// rise has, and until more is true when that is not nil; then it gives the part back.
// It returns the readings before and during the outage and its time, in which the
// part was away throughout.
func (d *drill) outage(ctx context.Context, figures []figure, away, back func(), more func() bool) (o held) {
	d.t.Helper()
	o.figures, o.before = figures, d.fleet.mustRead(ctx, d.t, figures)
	away()
	o.from = time.Now()
	o.during = d.settled(ctx, figures, func(g figure, i int, now float64) bool {
		return g.want == resumes || g.want == rests || g.ok(o.before[i], now, now-1)
	})
	if more != nil {
		d.await(ctx, "what the outage should show", func() (bool, error) { return more(), nil })
		o.during = d.fleet.mustRead(ctx, d.t, figures)
	}
	o.to = time.Now()
	back()
	return o
}

// held is an outage that is over.
type held struct {
	figures        []figure
	before, during readings
	from, to       time.Time
}

// recovered waits until every figure has come back, and logs the table.
func (d *drill) recovered(ctx context.Context, o held) {
	d.t.Helper()
	after := d.settled(ctx, o.figures, func(g figure, i int, now float64) bool { return g.ok(o.before[i], o.during[i], now) })
	d.t.Logf("away for %v; the figures before, during and after:", o.to.Sub(o.from).Round(time.Millisecond))
	for i, g := range o.figures {
		d.t.Logf("  %s{%s} of %s: %g, %g, %g", g.name, g.label, g.role, o.before[i], o.during[i], after[i])
	}
}

// settled reads the figures until all are good, and fails the test otherwise.
func (d *drill) settled(ctx context.Context, figures []figure, good func(g figure, i int, now float64) bool) (last readings) {
	d.t.Helper()
	var missing []string
	err := await(ctx, "the figures to move", func() (bool, error) {
		var err error
		if last, err = d.fleet.read(ctx, figures); err != nil {
			return false, err
		}
		if d.nudge != nil {
			d.nudge()
		}
		missing = missing[:0]
		for i, g := range figures {
			if !good(g, i, last[i]) {
				missing = append(missing, fmt.Sprintf("%s{%s} of %s is %g", g.name, g.label, g.role, last[i]))
			}
		}
		return len(missing) == 0, nil
	})
	if err != nil {
		d.t.Fatalf("%v: %v", err, missing)
	}
	return last
}
