package main

import (
	"bufio"
	"context"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/aivedio/aivedio/internal/e2e/load"
)

// loadCmd is the vendor in a process of its own: it signs what it is told on the
// first line of its input, says "ready", sends on the second line, and prints what
// came back. So the load's garbage collector and scheduler are not those of what
// watches, and its CPU can be told apart.
type loadCmd struct{}

// ammunition is the first line: deliveries to sign.
type ammunition struct {
	// Host is the receiver's address, Secret signs.
	Host   string
	Secret string
	// Count deliveries are made, round robin over the tasks.
	Count int
	Tasks []target
	// Progress is what each delivery says, in percent.
	Progress int
	// Began is when the vendor started every job, in whole milliseconds: all news of
	// a job carry the same vendor time, as Replicate's do.
	Began time.Time
}

// target is a task as its vendor knows it.
type target struct {
	// Task is the vendor's id, Path that of the callback address.
	Task, Path string
}

// order is the second line: how to send.
type order struct {
	Conns int
	// For bounds the time, Rate the deliveries per second; a rate of 0 sends each
	// as soon as the answer before it has come.
	For  time.Duration
	Rate float64
	// Timeout bounds one exchange; 15 s when zero.
	Timeout time.Duration
}

// shots is what came back, one element per delivery that was sent. Times are in
// nanoseconds.
type shots struct {
	// Number is that of the message id, Index that of the delivery.
	Number []int64
	Index  []int32
	Status []int16
	// Retry: the answer said when to come again.
	Retry []bool
	// Due is a Unix time; Took is from the first byte sent to the answer, Waited
	// from Due to the answer.
	Due, Took, Waited []int64
	// Lasted is from the first request to the last answer, CPU what this process
	// used meanwhile, in seconds.
	Lasted time.Duration
	CPU    float64
}

// payloadSize is the length of a delivery's body in bytes.
const payloadSize = 600

// messageID is the id of a delivery: its number is random in the way of the peer's,
// which is the same work for the unique index.
func messageID(number int64) string { return fmt.Sprintf("msg_%024d", number) }

// Run serves one order.
func (loadCmd) Run(ctx context.Context, std output) error {
	in := bufio.NewReader(os.Stdin)
	var a ammunition
	if err := readLine(in, &a); err != nil {
		return err
	}
	deliveries, numbers, err := a.sign()
	if err != nil {
		return err
	}
	if _, err := io.WriteString(std.out, "ready\n"); err != nil {
		return err
	}
	var o order
	if err := readLine(in, &o); err != nil {
		if errors.Is(err, io.EOF) {
			return nil // nothing is to be sent after all
		}
		return err
	}
	out := bufio.NewWriter(std.out)
	if err := gob.NewEncoder(out).Encode(o.send(ctx, a.Host, deliveries, numbers)); err != nil {
		return err
	}
	return out.Flush()
}

func readLine(in *bufio.Reader, into any) error {
	line, err := in.ReadBytes('\n')
	if err != nil {
		return err
	}
	return json.Unmarshal(line, into)
}

func (a ammunition) sign() ([]*load.Delivery, []int64, error) {
	deliveries, numbers := make([]*load.Delivery, a.Count), make([]int64, a.Count)
	now := time.Now()
	sender := load.Sender{Host: a.Host, Secret: a.Secret}
	for i := range deliveries {
		t := a.Tasks[i%len(a.Tasks)]
		numbers[i] = rand.Int64N(9e18)
		d, err := sender.Sign(t.Path, messageID(numbers[i]), load.Job{
			ID: t.Task, Progress: a.Progress, Began: a.Began, Size: payloadSize,
		}, now)
		if err != nil {
			return nil, nil, err
		}
		deliveries[i] = d
	}
	return deliveries, numbers, nil
}

// send sends until the time is over or every delivery has been sent.
func (o order) send(ctx context.Context, addr string, deliveries []*load.Delivery, numbers []int64) shots {
	place := make(map[*load.Delivery]int32, len(deliveries))
	for i, d := range deliveries {
		place[d] = int32(i)
	}
	per := make([]shots, o.Conns)
	var next atomic.Int64
	ctx, cancel := context.WithTimeout(ctx, o.For)
	defer cancel()
	start, used := time.Now(), ownCPU()
	load.Run{
		Addr: addr, Conns: o.Conns, Rate: o.Rate, Timeout: o.Timeout,
		Next: func(int) *load.Delivery {
			if n := next.Add(1) - 1; n < int64(len(deliveries)) {
				return deliveries[n]
			}
			return nil
		},
		Done: func(n int, r load.Result) { per[n].add(place[r.Delivery], numbers, r) },
	}.Do(ctx)
	all := shots{Lasted: time.Since(start), CPU: (ownCPU() - used).Seconds()}
	for i := range per {
		all.join(&per[i])
	}
	return all
}

func (s *shots) add(index int32, numbers []int64, r load.Result) {
	s.Number, s.Index = append(s.Number, numbers[index]), append(s.Index, index)
	s.Status, s.Retry = append(s.Status, int16(r.Status)), append(s.Retry, r.RetryAfter)
	s.Due = append(s.Due, r.Due.UnixNano())
	s.Took, s.Waited = append(s.Took, int64(r.Took)), append(s.Waited, int64(r.Waited))
}

func (s *shots) join(o *shots) {
	s.Number, s.Index = append(s.Number, o.Number...), append(s.Index, o.Index...)
	s.Status, s.Retry = append(s.Status, o.Status...), append(s.Retry, o.Retry...)
	s.Due = append(s.Due, o.Due...)
	s.Took, s.Waited = append(s.Took, o.Took...), append(s.Waited, o.Waited...)
}

// ownCPU is what this process has used so far.
func ownCPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
