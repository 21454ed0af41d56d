package domain_test

import (
	"slices"
	"testing"
	"time"

	"github.com/aivedio/aivedio/domain"
)

// FuzzApply reads bytes as a sequence of inputs, four bytes each, and holds every
// decision against the invariants of the random tests:
//
//	byte 0   the kind of input
//	byte 1   what it says: a status, an error class, a stage, a resolution
//	byte 2   flags: source, trust, output, thin, lease, acceptance
//	byte 3   the seconds that pass before it, and in its high bits the attempt
func FuzzApply(f *testing.F) {
	for _, s := range fuzzSeeds() {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		w := newWorld(domain.LateSuccessKeep)
		if len(data)%2 == 1 {
			w = newWorld(domain.LateSuccessDiscard)
		}
		for code := range slices.Chunk(data[:min(len(data), 400)], 4) {
			if len(code) < 4 || len(w.attempts) > 20 {
				return
			}
			w.now = w.now.Add(time.Duration(code[3]&0x3f) * time.Second)
			i := int(code[3]>>6) % len(w.attempts)
			in := decodeInput(w, i, code)
			task, attempt := w.task, w.attempts[i]
			d, err := w.apply(i, in)
			if err != nil {
				continue
			}
			check(t, task, attempt, in, d)
			w.check(t)
		}
	})
}

// pick reads a byte as one of some values.
func pick[T any](b byte, from []T) T { return from[int(b)%len(from)] }

var words = []domain.Observed{domain.ObservedNone, domain.ObservedQueued, domain.ObservedRunning, domain.ObservedSucceeded, domain.ObservedFailed, domain.ObservedCanceled}

func decodeInput(w *world, i int, code []byte) domain.Input {
	says, flags := code[1], code[2]
	flag := func(n int) bool { return flags>>n&1 == 1 }
	in := domain.Input{
		Kind:    pick(code[0], domain.Kinds()),
		Policy:  domain.Policy{CanCancel: flag(0), CanLookup: flag(1), ReplaySafe: flag(2), Corrections: flags == 0xff},
		AssetID: domain.AssetID{ID: id(60)}, Stage: pick(says, domain.Stages()), ErrorClass: pick(says, domain.ErrorClasses()),
		AcceptPossibleDuplicate: flag(3), LeaseUntil: w.now.Add(30 * time.Second), ProviderTaskID: "job",
		QueryError: &domain.QueryError{Class: pick(says, domain.QueryClasses())},
		NewAttempt: &domain.Attempt{ID: domain.AttemptID{ID: id(byte(101 + len(w.attempts)))}, Provider: "sim", Credits: 7},
		Resolution: &domain.Resolution{
			Kind: pick(says, domain.ResolutionKinds()), ActionID: domain.ActionID{ID: id(70)}, ProviderTaskID: "job",
			Closing: pick(flags>>4, []domain.Closing{domain.ClosingSettled, domain.ClosingRefunded}),
		},
	}
	if a := w.attempts[i]; flag(4) {
		in.Lease = a.SubmitLease
	} else if flag(5) || in.Kind == domain.InputSubmitStarted {
		in.Lease = leaseMine
	}
	o := &domain.Observation{
		Status: pick(says, words), Source: pick(flags>>6, []domain.Source{domain.SourceWebhook, domain.SourcePoll, domain.SourceReconcile, domain.SourceSubmit}),
		Trust: pick(flags, domain.Trusts()), Thin: flag(5), ProviderTaskID: "job",
	}
	if flag(2) {
		o.Outputs, in.Resolution.Outputs = firstLinks, firstLinks
	}
	if percent := int(says); percent > 100 {
		o.Progress, in.Progress = &percent, &percent
	}
	if number := int64(says >> 4); flag(3) {
		o.ProviderSequence, o.SequenceKind = &number, pick(flags>>4, []domain.SequenceKind{domain.SequenceCounter, domain.SequenceTimestamp})
	}
	in.Observation = o
	return in
}

// fuzzSeeds are the stories from which the fuzzer starts: the usual way, an
// unknown submit with a retry, a cancel race, a contradiction with an adoption.
func fuzzSeeds() [][]byte {
	kind := func(k domain.Kind) byte { return byte(slices.Index(domain.Kinds(), k)) }
	word := func(o domain.Observed) byte { return byte(slices.Index(words, o)) }
	decide := func(r domain.ResolutionKind) byte { return byte(slices.Index(domain.ResolutionKinds(), r)) }
	const mine, authentic, withOutput, accept = 0x20, 0x00, 0x04, 0x08
	start := []byte{kind(domain.InputSubmitStarted), 0, mine, 1}
	accepted := []byte{kind(domain.InputSubmitAccepted), 0, mine, 1}
	saw := func(o domain.Observed, flags byte) []byte {
		return []byte{kind(domain.InputObservation), word(o), authentic | flags, 2}
	}
	ready := []byte{kind(domain.InputMediaReady), 0, 0, 1}
	return [][]byte{
		slices.Concat(start, accepted, saw(domain.ObservedRunning, 0), saw(domain.ObservedSucceeded, withOutput), ready),
		slices.Concat(start, []byte{kind(domain.InputSubmitUnknown), 0, mine, 1}, []byte{kind(domain.InputRetryRequested), 0, accept, 1}, saw(domain.ObservedRunning, 0)),
		slices.Concat(start, accepted, []byte{kind(domain.InputCancelRequested), 0, 1, 1}, saw(domain.ObservedSucceeded, withOutput), []byte{0}),
		slices.Concat(start, accepted, saw(domain.ObservedFailed, 0), saw(domain.ObservedSucceeded, withOutput), []byte{kind(domain.InputResolution), decide(domain.ResolveAdopt), withOutput, 1}, ready),
		slices.Concat(start, accepted, slices.Repeat([]byte{kind(domain.InputPollFailed), 0, 0, 30}, 6), []byte{kind(domain.InputOverdue), 0, 0, 1}),
	}
}
