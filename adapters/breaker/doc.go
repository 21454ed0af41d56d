// Package breaker counts the failed calls of one process with sony/gobreaker. What
// follows from a trip is decided in the domain and shared through the store.
package breaker
