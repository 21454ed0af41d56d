// Package load is a vendor that sends signed deliveries as fast as it can, or at
// a given rate, over HTTP/1.1 keep-alive connections. It is light, so that on one
// machine the receiver is what is measured: requests are complete bytes before
// the clock starts, and an answer is read no further than needed.
package load
