package rocketbus

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/aivedio/aivedio/internal/testenv"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(testenv.Wrap(m))
}
