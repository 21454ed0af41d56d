// Package porttest holds the conformance suites of the ports: what the comments
// in package ports promise, as tests. Every implementation runs the suite of its
// port, the one in memory and the one on a real service alike, so that a use case
// tested against memory meets the same behaviour in production.
//
// A suite takes a function that opens a fresh implementation. Where two of them
// may honestly differ, the fixture says so in its features or leaves a hook nil,
// and the suite skips or relaxes the tests concerned.
package porttest
