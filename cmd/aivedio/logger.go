package main

import (
	"io"
	"log/slog"
	"strings"
)

// newLogger is the logger of a process. An unknown level, which Config.Validate
// refuses, means info.
func newLogger(w io.Writer, format, level string) *slog.Logger {
	l, _ := logLevel(level)
	opts := &slog.HandlerOptions{Level: l}
	if format == "text" {
		return slog.New(slog.NewTextHandler(w, opts))
	}
	return slog.New(slog.NewJSONHandler(w, opts))
}

// logLevel reads debug, info, warn or error.
func logLevel(level string) (slog.Level, error) {
	var l slog.Level
	if strings.ContainsAny(level, "+-") { // slog's offsets are not ours
		level = ""
	}
	err := l.UnmarshalText([]byte(level))
	return l, err
}
