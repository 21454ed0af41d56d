package redisnotify

import (
	"crypto/rand"
	"testing"
	"time"

	"github.com/aivedio/aivedio/internal/testenv"
	"github.com/aivedio/aivedio/ports/porttest"
)

func TestDueIndex(t *testing.T) {
	t.Parallel()
	server := testenv.Redis(t)
	t.Run("Suite", func(t *testing.T) {
		porttest.DueIndex(t, func(t *testing.T) porttest.DueIndexFixture {
			rdb, key := dial(t, server.Addr), "test:"+rand.Text()
			return porttest.DueIndexFixture{
				Index: NewDueIndex(rdb, DueIndexConfig{Key: key, Timeout: 5 * time.Second}),
				Flush: func(t *testing.T) {
					if err := rdb.Del(t.Context(), key).Err(); err != nil {
						t.Fatal(err)
					}
				},
			}
		})
	})
}

func TestDueIndexRedisAway(t *testing.T) {
	t.Parallel()
	link := newLink(t, testenv.Redis(t).Addr)
	index := NewDueIndex(dial(t, link.addr), DueIndexConfig{Key: "test:" + rand.Text()})
	link.cut()
	if _, err := index.Next(t.Context(), time.Now()); err == nil {
		t.Error("no answer is no error")
	}
	if err := index.Note(t.Context(), []time.Time{time.Now()}); err == nil {
		t.Error("a lost note is no error")
	}
}
