package pgstore

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/aivedio/aivedio/adapters/pgstore/internal/dbgen"
	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// world is what a transaction holds locked, as it stands after the items so far:
// several items of one task see each other here before anything is written.
type world struct {
	tasks      map[domain.TaskID]domain.Task
	attempts   map[domain.AttemptID]domain.Attempt
	tokens     map[string]domain.AttemptID
	vendors    map[vendorKey]domain.AttemptID
	clients    map[clientKey]domain.AttemptID
	operations map[domain.OperationID]lease
	requests   map[requestKey]request
	// balances holds what is available, only of tenants that may reserve.
	balances map[domain.TenantID]int64
}

// vendorKey is how a vendor names a job: unique within an account.
type vendorKey struct{ provider, account, id string }

type clientKey struct{ provider, id string }

// requestKey is an idempotency key within its tenant and scope.
type requestKey struct {
	tenant     domain.TenantID
	scope, key string
}

// request is what a known idempotency key led to.
type request struct {
	bodyHash []byte
	task     domain.TaskID
}

// lease is who holds an operation.
type lease struct {
	holder domain.ID
	open   bool
}

func newWorld() *world {
	return &world{
		tasks: map[domain.TaskID]domain.Task{}, attempts: map[domain.AttemptID]domain.Attempt{},
		tokens: map[string]domain.AttemptID{}, vendors: map[vendorKey]domain.AttemptID{}, clients: map[clientKey]domain.AttemptID{},
		operations: map[domain.OperationID]lease{}, requests: map[requestKey]request{}, balances: map[domain.TenantID]int64{},
	}
}

// load finds and locks everything that the items are about: tasks, attempts,
// operations, accounts, each in the order of their ids, always in this order.
// Requests are read behind the locks, where a repetition waits for the first.
func (w *world) load(ctx context.Context, q *dbgen.Queries, items []ports.Item, now time.Time) error {
	if len(items) == 0 {
		return nil
	}
	m, err := w.find(ctx, q, items)
	if err != nil {
		return err
	}
	if err := w.lock(ctx, q, m); err != nil {
		return err
	}
	if err := w.lockOperations(ctx, q, items); err != nil {
		return err
	}
	if err := w.lockAccounts(ctx, q, items); err != nil {
		return err
	}
	return w.readRequests(ctx, q, items, now)
}

// meant is what a batch is about: attempts with their tasks, and tasks whose
// current attempt is needed as well.
type meant struct{ attempts, tasks, current []pgtype.UUID }

// find asks who is meant by the names in the items.
func (w *world) find(ctx context.Context, q *dbgen.Queries, items []ports.Item) (m meant, err error) {
	var p dbgen.AttemptResolveParams
	for i, item := range items {
		ref, ord := item.Ref, int32(i)
		if !ref.AttemptID.IsZero() {
			p.IDOrds, p.Ids = append(p.IDOrds, ord), append(p.Ids, uid(ref.AttemptID.ID))
		}
		if !ref.TaskID.IsZero() {
			m.current = append(m.current, uid(ref.TaskID.ID))
		}
		if len(ref.TokenHash) > 0 {
			p.TokenOrds, p.TokenHashes = append(p.TokenOrds, ord), append(p.TokenHashes, ref.TokenHash)
		}
		if ref.ProviderTaskID != "" {
			p.VendorOrds, p.VendorProviders = append(p.VendorOrds, ord), append(p.VendorProviders, ref.Provider)
			p.VendorAccounts, p.VendorTaskIds = append(p.VendorAccounts, ref.AccountID), append(p.VendorTaskIds, ref.ProviderTaskID)
		}
		if ref.ClientRequestID != "" {
			p.ClientOrds, p.ClientProviders = append(p.ClientOrds, ord), append(p.ClientProviders, ref.Provider)
			p.ClientRequestIds = append(p.ClientRequestIds, ref.ClientRequestID)
		}
	}
	rows, err := q.AttemptResolve(ctx, &p)
	if err != nil {
		return m, err
	}
	for _, r := range rows {
		id, ref := domain.AttemptID{ID: idOf(r.ID)}, items[r.Ord].Ref
		switch r.How {
		case "token":
			w.tokens[string(ref.TokenHash)] = id
		case "vendor":
			w.vendors[vendorKey{ref.Provider, ref.AccountID, ref.ProviderTaskID}] = id
		case "client":
			w.clients[clientKey{ref.Provider, ref.ClientRequestID}] = id
		}
		m.attempts, m.tasks = append(m.attempts, r.ID), append(m.tasks, r.TaskID)
		if items[r.Ord].Idempotency != nil { // a replay shows the task as it is now
			m.current = append(m.current, r.TaskID)
		}
	}
	return m, nil
}

