package e2e

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/aivedio/aivedio/adapters/httpapi"
	"github.com/aivedio/aivedio/adapters/pgstore"
	"github.com/aivedio/aivedio/adapters/providers"
	"github.com/aivedio/aivedio/app"
	"github.com/aivedio/aivedio/internal/e2e/launch"
	"github.com/aivedio/aivedio/internal/wire"
	"github.com/aivedio/aivedio/ports"
)

// The environment that turns the test binary into the faulty receiver.
const (
	earlyListen   = "AIVEDIO_E2E_EARLY_LISTEN"
	earlyDatabase = "AIVEDIO_E2E_EARLY_DATABASE"
	earlySecret   = "AIVEDIO_E2E_EARLY_SECRET"
)

func earlyEnv(listen, database, secret string) []string {
	return []string{earlyListen + "=" + listen, earlyDatabase + "=" + database, earlySecret + "=" + secret}
}

// earlyInbox is the fault: it reports deliveries as stored and stores them
// afterwards.
type earlyInbox struct{ ports.Inbox }

// Receive answers before the commit.
func (i earlyInbox) Receive(_ context.Context, rows []ports.InboxRow) ([]ports.ReceiveResult, error) {
	go func() {
		if _, err := i.Inbox.Receive(context.Background(), rows); err != nil {
			slog.Error("a delivery was acknowledged and not stored", "error", err)
		}
	}()
	return make([]ports.ReceiveResult, len(rows)), nil
}

// serveEarly is the callback role with the fault, until the process is killed.
func serveEarly() error {
	store, err := pgstore.Open(context.Background(), pgstore.Config{
		URL: os.Getenv(earlyDatabase), NewID: wire.NewID, Keyring: pgstore.Keyring{Current: "k", Keys: map[string][]byte{"k": make([]byte, sha256.Size)}},
	})
	if err != nil {
		return err
	}
	defer store.Close()
	handler, err := earlyHandler(earlyInbox{store}, os.Getenv(earlySecret))
	if err != nil {
		return err
	}
	ln, err := net.Listen("tcp", os.Getenv(earlyListen))
	if err != nil {
		return err
	}
	fmt.Printf("ready http://%s\n", ln.Addr())
	srv := http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	return srv.Serve(ln)
}

func earlyHandler(inbox ports.Inbox, secret string) (http.Handler, error) {
	registry, err := providers.New(providers.Config{Accounts: map[string][]ports.Account{"replicate": {{
		ID: launch.Account, APIKey: "r8_unused", Secrets: []ports.Secret{{Version: "1", Value: secret}},
	}}}})
	tokens, errTokens := app.NewCallbackTokens(make([]byte, sha256.Size))
	if err := errors.Join(err, errTokens); err != nil {
		return nil, err
	}
	receive, err := app.NewReceive(app.ReceiveDeps{
		Env: app.Env{NewID: wire.NewID, Bells: app.NewBells()}, Inbox: inbox, Vendors: app.NewVendors(registry), Tokens: tokens,
	}, app.ReceiveConfig{})
	if err != nil {
		return nil, err
	}
	api, err := httpapi.New(httpapi.Config{Receive: receive})
	if err != nil {
		return nil, err
	}
	return api.Callbacks(), nil
}
