package domain

import (
	"fmt"
	"time"
)

// Apply decides what an input means for a task and the attempt that it is about.
// It is the only function that decides (I2): every source of news and every
// command comes here.
//
// The attempt must belong to the task; it need not be the current one. Apply
// changes nothing in place and is safe for concurrent use.
//
// An error is only the refusal of a command or an incomplete input
// ([ErrInvalidInput]); an observation always gets a verdict. With an error the
// Decision is empty.
func Apply(task Task, attempt Attempt, in Input, now time.Time) (Decision, error) {
	if attempt.TaskID != task.ID {
		return Decision{}, fmt.Errorf("%w: attempt %s is not of task %s", ErrInvalidInput, attempt.ID, task.ID)
	}
	c := begin(task, attempt, in, now)
	if err := c.digest(); err != nil {
		return Decision{}, err
	}
	return c.finish(), nil
}

// Create is the decision that opens a task: its first attempt, event 1 and the
// reservation. The caller fills identifiers, vendor, credits and policy of the
// project; everything that is state is set here.
func Create(task Task, attempt Attempt, now time.Time) Decision {
	task.Phase, task.Cancel, task.Stage = PhaseQueued, CancelNone, StageSubmitting
	task.CurrentAttemptID, task.AttemptCount = attempt.ID, 0
	task.CreatedAt, task.UpdatedAt = now, now
	c := begin(task, attempt, Input{}, now)
	c.source = SourceUser
	c.openAttempt(attempt)
	c.a = *c.d.NewAttempt
	d := c.finish()
	d.NewAttempt = nil
	return d
}

// missing says what an input lacks that its kind needs, "" when it is complete.
func (in Input) missing() string {
	switch {
	case in.Kind == InputObservation && in.Observation == nil:
		return "an observation without its news"
	case in.Kind == InputPollFailed && in.QueryError == nil:
		return "a failed query without its error"
	case (in.Kind == InputSubmitStarted || in.Kind == InputSubmitReplayed) && (in.Lease.IsZero() || in.LeaseUntil.IsZero()):
		return "a submit without its lease" // it would look expired while the vendor is called
	case in.Kind == InputMediaReady && in.AssetID.IsZero():
		return "a ready file without its asset"
	default:
		return ""
	}
}

// digest sends the input to the file of its noun.
func (c *change) digest() error {
	if lack := c.in.missing(); lack != "" {
		return fmt.Errorf("%w: %s", ErrInvalidInput, lack)
	}
	switch c.in.Kind {
	case InputObservation:
		c.observe(*c.in.Observation)
	case InputPollFailed:
		c.queryFailed(*c.in.QueryError)
	case InputLookupFailed:
		c.lookupFailed()
	case InputSubmitStarted, InputSubmitReplayed:
		c.submitStarted()
	case InputSubmitAccepted:
		c.submitAccepted()
	case InputSubmitNotSent:
		c.submitNotSent()
	case InputSubmitRejected:
		c.submitRejected()
	case InputSubmitUnknown:
		c.submitUnknown()
	case InputCancelRequested:
		return c.cancelRequested()
	case InputCancelAccepted, InputCancelRefused:
		c.cancelAnswered()
	case InputRetryRequested:
		return c.retry()
	case InputProgressDue:
		c.progressDue()
	case InputOverdue:
		c.overdue()
	case InputMediaStage:
		c.mediaStage()
	case InputMediaReady:
		c.mediaReady()
	case InputMediaFailed:
		c.mediaFailed()
	case InputResolution:
		return c.resolve()
	default:
		return fmt.Errorf("%w: unknown kind %q", ErrInvalidInput, c.in.Kind)
	}
	return nil
}
