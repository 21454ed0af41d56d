// Package e2e holds the tests that run the built binary as several processes
// against real services, and what they share.
package e2e
