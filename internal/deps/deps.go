// Package deps keeps modules in go.mod while they are being put to use.
package deps

import (
	_ "ariga.io/atlas/sql/migrate"
	_ "ariga.io/atlas/sql/postgres"
	_ "code.dny.dev/ssrf"
	_ "github.com/alecthomas/kong"
	_ "github.com/alecthomas/kong-yaml"
	_ "github.com/apache/rocketmq-client-go/v2"
	_ "github.com/cenkalti/backoff/v5"
	_ "github.com/coder/websocket"
	_ "github.com/fergusstrange/embedded-postgres"
	_ "github.com/google/go-cmp/cmp"
	_ "github.com/google/uuid"
	_ "github.com/hashicorp/golang-lru/v2"
	_ "github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/ory/dockertest/v3"
	_ "github.com/prometheus/client_golang/prometheus/promhttp"
	_ "github.com/redis/go-redis/v9"
	_ "github.com/schollz/progressbar/v3"
	_ "go.jetify.com/typeid"
	_ "go.uber.org/goleak"
	_ "gocloud.dev/blob/fileblob"
	_ "golang.org/x/sync/errgroup"
	_ "golang.org/x/time/rate"
	_ "gopkg.in/yaml.v3"
	_ "pgregory.net/rapid"
)
