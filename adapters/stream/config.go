package stream

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/aivedio/aivedio/ports"
)

// Config is what a [Hub] needs. Zero durations and numbers take the defaults
// named beside them.
type Config struct {
	// Events and Notifier are required.
	Events   ports.Events
	Notifier ports.Notifier
	// Logger takes what a loop swallowed; slog.Default when nil.
	Logger *slog.Logger
	// Now is the clock of heartbeats and of the delta query; time.Now when nil.
	Now func() time.Time
	// Rand draws from [0, 1) for every jitter; math/rand when nil.
	Rand func() float64

	// MaxConnections bounds the clients of this gateway (15,000), MaxPerProject
	// those of one project (5,000).
	MaxConnections int
	MaxPerProject  int
	// Pending bounds the frames that wait while a client still reads its history
	// (256), Queue those of a client that is live (256).
	Pending int
	Queue   int
	// ReadBatch is the number of events in one read of the store (500).
	ReadBatch int
	// Hold is how long frames that came out of order wait for the missing one
	// before the store is read (50 ms).
	Hold time.Duration
	// Delta is the time between two delta queries (5 s), DeltaUnhealthy while the
	// notifier is away (1 s), DeltaOverlap how far each looks back behind the
	// newest event it has seen (15 s; longer than any transaction).
	Delta          time.Duration
	DeltaUnhealthy time.Duration
	DeltaOverlap   time.Duration
	// Heartbeat is the longest silence on an SSE stream (25 s).
	Heartbeat time.Duration
	// WriteTimeout ends a connection whose client takes nothing (10 s).
	WriteTimeout time.Duration
	// WatchTimeout bounds the wait for a confirmed subscription (2 s); after it
	// the client is served all the same, by the delta query.
	WatchTimeout time.Duration
	// ReadTimeout bounds one read of the store (5 s).
	ReadTimeout time.Duration
	// AuthEvery is the time between two checks of a live client's right (1 s). With
	// what the check itself remembers it bounds how long a stream outlives its key.
	AuthEvery time.Duration
	// Wait is the longest a long-poll may ask to wait (60 s).
	Wait time.Duration
	// DrainWindow is the time over which a drain spreads its moves (10 s).
	DrainWindow time.Duration

	// Failpoint, when set, is called in a client's goroutine at the points of its
	// way from subscription to live delivery. For tests.
	Failpoint func(Point)
}

// Point is a moment between subscription and live delivery.
type Point string

// The points, in their order; the windows lie between them.
const (
	// PointRegistered: frames are buffered from now on.
	PointRegistered Point = "registered"
	// PointWatched: the notifier has confirmed the project.
	PointWatched Point = "watched"
	// PointRead: a page of history is read, and not yet written.
	PointRead Point = "read"
	// PointWritten: it is written, and the client has not joined the live ones.
	PointWritten Point = "written"
	// PointDrained: what came meanwhile is written; the client is live.
	PointDrained Point = "drained"
)

// Points lists every point in order.
func Points() []Point {
	return []Point{PointRegistered, PointWatched, PointRead, PointWritten, PointDrained}
}

// reached calls the failpoint.
func (c Config) reached(p Point) {
	if c.Failpoint != nil {
		c.Failpoint(p)
	}
}

// WithDefaults returns a copy with every zero field set.
func (c Config) WithDefaults() Config {
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Rand == nil {
		c.Rand = rand.Float64
	}
	c.MaxConnections = cmp.Or(c.MaxConnections, 15_000)
	c.MaxPerProject = cmp.Or(c.MaxPerProject, 5_000)
	c.Pending = cmp.Or(c.Pending, 256)
	c.Queue = cmp.Or(c.Queue, 256)
	c.ReadBatch = cmp.Or(c.ReadBatch, 500)
	c.Hold = cmp.Or(c.Hold, 50*time.Millisecond)
	c.Delta = cmp.Or(c.Delta, 5*time.Second)
	c.DeltaUnhealthy = cmp.Or(c.DeltaUnhealthy, time.Second)
	c.DeltaOverlap = cmp.Or(c.DeltaOverlap, 15*time.Second)
	c.Heartbeat = cmp.Or(c.Heartbeat, 25*time.Second)
	c.WriteTimeout = cmp.Or(c.WriteTimeout, 10*time.Second)
	c.WatchTimeout = cmp.Or(c.WatchTimeout, 2*time.Second)
	c.ReadTimeout = cmp.Or(c.ReadTimeout, 5*time.Second)
	c.AuthEvery = cmp.Or(c.AuthEvery, time.Second)
	c.Wait = cmp.Or(c.Wait, time.Minute)
	c.DrainWindow = cmp.Or(c.DrainWindow, 10*time.Second)
	return c
}

// validate joins every fault of the configuration.
func (c Config) validate() error {
	var faults []error
	if c.Events == nil {
		faults = append(faults, errors.New("stream: Events is missing"))
	}
	if c.Notifier == nil {
		faults = append(faults, errors.New("stream: Notifier is missing"))
	}
	for _, n := range []struct {
		name  string
		value int
	}{
		{"MaxConnections", c.MaxConnections}, {"MaxPerProject", c.MaxPerProject},
		{"Pending", c.Pending}, {"Queue", c.Queue}, {"ReadBatch", c.ReadBatch},
	} {
		if n.value < 1 {
			faults = append(faults, fmt.Errorf("stream: %s is %d, it must be at least 1", n.name, n.value))
		}
	}
	for _, d := range []struct {
		name  string
		value time.Duration
	}{
		{"Hold", c.Hold}, {"Delta", c.Delta}, {"DeltaUnhealthy", c.DeltaUnhealthy}, {"DeltaOverlap", c.DeltaOverlap},
		{"Heartbeat", c.Heartbeat}, {"WriteTimeout", c.WriteTimeout}, {"WatchTimeout", c.WatchTimeout},
		{"ReadTimeout", c.ReadTimeout}, {"AuthEvery", c.AuthEvery}, {"Wait", c.Wait}, {"DrainWindow", c.DrainWindow},
	} {
		if d.value < 0 {
			faults = append(faults, fmt.Errorf("stream: %s is %s, it must be positive", d.name, d.value))
		}
	}
	return errors.Join(faults...)
}

// spread is a duration between (1−part)·d and d, so that clients do not march in
// step.
func (c Config) spread(d time.Duration, part float64) time.Duration {
	return d - time.Duration(float64(d)*part*c.Rand())
}

// between is a duration between low and high.
func (c Config) between(low, high time.Duration) time.Duration {
	return low + time.Duration(float64(high-low)*c.Rand())
}
