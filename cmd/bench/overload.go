package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aivedio/aivedio/internal/e2e/launch"
)

// The two ways in which a receiver has too much to do: its own CPU is used up, or
// its database does not keep up. The second one is a database whose commits take
// slowCommit each, for a receiver with few and small batches; there the machine has
// CPU to spare, so that a slow refusal would be the receiver's fault.
const (
	overloadCPU      = "cpu"
	overloadDatabase = "database"

	slowCommit = 100 * time.Millisecond
	slowConns  = 2
	slowBatch  = 32

	// overloadConns is more than may wait in the receiver's queue.
	overloadConns = 5000
	// impatience is when a client hangs up.
	impatience = 3 * time.Second
	// sentPerSecond bounds what is signed ahead: more cannot be sent from the cores
	// that the receiver needs, too.
	sentPerSecond = 40_000
)

// overloadFigures are one overload.
type overloadFigures struct {
	// Capacity is what the receiver acknowledges when nothing is refused, Offered what
	// was due per second, Sent what the connections had room for.
	Capacity figure `json:"capacity_per_s"`
	Offered  figure `json:"offered_per_s"`
	Sent     figure `json:"sent_per_s"`
	// Acknowledged are 2xx answers.
	Acknowledged figure `json:"acknowledged_per_s"`
	// Refused are 503 answers, with the time from the first byte of the request;
	// Silent are those of them that do not say when to come again.
	Refused int       `json:"refused"`
	Refusal quantiles `json:"refusal_ms"`
	Silent  int       `json:"refused_without_retry_after"`
	// Other are answers with another status; HungUp are requests whose client did not
	// wait any longer.
	Other  int `json:"other_answers"`
	HungUp int `json:"hung_up"`
	// Memory is resident, of the receiver.
	Memory memoryFigures `json:"memory_mib"`
	// Reads are of a task through another process.
	Reads quantiles `json:"read_ms"`
}

// memoryFigures are in MiB: before the overload, at most and at its end. Growth is the
// peak of the second half divided by that of the first: 1 is flat.
type memoryFigures struct {
	Start  figure `json:"start"`
	Peak   figure `json:"peak"`
	End    figure `json:"end"`
	Growth figure `json:"growth"`
}

// String is a sentence.
func (o overloadFigures) String() string {
	return fmt.Sprintf("%v/s offered to a capacity of %v/s, %v/s sent, %v/s acknowledged; %d refused in %v ms, %d without Retry-After; %d hung up, %d other answers; memory %v → %v MiB, peak %v, growth %v; reads %v ms",
		o.Offered, o.Capacity, o.Sent, o.Acknowledged, o.Refused, o.Refusal, o.Silent, o.HungUp, o.Other, o.Memory.Start, o.Memory.End, o.Memory.Peak, o.Memory.Growth, o.Reads)
}

// overload offers both receivers a multiple of their capacity.
func (s *ingest) overload(ctx context.Context) error {
	if s.cmd.Overload == 0 {
		return nil
	}
	s.overloads = map[string]overloadFigures{}
	url := fmt.Sprintf("%s&commit_delay=%d&commit_siblings=0", s.cluster.URL(oursDatabase), slowCommit.Microseconds())
	slow, slowAddr, err := s.system.serve("slow", "callback", launch.Deployment{Database: url},
		"AIVEDIO_DATABASE_CALLBACK_CONNS="+strconv.Itoa(slowConns), "AIVEDIO_CALLBACK_BATCH="+strconv.Itoa(slowBatch))
	if err != nil {
		return err
	}
	calm, err := s.intakeOf(ctx, slow, slowAddr, 3*time.Second)
	if err != nil {
		return err
	}
	full := median(each(s.rounds, func(rd ingestRound) figure { return rd.Ours.PerSecond }))
	for _, part := range []struct {
		name     string
		process  *launch.Process
		addr     string
		capacity figure
	}{{overloadDatabase, slow, slowAddr, calm.PerSecond}, {overloadCPU, s.system.callback, s.system.callbackAddr, full}} {
		s.std.say("overload (%s): %v times %v per second", part.name, s.cmd.Factor, part.capacity)
		if s.overloads[part.name], err = s.flood(ctx, part.process, part.addr, part.capacity); err != nil {
			return err
		}
	}
	return nil
}

// flood offers a receiver a multiple of its capacity.
func (s *ingest) flood(ctx context.Context, p *launch.Process, addr string, capacity figure) (out overloadFigures, err error) {
	d := time.Duration(s.cmd.Overload) * time.Second
	rate := float64(capacity) * s.cmd.Factor
	v, err := s.arm(ctx, addr, s.people.tasks, int(min(rate, sentPerSecond)*d.Seconds()))
	if err != nil {
		return out, err
	}
	if err := errors.Join(s.cluster.settle(ctx), s.system.start(ctx, p)); err != nil {
		return out, errors.Join(err, v.drop())
	}
	stopReads := s.reads.run(ctx)
	stopMemory := watchMemory(ctx, p.PID())
	f, err := v.fire(ctx, order{Conns: overloadConns, For: d, Rate: rate, Timeout: impatience})
	memory := stopMemory()
	read, errRead := stopReads()
	if err := errors.Join(err, errRead); err != nil {
		return out, err
	}
	s.note(f)
	refused := func(status int16) bool { return status == 503 }
	n := f.count(acknowledged)
	out = overloadFigures{
		Capacity: capacity, Offered: figure(rate), Sent: perSecond(len(f.Status), f.Lasted), Acknowledged: perSecond(n, f.Lasted),
		Refused: f.count(refused), Refusal: quantilesOf(f.times(refused, f.Took)), HungUp: f.count(func(s int16) bool { return s == 0 }),
		Memory: memoryOf(memory), Reads: quantilesOf(read),
	}
	out.Other = len(f.Status) - n - out.Refused - out.HungUp
	for i, status := range f.Status {
		if refused(status) && !f.Retry[i] {
			out.Silent++
		}
	}
	return out, s.system.stop(p)
}

// watchMemory samples the resident memory of a process in MiB until it is stopped.
func watchMemory(ctx context.Context, pid int) (stop func() []figure) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan []figure, 1)
	go func() {
		samples := []figure{residentMiB(pid)}
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				samples = append(samples, residentMiB(pid))
			case <-ctx.Done():
				done <- samples
				return
			}
		}
	}()
	return func() []figure { cancel(); return <-done }
}

// memoryOf sums samples up.
func memoryOf(samples []figure) memoryFigures {
	var m memoryFigures
	if len(samples) == 0 {
		return m
	}
	m.Start, m.End = samples[0], samples[len(samples)-1]
	m.Peak = slices.Max(samples)
	half := (len(samples) + 1) / 2
	if early := slices.Max(samples[:half]); early > 0 && half < len(samples) {
		m.Growth = slices.Max(samples[half:]) / early
	}
	return m
}

// residentMiB is 0 where there is no /proc.
func residentMiB(pid int) figure {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "statm"))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseFloat(fields[1], 64)
	if err != nil {
		return 0
	}
	return figure(pages * float64(os.Getpagesize()) / (1 << 20))
}
