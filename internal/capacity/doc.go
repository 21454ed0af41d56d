// Package capacity answers how much a deployment must carry and how many
// processes and machines that takes: the estimates of specification 12.11,
// each with the formula that led to it, and unit costs measured on a named
// machine. It is pure calculation and keeps no state, so everything in it is
// safe for concurrent use.
package capacity
