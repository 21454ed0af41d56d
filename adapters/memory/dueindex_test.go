package memory_test

import (
	"testing"

	"github.com/aivedio/aivedio/adapters/memory"
	"github.com/aivedio/aivedio/ports/porttest"
)

func TestDueIndex(t *testing.T) {
	t.Parallel()
	porttest.DueIndex(t, func(*testing.T) porttest.DueIndexFixture {
		index := memory.NewDueIndex()
		return porttest.DueIndexFixture{Index: index, Flush: func(*testing.T) { index.Flush() }}
	})
}
