package services

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestMain lets this binary play the parent that is killed.
func TestMain(m *testing.M) {
	if os.Getenv("AIVEDIO_TEST_PARENT") == "1" {
		playParent()
	}
	os.Exit(m.Run())
}

// playParent starts services, prints their addresses and folders, and waits
// for its death.
func playParent() {
	ctx := context.Background()
	p, err := StartPostgres(ctx, PostgresOptions{Dir: os.Getenv("AIVEDIO_TEST_PARENT_DIR"), NoSync: true})
	if err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
	fmt.Println(loopback(p.port), p.dir)
	if r, err := StartRedis(ctx, RedisOptions{}); err == nil {
		fmt.Println(r.Addr(), r.dir)
	}
	fmt.Println("running")
	select {}
}

// killedParent starts services in another process, on the given PostgreSQL
// folder ("" for a temporary one), kills it with SIGKILL as soon as they run,
// and returns their addresses and folders.
func killedParent(t *testing.T, dir string) (addrs, dirs []string) {
	t.Helper()
	if testing.Short() {
		t.Skip("starts PostgreSQL")
	}
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), "AIVEDIO_TEST_PARENT=1", "AIVEDIO_TEST_PARENT_DIR="+dir)
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(out); lines.Scan() && lines.Text() != "running"; {
		addr, dir, ok := strings.Cut(lines.Text(), " ")
		if !ok || !strings.HasPrefix(addr, "127.") {
			t.Fatalf("the parent says %q", lines.Text())
		}
		addrs, dirs = append(addrs, addr), append(dirs, dir)
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait() // reports the kill
	if len(addrs) == 0 {
		t.Fatal("the parent started nothing")
	}
	return addrs, dirs
}

// The next start on the same folder may come before the guard has stopped the
// orphaned server.
func TestFolderOfAKilledParentIsTakenOver(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pg")
	for range 2 {
		killedParent(t, dir)
	}
	p := startTestPostgres(t, dir)
	if n := query[int](t, p.URL(""), "SELECT 1"); n != 1 {
		t.Fatalf("got %d", n)
	}
}

func TestKilledParentLeavesNothing(t *testing.T) {
	addrs, dirs := killedParent(t, "")
	limit := time.After(20 * time.Second)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for i := range addrs {
		for gone := false; !gone; {
			select {
			case <-limit:
				t.Fatalf("%s or its folder %s outlives its parent", addrs[i], dirs[i])
			case <-tick.C:
				_, statErr := os.Stat(dirs[i])
				gone = !listening(addrs[i]) && os.IsNotExist(statErr)
			}
		}
	}
}

func listening(addr string) bool {
	conn, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return false
	}
	conn.Close()
	return true
}
