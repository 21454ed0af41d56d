package e2e

import (
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"testing"

	"github.com/aivedio/aivedio/internal/e2e/launch"
	"github.com/aivedio/aivedio/internal/testenv/services"
)

// The load of the crash tests in deliveries per second, how often the real
// receiver is killed, and how often the faulty one.
const (
	crashRate  = 2000
	crashKills = 50
	earlyKills = 10
)

// The role that takes callbacks is killed 50 times under load: whatever it has
// answered with a 2xx is in the inbox (I1).
func TestAcknowledgedDeliveriesSurviveKills(t *testing.T) {
	db := crashDatabase(t)
	d := launch.Deployment{Secrets: launch.NewSecrets(), Database: db, Public: "http://127.0.0.1", Vendor: "http://127.0.0.1"}
	addr := freeAddr(t)
	p := Serve(t, "callback", Deploy(t, d), addr, "callback")

	v := crash{process: p, addr: addr, secret: d.WebhookSecret, database: db, kills: crashKills, rng: rand.New(rand.NewPCG(3, 50))}.run(t)
	t.Logf("%d kills: %s", crashKills, v)
	if len(v.lost) > 0 {
		t.Errorf("%d deliveries were answered with a 2xx and are not in the inbox, such as %s", len(v.lost), v.lost[0])
	}
	if v.rows != v.sent {
		t.Errorf("%d rows for %d deliveries; each was repeated until it was acknowledged, and a repetition is no second row", v.rows, v.sent)
	}
}

// The same check catches a receiver that answers first and commits afterwards.
func TestEarlyAcknowledgementIsCaught(t *testing.T) {
	db := crashDatabase(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	secrets, addr := launch.NewSecrets(), freeAddr(t)
	p := Launch(t, launch.Spec{Name: "early callback", Path: self, Env: earlyEnv(addr, db, secrets.WebhookSecret)})

	v := crash{process: p, addr: addr, secret: secrets.WebhookSecret, database: db, kills: earlyKills, rng: rand.New(rand.NewPCG(3, 10))}.run(t)
	t.Logf("%d kills: %s", earlyKills, v)
	if len(v.lost) == 0 {
		t.Error("a receiver that answers before the commit lost nothing: the check is blind")
	}
}

// freeAddr is an address that stays the same over restarts.
func freeAddr(t *testing.T) string {
	t.Helper()
	port, err := services.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
}
