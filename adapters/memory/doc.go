// Package memory implements the ports within one process: the store, bus,
// notifier and quota of tests and of the simulation, and the bus and notifier of
// a development server. Nothing outlives the process.
package memory
