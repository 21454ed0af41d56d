package pgstore

import (
	"cmp"
	"reflect"
	"time"

	"github.com/aivedio/aivedio/adapters/pgstore/internal/dbgen"
	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/internal/wire"
	"github.com/aivedio/aivedio/ports"
)

// The statements take one array per column; these functions add a row to them.

// reserve gives every array of a statement's parameters room for n rows: arrays that
// grow by themselves were a tenth of the processor's CPU. params points to a struct.
func reserve(params any, n int) {
	v := reflect.ValueOf(params).Elem()
	for i := range v.NumField() {
		if f := v.Field(i); f.Kind() == reflect.Slice {
			f.Set(reflect.MakeSlice(f.Type(), 0, n))
		}
	}
}

func addAttempt(p *dbgen.AttemptUpdateManyParams, a domain.Attempt) {
	p.Ids, p.ProviderTaskIds = append(p.Ids, uid(a.ID.ID)), append(p.ProviderTaskIds, a.ProviderTaskID)
	p.Statuses, p.LastProviderSeqs = append(p.Statuses, string(a.Status)), append(p.LastProviderSeqs, sequence(a.LastSequence))
	p.LastProviderAts = append(p.LastProviderAts, atPtr(a.LastProviderAt))
	p.Progresses, p.ProgressAts = append(p.Progresses, percent(a.Progress)), append(p.ProgressAts, atPtr(a.ProgressAt))
	p.DeferredProgresses = append(p.DeferredProgresses, percent(a.DeferredProgress))
	p.DeferredUntils = append(p.DeferredUntils, atPtr(a.DeferredUntil))
	p.Outputs = append(p.Outputs, outputsText(a.Outputs))
	p.ErrorClasses, p.ErrorCodes = append(p.ErrorClasses, string(a.ErrorClass)), append(p.ErrorCodes, a.ErrorCode)
	p.SubmitLeases, p.SubmitLeaseUntils = append(p.SubmitLeases, uid(a.SubmitLease)), append(p.SubmitLeaseUntils, atPtr(a.SubmitLeaseUntil))
	p.NextSubmitAts, p.SubmitCounts = append(p.NextSubmitAts, atPtr(a.NextSubmitAt)), append(p.SubmitCounts, int32(a.SubmitCount))
	p.SubmittedAts = append(p.SubmittedAts, atPtr(a.SubmittedAt))
	p.PollLeases, p.PollLeaseUntils = append(p.PollLeases, uid(a.PollLease)), append(p.PollLeaseUntils, atPtr(a.PollLeaseUntil))
	p.NextPollAts, p.PollCounts = append(p.NextPollAts, atPtr(a.NextPollAt)), append(p.PollCounts, int32(a.PollCount))
	p.PollFailures, p.PollHintAts = append(p.PollFailures, int32(a.PollFailures)), append(p.PollHintAts, atPtr(a.PollHintAt))
	p.LastQueryAts, p.AdoptedBys = append(p.LastQueryAts, atPtr(a.LastQueryAt)), append(p.AdoptedBys, uid(a.AdoptedBy.ID))
	p.NextReconcileAts = append(p.NextReconcileAts, atPtr(a.NextReconcileAt))
	p.ReconcileCounts = append(p.ReconcileCounts, int32(a.ReconcileCount))
	p.Overdues, p.Conflicteds = append(p.Overdues, a.Overdue), append(p.Conflicteds, a.Conflicted)
	p.Credits, p.Closings = append(p.Credits, a.Credits), append(p.Closings, string(a.Closing))
	p.UpdatedAts, p.TerminalAts = append(p.UpdatedAts, at(a.UpdatedAt)), append(p.TerminalAts, atPtr(a.TerminalAt))
}

func attemptInsert(a domain.Attempt, tokenHash []byte) *dbgen.AttemptInsertParams {
	return &dbgen.AttemptInsertParams{
		ID: uid(a.ID.ID), TaskID: uid(a.TaskID.ID), AttemptNo: int32(a.No), Provider: a.Provider, Model: a.Model,
		AccountID: a.AccountID, BaseUrl: a.BaseURL, ClientRequestID: a.ClientRequestID, ProviderTaskID: textPtr(a.ProviderTaskID),
		TokenHash: tokenHash, Status: string(a.Status), NextSubmitAt: a.NextSubmitAt, NextReconcileAt: a.NextReconcileAt,
		Credits: a.Credits, Closing: string(cmp.Or(a.Closing, domain.ClosingOpen)), CreatedAt: at(a.CreatedAt), UpdatedAt: at(a.UpdatedAt),
	}
}

