package main

import (
	"fmt"
	"runtime/debug"
)

// version is set by the build of a release.
var version = "dev"

type versionCmd struct{}

// Run prints the version, the revision and the Go version.
func (versionCmd) Run(std streams) error {
	revision := "unknown revision"
	goVersion := ""
	if info, ok := debug.ReadBuildInfo(); ok {
		goVersion = info.GoVersion
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				revision = s.Value
			}
		}
	}
	_, err := fmt.Fprintf(std.out, "aivedio %s (%s, %s)\n", version, revision, goVersion)
	return err
}
