package testenv_test

import (
	"testing"

	"github.com/aivedio/aivedio/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }
