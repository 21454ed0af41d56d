package pgstore

import (
	"bytes"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
	"pgregory.net/rapid"
)

// Whatever pgx would have sent is what is sent, NULLs and empty arrays included.
func TestArraysAreThoseOfPgx(t *testing.T) {
	t.Parallel()
	uuids := rapid.Custom(func(t *rapid.T) pgtype.UUID {
		u := pgtype.UUID{Valid: rapid.Bool().Draw(t, "valid")}
		if u.Valid {
			copy(u.Bytes[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "id"))
		}
		return u
	})
	times := rapid.Custom(func(t *rapid.T) pgtype.Timestamptz {
		v := pgtype.Timestamptz{
			Valid: rapid.Bool().Draw(t, "valid"), Time: time.UnixMicro(rapid.Int64Range(-1<<55, 1<<55).Draw(t, "time")),
			InfinityModifier: rapid.SampledFrom([]pgtype.InfinityModifier{pgtype.Finite, pgtype.Infinity, pgtype.NegativeInfinity}).Draw(t, "infinity"),
		}
		return v
	})
	ours, theirs := pgtype.NewMap(), pgtype.NewMap()
	registerArrays(ours)
	columns := []struct {
		oid  uint32
		draw func(*rapid.T) any
	}{
		{pgtype.UUIDArrayOID, drawn(uuids)}, {pgtype.TimestamptzArrayOID, drawn(times)}, {pgtype.TextArrayOID, drawn(rapid.String())},
		{pgtype.ByteaArrayOID, drawn(rapid.SliceOf(rapid.Byte()))}, {pgtype.Int2ArrayOID, drawn(rapid.Int16())},
		{pgtype.Int4ArrayOID, drawn(rapid.Int32())}, {pgtype.Int8ArrayOID, drawn(rapid.Int64())}, {pgtype.BoolArrayOID, drawn(rapid.Bool())},
	}
	rapid.Check(t, func(t *rapid.T) {
		for _, c := range columns {
			value := c.draw(t)
			got, gotErr := ours.Encode(c.oid, pgtype.BinaryFormatCode, value, nil)
			want, wantErr := theirs.Encode(c.oid, pgtype.BinaryFormatCode, value, nil)
			if gotErr != nil || wantErr != nil || !bytes.Equal(got, want) {
				t.Fatalf("%T %v\nours   %x %v\ntheirs %x %v", value, value, got, gotErr, want, wantErr)
			}
			if (got == nil) != (want == nil) {
				t.Fatalf("%T %v: NULL in one form only", value, value)
			}
		}
	})
}

func drawn[T any](g *rapid.Generator[T]) func(*rapid.T) any {
	slices := rapid.OneOf(rapid.SliceOf(g), rapid.Just([]T(nil)))
	return func(t *rapid.T) any { return slices.Draw(t, "array") }
}
