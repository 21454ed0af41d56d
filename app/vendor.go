package app

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// Vendors finds vendors without their create. It is what every role but the
// submitter holds: a [Vendor] hides its provider, so that not even a type
// assertion reaches Submit (I8).
type Vendors struct{ providers ports.Providers }

// NewVendors hides the create of the providers.
func NewVendors(providers ports.Providers) Vendors { return Vendors{providers: providers} }

// Vendor returns the vendor of the name.
func (v Vendors) Vendor(name string) (Vendor, bool) {
	if v.providers == nil {
		return Vendor{}, false
	}
	p, ok := v.providers.Provider(name)
	if !ok {
		return Vendor{}, false
	}
	return Vendor{provider: p}, true
}

// Names lists the configured vendors in order.
func (v Vendors) Names() []string { return v.providers.Names() }

// Accounts returns the accounts of a vendor, the default one first.
func (v Vendors) Accounts(name string) []ports.Account { return v.providers.Accounts(name) }

// Account returns one account of a vendor.
func (v Vendors) Account(name, id string) (ports.Account, bool) {
	for _, a := range v.providers.Accounts(name) {
		if a.ID == id {
			return a, true
		}
	}
	return ports.Account{}, false
}

// Policy is what the state machine has to know about a vendor, complete; the
// defaults for one that is not configured any more.
func (v Vendors) Policy(name string) domain.Policy {
	vendor, ok := v.Vendor(name)
	if !ok {
		return domain.DefaultPolicy()
	}
	return vendor.Policy()
}

// Vendor is a provider without its create.
type Vendor struct{ provider ports.Provider }

// Capabilities is the vendor as data.
func (v Vendor) Capabilities() ports.Capabilities { return v.provider.Capabilities() }

// Policy is what the state machine has to know, complete. A power counts when the
// vendor's data claim it and its adapter has it.
func (v Vendor) Policy() domain.Policy {
	p := v.provider.Capabilities().Policy.WithDefaults()
	_, cancels := v.provider.(ports.Canceler)
	_, looks := v.provider.(ports.Looker)
	p.CanCancel, p.CanLookup = p.CanCancel && cancels, p.CanLookup && looks
	return p
}

// Query asks for the state of a job. A panic of the adapter is a malformed
// answer.
func (v Vendor) Query(ctx context.Context, req ports.QueryRequest) (res ports.QueryResult, err error) {
	defer recoverAs(&err)
	return v.provider.Query(ctx, req)
}

// Verify proves a delivery. A panic of the adapter is ports.ErrUnavailable: it is
// our fault, so the vendor shall come again.
func (v Vendor) Verify(req ports.VerifyRequest) (d ports.Delivery, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: adapter panic: %v", ports.ErrUnavailable, p)
		}
	}()
	return v.provider.Verify(req)
}

// Decode reads a verified body. A panic of the adapter is an error.
func (v Vendor) Decode(row ports.InboxRow) (obs domain.Observation, foreign bool, err error) {
	defer recoverAs(&err)
	return v.provider.Decode(row)
}

// Cancel asks the vendor to stop a job; false in can when it has no such call.
func (v Vendor) Cancel(ctx context.Context, req ports.QueryRequest) (refused, can bool, err error) {
	canceler, can := v.provider.(ports.Canceler)
	if !can {
		return false, false, nil
	}
	defer recoverAs(&err)
	refused, err = canceler.Cancel(ctx, req)
	return refused, true, err
}

// Lookup finds a job by our own id; false in can when the vendor cannot.
func (v Vendor) Lookup(ctx context.Context, req ports.QueryRequest) (res ports.QueryResult, found, can bool, err error) {
	looker, can := v.provider.(ports.Looker)
	if !can {
		return ports.QueryResult{}, false, false, nil
	}
	defer recoverAs(&err)
	res, found, err = looker.Lookup(ctx, req)
	return res, found, true, err
}

// OutputRequest builds the download request of an output: the vendor's own where
// it has one, else a GET of the URL.
func (v Vendor) OutputRequest(ctx context.Context, req ports.QueryRequest, ref domain.OutputRef) (out *http.Request, err error) {
	defer recoverAs(&err)
	if opener, ok := v.provider.(ports.OutputOpener); ok {
		return opener.OutputRequest(ctx, req, ref)
	}
	out, err = http.NewRequestWithContext(ctx, http.MethodGet, ref.URL, nil)
	if err != nil { // its text would hold the URL, which is a secret
		return nil, &ports.ProviderError{Class: ports.ClassMalformed, Code: "bad_output_url"}
	}
	return out, nil
}

// recoverAs turns a panic of an adapter into a malformed answer: bytes from
// outside must not end a process.
func recoverAs(err *error) {
	if p := recover(); p != nil {
		*err = &ports.ProviderError{Class: ports.ClassMalformed, Code: "adapter_panic", Err: fmt.Errorf("adapter panic: %v", p)}
	}
}

// outcome is the label of a vendor call.
func outcome(err error) string {
	if err == nil {
		return "ok"
	}
	return string(providerError(err).Class)
}

// providerError reads the class of a failed call; anything foreign, a time-out of
// ours included, is a transport fault that proves nothing.
func providerError(err error) *ports.ProviderError {
	var pe *ports.ProviderError
	if errors.As(err, &pe) {
		return pe
	}
	return &ports.ProviderError{Class: ports.ClassTransport, Err: err}
}

// queryError is the state machine's view of a failed query.
func queryError(err error) *domain.QueryError {
	pe := providerError(err)
	class := domain.QueryTransport
	switch pe.Class {
	case ports.ClassThrottled:
		class = domain.QueryThrottled
	case ports.ClassAuth:
		class = domain.QueryAuth
	case ports.ClassNotFound:
		class = domain.QueryNotFound
	case ports.ClassMalformed, ports.ClassRejected:
		class = domain.QueryMalformed
	case ports.ClassTransport:
	}
	return &domain.QueryError{Class: class, RetryAfter: max(pe.RetryAfter, time.Duration(0))}
}
