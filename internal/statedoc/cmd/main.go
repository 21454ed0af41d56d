// Command cmd writes the page about the state machine to the file that its only
// argument names. `go generate ./domain` calls it.
package main

import (
	"fmt"
	"os"

	"github.com/aivedio/aivedio/internal/statedoc"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "statedoc:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("want the name of one file, got %d arguments", len(args))
	}
	text, err := statedoc.Render()
	if err != nil {
		return err
	}
	return os.WriteFile(args[0], []byte(text), 0o644)
}
