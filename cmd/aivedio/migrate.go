package main

import (
	"context"
	"fmt"

	"github.com/aivedio/aivedio/adapters/pgstore"
)

// databaseFlag is for commands that speak to the database itself.
type databaseFlag struct {
	configFile
	Database string `env:"AIVEDIO_DATABASE_URL" help:"PostgreSQL address; the configuration's, or that of a running dev, when empty." placeholder:"URL"`
	Data     string `type:"path" env:"AIVEDIO_DATA" help:"Folder of a running dev." placeholder:"DIR"`
}

func (f databaseFlag) url() (string, error) {
	if f.Database != "" {
		return f.Database, nil
	}
	cfg, err := LoadConfig(f.Config)
	if err != nil {
		return "", err
	}
	if cfg.Database.URL != "" {
		return cfg.Database.URL, nil
	}
	dev, err := readDevFile(f.Data)
	if err != nil {
		return "", fmt.Errorf("%w, or name a database with --database or --config (AIVEDIO_DATABASE_URL)", err)
	}
	return dev.Database, nil
}

type migrateCmd struct {
	databaseFlag
	DryRun bool `help:"Print what would be applied and change nothing."`
}

// Run applies the embedded migrations. It is safe to run from several processes
// at once.
func (cmd migrateCmd) Run(ctx context.Context, std streams) error {
	url, err := cmd.url()
	if err != nil {
		return err
	}
	report, err := pgstore.Migrate(ctx, url, pgstore.MigrateOptions{DryRun: cmd.DryRun})
	if err != nil {
		return err
	}
	verb := "applied"
	if cmd.DryRun {
		verb = "would apply"
	}
	for _, name := range report.Files {
		fmt.Fprintln(std.out, verb, name)
	}
	if len(report.Files) == 0 {
		fmt.Fprintln(std.out, "the schema is up to date")
	}
	if report.Partitions > 0 {
		fmt.Fprintf(std.out, "made %d daily partitions\n", report.Partitions)
	}
	return nil
}
