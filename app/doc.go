// Package app holds the use cases: what happens when a client submits, a vendor
// delivers, a timer comes due or a person decides. Each one is a struct that is
// given ports, a config struct and an [Env]; none knows a database, a
// protocol or a vendor.
//
// Commands ([Submit], [Receive], [Cancel], [Retry], [Resolve], [Access]) are
// called by the HTTP side. Roles ([Submitter], [Process], [Poll], [Relay],
// [Dispatch], [CancelSender], [Media], [Sweep]) run by themselves: Step does one
// bounded round, Run repeats it until its context ends. Of all of them only
// [Submitter] can call a vendor's create (I8).
package app
