package main

import (
	"fmt"
	"runtime/debug"
)

// version is set by the build of a release.
var version = "dev"

type versionCmd struct {
	JSON bool `help:"Print JSON."`
}

// buildInfo is what a binary knows of its making.
type buildInfo struct {
	Version string `json:"version"`
	// Revision is null where the build did not see the repository.
	Revision *string `json:"revision"`
	Go       string  `json:"go"`
}

func readBuildInfo() buildInfo {
	b := buildInfo{Version: version}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	b.Go = info.GoVersion
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			b.Revision = &s.Value
		}
	}
	return b
}

// Run prints the version, the revision and the Go version.
func (cmd versionCmd) Run(std streams) error {
	b := readBuildInfo()
	if cmd.JSON {
		return std.json(b)
	}
	_, err := fmt.Fprintf(std.out, "aivedio %s (%s, %s)\n", b.Version, orElse(b.Revision, "unknown revision"), b.Go)
	return err
}
