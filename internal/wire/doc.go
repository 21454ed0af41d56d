// Package wire is the public form of domain values: TypeIDs, times, and the JSON
// of tasks, events and bus messages. Every surface (REST, streams, bus, command
// line) uses these shapes, so that one event looks the same wherever it is read.
package wire
