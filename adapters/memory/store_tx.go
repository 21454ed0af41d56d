package memory

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// errData stands for what a database refuses about a row's values.
var errData = errors.New("the data is refused")

// tx is a running transaction: the store, the time, and how to take back what
// was written so far.
type tx struct {
	*Store
	at   time.Time
	undo []func()
}

// savepoint marks the present state for rollback.
func (x *tx) savepoint() int { return len(x.undo) }

// rollback takes back what was written since the savepoint.
func (x *tx) rollback(savepoint int) {
	for i := len(x.undo) - 1; i >= savepoint; i-- {
		x.undo[i]()
	}
	x.undo = x.undo[:savepoint]
}

// next draws a number for a new row. Like a sequence it is not taken back.
func (x *tx) next() int64 {
	x.serial++
	return x.serial
}

// put writes one entry of a map.
func put[K comparable, V any](x *tx, m map[K]V, key K, value V) {
	old, had := m[key]
	x.undo = append(x.undo, func() {
		if had {
			m[key] = old
		} else {
			delete(m, key)
		}
	})
	m[key] = value
}

// remove deletes one entry of a map.
func remove[K comparable, V any](x *tx, m map[K]V, key K) {
	old, had := m[key]
	if !had {
		return
	}
	x.undo = append(x.undo, func() { m[key] = old })
	delete(m, key)
}

// assign writes a field of the store.
func assign[V any](x *tx, field *V, value V) {
	old := *field
	x.undo = append(x.undo, func() { *field = old })
	*field = value
}

// checkText refuses what a text column refuses.
func checkText(values ...string) error {
	for _, v := range values {
		if strings.ContainsRune(v, 0) || !utf8.ValidString(v) {
			return fmt.Errorf("%w: %.40q is not text", errData, v)
		}
	}
	return nil
}
