package main

import (
	"context"
	"fmt"
	"maps"

	"github.com/jackc/pgx/v5"

	"github.com/aivedio/aivedio/adapters/pgstore"
	"github.com/aivedio/aivedio/internal/testenv/services"
)

// The databases of the two sides, in one cluster: same server, same settings,
// same tables, same rows at the start.
const (
	oursDatabase = "ours"
	peerDatabase = "peer"
)

// cluster is a PostgreSQL server of the benchmark's own, with fsync on.
type cluster struct{ *services.Postgres }

// startCluster starts the server with the tables of the product in the database
// of our side. Further settings win.
func startCluster(ctx context.Context, extra ...map[string]string) (*cluster, error) {
	settings := map[string]string{
		"shared_buffers": "1GB", "max_wal_size": "4GB", "max_connections": "200",
		"track_commit_timestamp": "on", // when exactly a transition was committed; both sides pay for it
	}
	for _, more := range extra {
		maps.Copy(settings, more)
	}
	pg, err := services.StartPostgres(ctx, services.PostgresOptions{Database: oursDatabase, Settings: settings})
	if err != nil {
		return nil, fmt.Errorf("start PostgreSQL: %w", err)
	}
	c := &cluster{pg}
	if _, err := pgstore.Migrate(ctx, pg.URL(oursDatabase), pgstore.MigrateOptions{}); err != nil {
		return c, fmt.Errorf("migrate: %w", err)
	}
	return c, nil
}

// copyAs copies our database under another name. Nobody may be connected to it.
func (c *cluster) copyAs(ctx context.Context, name string) error {
	return c.exec(ctx, "postgres", "CREATE DATABASE "+name+" TEMPLATE "+oursDatabase)
}

// settle brings both databases to rest before a measured part: statistics and
// visibility are fresh, and the checkpoint that is due is not paid by the next
// one measured.
func (c *cluster) settle(ctx context.Context) error { return c.exec(ctx, oursDatabase, "CHECKPOINT") }

// exec runs statements on a connection of their own.
func (c *cluster) exec(ctx context.Context, database string, statements ...string) error {
	conn, err := pgx.Connect(ctx, c.URL(database))
	if err != nil {
		return fmt.Errorf("connect to %s: %w", database, err)
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // every statement has been answered
	for _, s := range statements {
		if _, err := conn.Exec(ctx, s); err != nil {
			return fmt.Errorf("%.60s: %w", s, err)
		}
	}
	return nil
}

// settings asks the server over connections of both sides: what a database or a
// role changes would show.
func (c *cluster) settings(ctx context.Context, peers ...string) (settings, error) {
	var both settings
	var err error
	if both.Ours, err = c.show(ctx, oursDatabase); err != nil {
		return settings{}, err
	}
	for _, name := range peers {
		if both.Peer, err = c.show(ctx, name); err != nil {
			return settings{}, err
		}
		if err := both.verdict(); err != nil {
			return settings{}, err
		}
	}
	return both, both.verdict()
}

func (c *cluster) show(ctx context.Context, database string) (map[string]string, error) {
	conn, err := pgx.Connect(ctx, c.URL(database))
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", database, err)
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // nothing is written
	values := map[string]string{}
	for _, name := range compared {
		var value string
		if err := conn.QueryRow(ctx, "SHOW "+name).Scan(&value); err != nil {
			return nil, fmt.Errorf("SHOW %s: %w", name, err)
		}
		values[name] = value
	}
	return values, nil
}
