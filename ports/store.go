package ports

// Store is everything that PostgreSQL does for the use cases. Each use case
// takes only the part it needs.
type Store interface {
	Transitions
	Inbox
	DeadLetters
	Work
	Durations
	Watches
	Reader
	Events
	Outbox
	OutboxDesk
	BusRetries
	Access
	Desk
	SweepLog
	Health
	WebhookHealth
}