func (w *world) lock(ctx context.Context, q *dbgen.Queries, m meant) error {
	if len(m.tasks)+len(m.current) == 0 {
		return nil
	}
	taskRows, err := q.TaskLock(ctx, slices.Concat(m.tasks, m.current))
	if err != nil {
		return err
	}
	for _, r := range taskRows {
		t := taskOf(r)
		w.tasks[t.ID] = t
	}
	attemptRows, err := q.AttemptLock(ctx, m.attempts, m.current)
	if err != nil {
		return err
	}
	for _, r := range attemptRows {
		a, err := attemptOf(r)
		if err != nil {
			return err
		}
		w.attempts[a.ID] = a
	}
	return nil
}

func (w *world) lockOperations(ctx context.Context, q *dbgen.Queries, items []ports.Item) error {
	var ids []pgtype.UUID
	for _, item := range items {
		if item.Operation != nil {
			ids = append(ids, uid(item.Operation.ID.ID))
		}
	}
	if len(ids) == 0 {
		return nil
	}
	rows, err := q.OperationLock(ctx, ids)
	if err != nil {
		return err
	}
	for _, r := range rows {
		w.operations[domain.OperationID{ID: idOf(r.ID)}] = lease{holder: idOf(r.Lease), open: r.Status == operationPending}
	}
	return nil
}

// lockAccounts locks the accounts that a retry may reserve from. Other movements
// need no balance: their accounts are locked with the last statements.
func (w *world) lockAccounts(ctx context.Context, q *dbgen.Queries, items []ports.Item) error {
	var tenants []pgtype.UUID
	for _, item := range items {
		if item.Input.Kind != domain.InputRetryRequested {
			continue
		}
		if id, ok := w.taskOf(item.Ref); ok {
			tenants = append(tenants, uid(w.tasks[id].TenantID.ID))
		}
	}
	if len(tenants) == 0 {
		return nil
	}
	rows, err := q.AccountLock(ctx, tenants)
	if err != nil {
		return err
	}
	for _, r := range rows {
		w.balances[domain.TenantID{ID: idOf(r.TenantID)}] = r.Available
	}
	return nil
}

// taskOf is the task that a Ref leads to, as far as it is known.
func (w *world) taskOf(ref ports.Ref) (domain.TaskID, bool) {
	if !ref.TaskID.IsZero() {
		_, ok := w.tasks[ref.TaskID]
		return ref.TaskID, ok
	}
	attempt, _, err := w.resolve(ref)
	return attempt.TaskID, err == nil && !attempt.TaskID.IsZero()
}

func (w *world) readRequests(ctx context.Context, q *dbgen.Queries, items []ports.Item, now time.Time) error {
	p := dbgen.IdempotencyGetParams{Now: at(now)}
	for i, item := range items {
		if id := item.Idempotency; id != nil {
			p.Ords, p.TenantIds = append(p.Ords, int32(i)), append(p.TenantIds, required(id.TenantID.ID))
			p.Scopes, p.Keys = append(p.Scopes, id.Scope), append(p.Keys, id.Key)
		}
	}
	if len(p.Ords) == 0 {
		return nil
	}
	rows, err := q.IdempotencyGet(ctx, &p)
	if err != nil {
		return err
	}
	for _, r := range rows {
		task := domain.TaskID{ID: idOf(r.TaskID)}
		w.requests[keyOf(items[r.Ord].Idempotency)] = request{bodyHash: r.BodyHash, task: task}
		if _, ok := w.tasks[task]; !ok {
			if err := w.show(ctx, q, r.TaskID); err != nil {
				return err
			}
		}
	}
	return nil
}

