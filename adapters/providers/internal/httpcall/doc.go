// Package httpcall calls vendors over HTTP: one try, a bounded answer, no
// redirect, and every failure as a *ports.ProviderError.
//
// The hard part is a create whose answer never came. Only what proves that the
// vendor got nothing is called "not sent"; all else is unknown, since a second
// create would be a second bill.
package httpcall
