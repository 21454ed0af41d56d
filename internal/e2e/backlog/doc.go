// Package backlog fills an outbox with many events and holds what a broker has
// got of them against what there was: order, gaps, losses, repeats. Benchmarks and
// end-to-end tests share it.
package backlog
