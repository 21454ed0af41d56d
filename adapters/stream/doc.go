// Package stream delivers the events of a project to its clients: Server-Sent
// Events and JSON long-poll over one cursor, from one [Hub] per gateway.
//
// Correctness never rests on the notifier. A client is registered before the
// store is read, so what is committed meanwhile waits in its buffer; within a
// project events leave in the order of their numbers, so a lost hint shows as a
// gap and is read from the store; and a delta query finds what left no gap
// behind (specification 12.10, 12.9.3).
package stream