// show reads the task of a repeated request without a lock: it is only shown, and
// an account is locked already, behind which no task may be.
func (w *world) show(ctx context.Context, q *dbgen.Queries, id pgtype.UUID) error {
	row, err := q.TaskView(ctx, id)
	if err != nil {
		return missing("task", err)
	}
	task := taskOf(row.GenerationTask)
	attempt, err := attemptOf(row.TaskAttempt)
	if err != nil {
		return err
	}
	w.tasks[task.ID], w.attempts[attempt.ID] = task, attempt
	return nil
}

func keyOf(id *ports.Idempotency) requestKey { return requestKey{id.TenantID, id.Scope, id.Key} }

// resolve finds the attempt that a Ref names. The reason is empty when it is
// found, identity_mismatch (with the attempt that was named first) or orphan
// otherwise. ErrNotFound is for our own ids, which cannot be early or foreign.
func (w *world) resolve(ref ports.Ref) (domain.Attempt, domain.Reason, error) {
	named, err := w.ownWord(ref)
	if err != nil {
		return domain.Attempt{}, "", err
	}
	named = append(named, w.vendorsWord(ref)...)
	if len(named) == 0 {
		return domain.Attempt{}, domain.ReasonOrphan, nil
	}
	first := w.attempts[named[0]]
	if slices.ContainsFunc(named, func(id domain.AttemptID) bool { return id != first.ID }) {
		return first, domain.ReasonIdentityMismatch, nil
	}
	return first, "", nil
}

// ownWord lists the attempts that our own ids name.
func (w *world) ownWord(ref ports.Ref) ([]domain.AttemptID, error) {
	var named []domain.AttemptID
	if !ref.AttemptID.IsZero() {
		a, ok := w.attempts[ref.AttemptID]
		if !ok || !w.owns(ref.ProjectID, a.TaskID) {
			return nil, fmt.Errorf("attempt: %w", ports.ErrNotFound)
		}
		named = append(named, a.ID)
		if a.TaskID == ref.TaskID {
			return named, nil // the task is named as the owner, the attempt need not be current
		}
	}
	if !ref.TaskID.IsZero() {
		t, ok := w.tasks[ref.TaskID]
		if !ok || !w.owns(ref.ProjectID, t.ID) {
			return nil, fmt.Errorf("task: %w", ports.ErrNotFound)
		}
		named = append(named, t.CurrentAttemptID)
	}
	return named, nil
}

// owns reports whether the project, when given, holds the task.
func (w *world) owns(project domain.ProjectID, task domain.TaskID) bool {
	return project.IsZero() || w.tasks[task].ProjectID == project
}

// vendorsWord lists the attempts that a vendor's names lead to. An unknown name
// says nothing: a delivery may be faster than the answer to the submit.
func (w *world) vendorsWord(ref ports.Ref) []domain.AttemptID {
	var named []domain.AttemptID
	if id, ok := w.tokens[string(ref.TokenHash)]; ok && len(ref.TokenHash) > 0 {
		named = append(named, id)
	}
	if id, ok := w.vendors[vendorKey{ref.Provider, ref.AccountID, ref.ProviderTaskID}]; ok && ref.ProviderTaskID != "" {
		named = append(named, id)
	}
	if id, ok := w.clients[clientKey{ref.Provider, ref.ClientRequestID}]; ok && ref.ClientRequestID != "" {
		named = append(named, id)
	}
	return named
}

// know makes an attempt's names known to the later items.
func (w *world) know(a domain.Attempt, tokenHash []byte) {
	w.attempts[a.ID] = a
	if len(tokenHash) > 0 {
		w.tokens[string(tokenHash)] = a.ID
	}
	if a.ProviderTaskID != "" {
		w.vendors[vendorKey{a.Provider, a.AccountID, a.ProviderTaskID}] = a.ID
	}
	w.clients[clientKey{a.Provider, a.ClientRequestID}] = a.ID
}