func addObserved(p *dbgen.ObservationInsertManyParams, ord int32, o observed, now time.Time) {
	obs := domain.Observation{ReceivedAt: now, Progress: o.input.Progress, ErrorClass: o.input.ErrorClass, ErrorCode: o.input.ErrorCode, ErrorMessage: o.input.ErrorMessage, ProviderTaskID: o.input.ProviderTaskID}
	if o.input.Observation != nil {
		obs = *o.input.Observation
		obs.ReceivedAt = firstTime(obs.ReceivedAt, now)
	}
	d := o.decision
	p.Ords, p.InboxIds = append(p.Ords, ord), append(p.InboxIds, o.inboxID)
	p.TaskIds, p.AttemptIds = append(p.TaskIds, uid(d.Task.ID.ID)), append(p.AttemptIds, uid(d.Attempt.ID.ID))
	p.Kinds, p.Sources = append(p.Kinds, string(o.input.Kind)), append(p.Sources, string(o.source))
	p.Trusts, p.Providers = append(p.Trusts, string(obs.Trust)), append(p.Providers, cmp.Or(obs.Provider, d.Attempt.Provider))
	p.ProviderEventIds, p.DedupKeys = append(p.ProviderEventIds, obs.ProviderEventID), append(p.DedupKeys, obs.DedupKey)
	p.ProviderTaskIds = append(p.ProviderTaskIds, obs.ProviderTaskID)
	p.ClientRequestIds = append(p.ClientRequestIds, obs.ClientRequestID)
	p.ProviderSequences = append(p.ProviderSequences, sequence(obs.ProviderSequence))
	p.ProviderOccurredAts = append(p.ProviderOccurredAts, atPtr(obs.ProviderOccurredAt))
	p.ReceivedAts = append(p.ReceivedAts, at(obs.ReceivedAt))
	p.Statuses, p.Stages = append(p.Statuses, string(obs.Status)), append(p.Stages, string(d.Task.Stage))
	p.Progresses = append(p.Progresses, percent(obs.Progress))
	p.ErrorClasses, p.ErrorCodes = append(p.ErrorClasses, string(obs.ErrorClass)), append(p.ErrorCodes, obs.ErrorCode)
	p.ErrorMessages, p.NextAts = append(p.ErrorMessages, obs.ErrorMessage), append(p.NextAts, atPtr(wire.NextTry(o.input.Kind, d.Attempt)))
	p.Outputs, p.PayloadHashes = append(p.Outputs, outputsText(obs.Outputs)), append(p.PayloadHashes, obs.PayloadHash)
	p.TraceIds = append(p.TraceIds, uid(obs.TraceID.ID))
	p.Verdicts, p.Reasons = append(p.Verdicts, string(d.Verdict.Kind)), append(p.Reasons, string(d.Verdict.Reason))
	p.VersionsBefore, p.VersionsAfter = append(p.VersionsBefore, o.versionBefore), append(p.VersionsAfter, d.Task.Version)
}

func firstTime(t, def time.Time) time.Time {
	if t.IsZero() {
		return def
	}
	return t
}

func conflictRows(conflicts []conflict, now time.Time) *dbgen.ConflictInsertManyParams {
	p := &dbgen.ConflictInsertManyParams{Now: at(now)}
	for _, c := range conflicts {
		p.Kinds, p.Subjects = append(p.Kinds, string(c.Kind)), append(p.Subjects, c.subject)
		p.TaskIds, p.AttemptIds = append(p.TaskIds, uid(c.task.ID)), append(p.AttemptIds, uid(c.attempt.ID))
		p.Haves, p.Gots = append(p.Haves, string(c.Have)), append(p.Gots, string(c.Got))
		p.Outputs = append(p.Outputs, outputsText(c.Outputs))
	}
	return p
}

func auditRows(audits []audited, now time.Time) *dbgen.AuditInsertManyParams {
	p := &dbgen.AuditInsertManyParams{Now: at(now)}
	for _, a := range audits {
		p.ActionIds, p.Actors = append(p.ActionIds, required(a.ActionID.ID)), append(p.Actors, a.Actor)
		p.Actions, p.Reasons = append(p.Actions, a.Action), append(p.Reasons, a.Reason)
		p.TaskIds, p.AttemptIds = append(p.TaskIds, uid(a.task.ID)), append(p.AttemptIds, uid(a.attempt.ID))
		p.Subjects = append(p.Subjects, a.subject)
	}
	return p
}

func assetInsert(a ports.Asset) *dbgen.AssetInsertParams {
	return &dbgen.AssetInsertParams{
		ID: uid(a.ID.ID), TenantID: uid(a.TenantID.ID), ProjectID: uid(a.ProjectID.ID), TaskID: uid(a.TaskID.ID),
		AttemptID: uid(a.AttemptID.ID), Kind: a.Kind, ContentType: a.ContentType, StorageKey: a.Key, SizeBytes: a.Size,
		Sha256: a.SHA256, CreatedAt: at(a.CreatedAt),
	}
}
