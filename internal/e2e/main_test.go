package e2e

import (
	"fmt"
	"os"
	"testing"

	"github.com/aivedio/aivedio/internal/testenv"
)

func TestMain(m *testing.M) {
	if os.Getenv(earlyListen) != "" {
		fmt.Fprintln(os.Stderr, "faulty receiver:", serveEarly())
		os.Exit(1)
	}
	code := testenv.Wrap(m).Run()
	if err := Cleanup(); err != nil {
		fmt.Fprintln(os.Stderr, "remove the built binary:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}
