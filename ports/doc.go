// Package ports holds the contracts between the use cases and the world: what a
// store, a bus, a notifier, a quota, a vendor and a media store promise. A
// "port" here is such a contract, never an HTTP handler.
//
// Every method is safe for concurrent use unless it says otherwise, takes the
// context first and returns when it ends. The conformance suites in ports/porttest
// are these comments as tests; the memory adapter and the real one run the same.
package ports
