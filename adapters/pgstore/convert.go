package pgstore

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// The convert files are the only place where rows and domain values meet. The
// zero of the domain ("none") is NULL in the database and the other way round.

func uid(id domain.ID) pgtype.UUID { return pgtype.UUID{Bytes: id, Valid: !id.IsZero()} }

// required is uid for columns that may hold the zero id.
func required(id domain.ID) pgtype.UUID { return pgtype.UUID{Bytes: id, Valid: true} }

func idOf(u pgtype.UUID) domain.ID {
	if !u.Valid {
		return domain.ID{}
	}
	return u.Bytes
}

func at(t time.Time) pgtype.Timestamptz {
	return pgtype.Timestamptz{Time: t, Valid: !t.IsZero()}
}

func atPtr(t *time.Time) pgtype.Timestamptz {
	if t == nil {
		return pgtype.Timestamptz{}
	}
	return pgtype.Timestamptz{Time: *t, Valid: true}
}

func timeOf(t pgtype.Timestamptz) time.Time { return t.Time.UTC() }

func timePtr(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	utc := t.UTC()
	return &utc
}

// noNumber stands for NULL in arrays of numbers; the statements turn it back.
const (
	noPercent  = int16(-1)
	noSequence = int64(-1 << 63)
)

func percent(p *int) int16 {
	if p == nil {
		return noPercent
	}
	return int16(*p)
}

func percentPtr(p *int16) *int {
	if p == nil {
		return nil
	}
	v := int(*p)
	return &v
}

func sequence(n *int64) int64 {
	if n == nil {
		return noSequence
	}
	return *n
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func textPtr(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// output is a domain.OutputRef as the database keeps it.
type output struct {
	Kind      string     `json:"kind"`
	Ref       string     `json:"ref"`
	URL       string     `json:"url"`
	ExpiresAt *time.Time `json:"expires_at,omitempty"`
}

// outputsText is the JSON of outputs, empty for none.
func outputsText(refs []domain.OutputRef) string {
	if len(refs) == 0 {
		return ""
	}
	rows := make([]output, len(refs))
	for i, r := range refs {
		rows[i] = output(r)
	}
	data, err := json.Marshal(rows)
	if err != nil {
		panic(err) // strings and times always encode
	}
	return string(data)
}

func outputsOf(data []byte) ([]domain.OutputRef, error) {
	if len(data) == 0 {
		return nil, nil
	}
	var rows []output
	if err := json.Unmarshal(data, &rows); err != nil {
		return nil, fmt.Errorf("stored outputs: %w", err)
	}
	refs := make([]domain.OutputRef, len(rows))
	for i, r := range rows {
		refs[i] = domain.OutputRef(r)
	}
	return refs, nil
}

// outboxShard gives all rows of a project the same shard.
func outboxShard(project domain.ProjectID) int16 {
	h := fnv.New32a()
	h.Write(project.ID[:])
	return int16(h.Sum32() % ports.OutboxShards)
}
