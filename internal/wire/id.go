package wire

import (
	"fmt"

	"github.com/google/uuid"
	"go.jetify.com/typeid"

	"github.com/aivedio/aivedio/domain"
)

// The prefixes of public identifiers.
const (
	PrefixTask      = "tsk"
	PrefixAttempt   = "att"
	PrefixProject   = "prj"
	PrefixTenant    = "ten"
	PrefixUser      = "usr"
	PrefixAsset     = "ast"
	PrefixTrace     = "trc"
	PrefixOperation = "opn"
	PrefixAction    = "act"
	PrefixKey       = "key"
)

// NewID draws a UUIDv7: unique, and ordered by time of creation.
func NewID() domain.ID { return domain.ID(uuid.Must(uuid.NewV7())) }

// FormatID is the TypeID of an identifier: prefix, underscore, 26 characters of
// base 32. The zero ID gives the empty string.
func FormatID(prefix string, id domain.ID) string {
	if id.IsZero() {
		return ""
	}
	tid, err := typeid.FromUUIDBytesWithPrefix(prefix, id[:])
	if err != nil {
		panic(fmt.Sprintf("wire: prefix %q: %v", prefix, err)) // only a prefix of our own can be wrong
	}
	return tid.String()
}

// ParseID reads a TypeID with the wanted prefix. The error names what was
// expected and is fit for a client.
func ParseID(prefix, s string) (domain.ID, error) {
	tid, err := typeid.FromString(s)
	if err != nil || tid.Prefix() != prefix {
		return domain.ID{}, fmt.Errorf("%.60q is not an id of the form %s_ and 26 characters", s, prefix)
	}
	return domain.ID(tid.UUIDBytes()), nil
}

// TaskID, AttemptID, ProjectID, TenantID, UserID, AssetID and TraceID are
// FormatID with the right prefix.
func TaskID(id domain.TaskID) string       { return FormatID(PrefixTask, id.ID) }
func AttemptID(id domain.AttemptID) string { return FormatID(PrefixAttempt, id.ID) }
func ProjectID(id domain.ProjectID) string { return FormatID(PrefixProject, id.ID) }
func TenantID(id domain.TenantID) string   { return FormatID(PrefixTenant, id.ID) }
func UserID(id domain.UserID) string       { return FormatID(PrefixUser, id.ID) }
func AssetID(id domain.AssetID) string     { return FormatID(PrefixAsset, id.ID) }
func TraceID(id domain.TraceID) string     { return FormatID(PrefixTrace, id.ID) }
