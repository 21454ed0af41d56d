package pgstore

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
)

// The statements take one array per column, some thirty of them per batch. pgx
// boxes and looks at every element of an array by itself, which was an eighth of
// the processor's CPU; these codecs write whole arrays of the types that the
// generated queries use and leave everything else to pgx.

// registerArrays makes a connection write arrays so.
func registerArrays(m *pgtype.Map) {
	register(m, "uuid", pgtype.UUIDArrayOID, appendUUID)
	register(m, "timestamptz", pgtype.TimestamptzArrayOID, appendTimestamptz)
	register(m, "text", pgtype.TextArrayOID, func(b []byte, v string) []byte { return append(appendLength(b, len(v)), v...) })
	register(m, "bytea", pgtype.ByteaArrayOID, appendBytea)
	register(m, "int2", pgtype.Int2ArrayOID, func(b []byte, v int16) []byte { return binary.BigEndian.AppendUint16(appendLength(b, 2), uint16(v)) })
	register(m, "int4", pgtype.Int4ArrayOID, func(b []byte, v int32) []byte { return binary.BigEndian.AppendUint32(appendLength(b, 4), uint32(v)) })
	register(m, "int8", pgtype.Int8ArrayOID, func(b []byte, v int64) []byte { return binary.BigEndian.AppendUint64(appendLength(b, 8), uint64(v)) })
	register(m, "bool", pgtype.BoolArrayOID, appendBool)
}

// register puts the codec of an element's array in the place of pgx's own.
func register[T any](m *pgtype.Map, element string, oid uint32, add func([]byte, T) []byte) {
	t, ok := m.TypeForName(element)
	if !ok {
		panic(fmt.Sprintf("pgx does not know %s", element)) // it knows the built-in types
	}
	m.RegisterType(&pgtype.Type{Name: "_" + element, OID: oid, Codec: arrayCodec[T]{&pgtype.ArrayCodec{ElementType: t}, add}})
}

// arrayCodec is pgx's codec with a way of its own for []T.
type arrayCodec[T any] struct {
	*pgtype.ArrayCodec
	// add appends an element with its length in front.
	add func([]byte, T) []byte
}

// PlanEncode implements pgtype.Codec.
func (c arrayCodec[T]) PlanEncode(m *pgtype.Map, oid uint32, format int16, value any) pgtype.EncodePlan {
	if _, ok := value.([]T); ok && format == pgtype.BinaryFormatCode {
		return arrayPlan[T]{c.ElementType.OID, c.add}
	}
	return c.ArrayCodec.PlanEncode(m, oid, format, value)
}

type arrayPlan[T any] struct {
	element uint32
	add     func([]byte, T) []byte
}

// Encode implements pgtype.EncodePlan: dimensions, a flag for NULLs, the type of
// the elements; then length and lower bound of the dimension, and the elements. A
// nil slice is NULL.
func (p arrayPlan[T]) Encode(value any, buf []byte) ([]byte, error) {
	all := value.([]T)
	if all == nil {
		return nil, nil
	}
	buf = binary.BigEndian.AppendUint32(buf, 1)
	flag := len(buf)
	buf = binary.BigEndian.AppendUint32(buf, 0)
	buf = binary.BigEndian.AppendUint32(buf, p.element)
	buf = binary.BigEndian.AppendUint32(buf, uint32(len(all)))
	buf = binary.BigEndian.AppendUint32(buf, 1)
	for _, v := range all {
		at := len(buf)
		buf = p.add(buf, v)
		if buf[at] == 0xff { // a length below zero
			buf[flag+3] = 1
		}
	}
	return buf, nil
}

// appendLength appends the length of an element, -1 for NULL.
func appendLength(b []byte, n int) []byte { return binary.BigEndian.AppendUint32(b, uint32(n)) }

func appendUUID(b []byte, v pgtype.UUID) []byte {
	if !v.Valid {
		return appendLength(b, -1)
	}
	return append(appendLength(b, 16), v.Bytes[:]...)
}

// epoch is the zero of PostgreSQL's timestamps, which count microseconds.
var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

func appendTimestamptz(b []byte, v pgtype.Timestamptz) []byte {
	if !v.Valid {
		return appendLength(b, -1)
	}
	micros := v.Time.UnixMicro() - epoch.UnixMicro()
	switch v.InfinityModifier {
	case pgtype.Infinity:
		micros = 1<<63 - 1
	case pgtype.NegativeInfinity:
		micros = -1 << 63
	case pgtype.Finite:
	}
	return binary.BigEndian.AppendUint64(appendLength(b, 8), uint64(micros))
}

func appendBytea(b []byte, v []byte) []byte {
	if v == nil {
		return appendLength(b, -1)
	}
	return append(appendLength(b, len(v)), v...)
}

func appendBool(b []byte, v bool) []byte {
	n := byte(0)
	if v {
		n = 1
	}
	return append(appendLength(b, 1), n)
}
