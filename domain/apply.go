package domain

import "time"

// Apply is the only function that decides.
func Apply(task Task, attempt Attempt, in Input, now time.Time) (Decision, error) {
	return Decision{Task: task, Attempt: attempt}, nil
}

// Create is the decision that opens a task with its first attempt.
func Create(task Task, attempt Attempt, now time.Time) Decision {
	return Decision{Task: task, Attempt: attempt}
}
