// Package domain is the state machine of aivedio: what a task and its attempts
// are, and the one function, [Apply], that decides how news about them changes
// their state.
//
// The package is pure. It reads no clock, draws no random number, makes no
// identifier and knows no storage, network or vendor: time, jitter, policies and
// identifiers are arguments. The same arguments always give the same [Decision],
// which is why webhooks and polls cannot disagree about a task (specification,
// section 12.2, principle two) and why every rule can be tested without a
// database.
//
// docs/state-machine.md is generated from [Transitions] and the other lists here.
package domain

//go:generate go run ../internal/statedoc/cmd ../docs/state-machine.md
