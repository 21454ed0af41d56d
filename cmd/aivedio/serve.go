package main

import (
	"context"
	"fmt"
	"net"
)

// configFile names the file and overrides what is asked for most.
type configFile struct {
	Config string `short:"c" type:"path" env:"AIVEDIO_CONFIG" help:"Configuration file (YAML)." placeholder:"FILE"`
}

type serveCmd struct {
	configFile
	Roles  []Role `help:"Roles of this process; all of the configuration's when empty." placeholder:"ROLE,…"`
	Listen string `help:"Address of the API and the streams."`
}

// Run serves until the context ends.
func (cmd serveCmd) Run(ctx context.Context, std streams) error {
	cfg, err := checkedConfig(cmd.Config, func(cfg *Config) {
		if len(cmd.Roles) > 0 {
			cfg.Roles = cmd.Roles
		}
		cfg.Listen = either(cmd.Listen, cfg.Listen)
	})
	if err != nil {
		return err
	}
	return Run(ctx, cfg, Hooks{Logger: newLogger(std.err, cfg.LogFormat, cfg.LogLevel), Ready: func(api net.Addr) {
		fmt.Fprintf(std.out, "ready http://%s roles=%v\n", api, cfg.Roles)
	}})
}

type configCmd struct {
	Check configCheckCmd `cmd:"" help:"Report every fault of the configuration at once."`
}

type configCheckCmd struct{ configFile }

// Run loads, validates and resolves the secrets, and starts nothing.
func (cmd configCheckCmd) Run(std streams) error {
	if _, err := checkedConfig(cmd.Config, nil); err != nil {
		return err
	}
	_, err := fmt.Fprintln(std.out, "the configuration is good")
	return err
}
