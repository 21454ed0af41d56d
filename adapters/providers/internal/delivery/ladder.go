// Package delivery names webhook deliveries and turns inbox rows into
// observations: the part that is the same for every vendor.
package delivery

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// Ladder holds what a delivery says about itself; the best of it becomes its
// identity for deduplication.
type Ladder struct {
	// SignedID is an id or nonce that the signature covers.
	SignedID string
	// EventID is the vendor's id of the event.
	EventID string
	// TaskID, Type and Time name the news itself, with the hash of the body.
	TaskID string
	Type   string
	Time   *time.Time
	Body   []byte
}

// Identity takes the first rung that holds. The prefix keeps rungs apart, so that
// an id that looks like a hash is not one.
func (l Ladder) Identity() string {
	switch {
	case l.SignedID != "":
		return "msg:" + l.SignedID
	case l.EventID != "":
		return "evt:" + l.EventID
	}
	hash := sha256.Sum256(l.Body)
	digest := hex.EncodeToString(hash[:])
	if l.TaskID == "" {
		return "sha256:" + digest
	}
	at := ""
	if l.Time != nil {
		at = l.Time.UTC().Format(time.RFC3339Nano)
	}
	return strings.Join([]string{"job:" + l.TaskID, l.Type, at, digest}, "|")
}

// Observation starts an observation from what the inbox knows of the delivery.
// The news and the attempt are for the caller.
func Observation(provider string, row ports.InboxRow) domain.Observation {
	return domain.Observation{
		Provider: provider, ProviderEventID: row.ProviderEventID, DedupKey: row.DedupKey,
		ProviderTaskID: row.ProviderTaskID, ClientRequestID: row.ClientRequestID,
		ProviderOccurredAt: row.ProviderOccurredAt, ReceivedAt: row.ReceivedAt,
		Source: domain.SourceWebhook, Trust: row.Trust,
		PayloadHash: hex.EncodeToString(row.PayloadHash), TraceID: row.TraceID,
	}
}

// ValidJobID reports whether a vendor's id can be one: it becomes a part of a
// URL and a key in tables.
func ValidJobID(id string) bool {
	if id == "" || id == "." || id == ".." || len(id) > 256 {
		return false
	}
	for i := range len(id) {
		if id[i] <= ' ' || id[i] > '~' {
			return false
		}
	}
	return true
}
