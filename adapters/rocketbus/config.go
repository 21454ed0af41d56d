package rocketbus

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"time"
)

// Config configures a [Bus]. NameServers is required.
type Config struct {
	// NameServers are host:port; a host name is resolved anew every two minutes.
	NameServers []string
	// Topic is created at start when it is missing. Default
	// "aivedio-task-events".
	Topic string
	// Queues is how many queues per broker a topic gets that is created. Default
	// 8. An existing topic keeps its own.
	Queues int
	// GroupPrefix begins the name of every group. Default "aivedio-".
	GroupPrefix string
	// Role names this process in the client ids that operators see. Default
	// "aivedio".
	Role string
	// BatchSize bounds the messages of one send, of one pull and of one call of
	// a handler. Default 256, at most 1024.
	BatchSize int
	// BatchBytes bounds the bodies of one send. Default 1 MiB; the broker's own
	// limit is 4 MiB.
	BatchBytes int
	// SendTimeout bounds one send, PublishTimeout a whole Publish beside its
	// context. Defaults 3 s and 5 s.
	SendTimeout, PublishTimeout time.Duration
	// HandlerTimeout bounds one call of a handler through its context. Default
	// 30 s; it must be shorter than a minute.
	HandlerTimeout time.Duration
	// Logger gets failures and, at lower levels, what the client library says,
	// for all buses of the process. Nil discards it.
	Logger *slog.Logger
}

// WithDefaults returns a copy with every zero field filled.
func (c Config) WithDefaults() Config {
	c.Topic = cmp.Or(c.Topic, "aivedio-task-events")
	c.Queues = cmp.Or(c.Queues, 8)
	c.GroupPrefix = cmp.Or(c.GroupPrefix, "aivedio-")
	c.Role = cmp.Or(c.Role, "aivedio")
	c.BatchSize = cmp.Or(c.BatchSize, 256)
	c.BatchBytes = cmp.Or(c.BatchBytes, 1<<20)
	c.SendTimeout = cmp.Or(c.SendTimeout, 3*time.Second)
	c.PublishTimeout = cmp.Or(c.PublishTimeout, 5*time.Second)
	c.HandlerTimeout = cmp.Or(c.HandlerTimeout, 30*time.Second)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// nameForm is what a broker accepts in the names of topics and groups.
var nameForm = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,100}$`)

// Validate reports every fault of a complete configuration.
func (c Config) Validate() error {
	var errs []error
	if len(c.NameServers) == 0 {
		errs = append(errs, errors.New("no name server is given"))
	}
	for _, n := range []string{c.Topic, c.GroupPrefix, c.Role} {
		if !nameForm.MatchString(n) {
			errs = append(errs, fmt.Errorf("the name %q may have letters, digits, _ and - only", n))
		}
	}
	if c.Queues < 1 || c.Queues > 1024 {
		errs = append(errs, fmt.Errorf("%d queues: want 1 to 1024", c.Queues))
	}
	if c.BatchSize < 1 || c.BatchSize > 1024 {
		errs = append(errs, fmt.Errorf("batch size %d: want 1 to 1024", c.BatchSize))
	}
	if c.BatchBytes < 1 || c.BatchBytes > 4<<20 {
		errs = append(errs, fmt.Errorf("batch bytes %d: want 1 to 4 MiB", c.BatchBytes))
	}
	if c.HandlerTimeout >= consumeTimeout {
		errs = append(errs, fmt.Errorf("handler time-out %v: want less than %v, after which the batch is sent anew", c.HandlerTimeout, consumeTimeout))
	}
	if c.SendTimeout > c.PublishTimeout {
		errs = append(errs, fmt.Errorf("send time-out %v is longer than the %v of a whole publish", c.SendTimeout, c.PublishTimeout))
	}
	return errors.Join(errs...)
}
