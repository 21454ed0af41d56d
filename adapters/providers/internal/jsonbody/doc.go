// Package jsonbody reads the JSON that vendors send without believing in it:
// bounded depth and size, exact names, numbers that come as text and the
// reverse, nulls anywhere. A field of the wrong kind counts as absent, so that
// one odd field never costs the news in the others.
package jsonbody
