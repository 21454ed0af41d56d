package app_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aivedio/aivedio/app"
)

// running starts a loop in a bubble and returns how to end it.
func running(t *testing.T, l app.Loop) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	}
}

func steady() app.Env { return app.Env{Jitter: func() float64 { return 1 }, NewID: newID} }

func TestLoopPace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var at []time.Duration
		began := time.Now()
		found := []int{3, 1, 0, 0, 2, 0}
		bell := &app.Bell{}
		stop := running(t, app.Loop{
			Name: "test", Interval: time.Second, Bell: bell, Env: steady(),
			Step: func(context.Context) (int, error) {
				at = append(at, time.Since(began))
				return found[min(len(at), len(found))-1], nil
			},
		})
		<-time.After(2500 * time.Millisecond)
		bell.Ring()
		synctest.Wait()
		stop()
		want := []time.Duration{0, 0, 0, time.Second, 2 * time.Second, 2 * time.Second, 2500 * time.Millisecond}
		for i, w := range want {
			if i >= len(at) || at[i] != w {
				t.Fatalf("rounds at %v, want %v", at, want)
			}
		}
	})
}

// TestLoopGathers: after a round that was not full more work comes together, and no
// bell hurries it.
func TestLoopGathers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var at []time.Duration
		began := time.Now()
		found := []int{5, 5, 2, 5, 4, 0}
		bell := &app.Bell{}
		stop := running(t, app.Loop{
			Interval: time.Hour, Full: 5, Gather: 20 * time.Millisecond, Bell: bell, Env: steady(),
			Step: func(context.Context) (int, error) {
				at = append(at, time.Since(began)/time.Millisecond)
				n := found[min(len(at), len(found))-1]
				if n > 0 {
					bell.Ring()
				}
				return n, nil
			},
		})
		<-time.After(45 * time.Millisecond)
		stop()
		want := []time.Duration{0, 0, 0, 20, 20, 40}
		if len(at) < len(want) || !slices.Equal(at[:len(want)], want) {
			t.Errorf("rounds at %v ms, want %v", at, want)
		}
	})
}

func TestLoopBellBeforeTheWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rounds := 0
		bell := &app.Bell{}
		stop := running(t, app.Loop{Interval: time.Hour, Bell: bell, Env: steady(), Step: func(context.Context) (int, error) {
			if rounds++; rounds == 1 {
				bell.Ring() // during the round: it must not be lost
			}
			return 0, nil
		}})
		synctest.Wait()
		stop()
		if rounds != 2 {
			t.Errorf("%d rounds, want 2", rounds)
		}
	})
}

func TestLoopFailures(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		env := steady()
		env.Logger = slog.New(slog.NewTextHandler(&log, nil))
		rounds := 0
		began := time.Now()
		var recovered time.Duration
		stop := running(t, app.Loop{Name: "test", Interval: time.Second, MaxBackoff: 4 * time.Second, Env: env, Step: func(context.Context) (int, error) {
			switch rounds++; rounds {
			case 1, 2:
				return 0, errors.New("broken")
			case 3:
				panic("worse")
			default:
				recovered = max(recovered, time.Since(began))
				return 0, nil
			}
		}})
		<-time.After(7 * time.Second)
		synctest.Wait()
		stop()
		if recovered != 7*time.Second { // 1 + 2 + 4
			t.Errorf("came back after %v, want 7s", recovered)
		}
		if got := log.String(); strings.Count(got, "round failed") != 1 || strings.Count(got, "role recovered") != 1 {
			t.Errorf("log:\n%s", got)
		}
	})
}

func TestLoopFinishesTheRoundInHand(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		takes    time.Duration
		finished bool
	}{"in time": {5 * time.Second, true}, "too long": {time.Minute, false}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				finished, drained := false, false
				stop := running(t, app.Loop{Grace: 10 * time.Second, Env: steady(), Drain: func() { drained = true }, Step: func(ctx context.Context) (int, error) {
					select {
					case <-time.After(tc.takes):
						finished = true
					case <-ctx.Done():
					}
					return 0, ctx.Err()
				}})
				synctest.Wait()
				stop()
				if finished != tc.finished || !drained {
					t.Errorf("finished %v, drained %v", finished, drained)
				}
			})
		})
	}
}

func TestBell(t *testing.T) {
	t.Parallel()
	var none *app.Bell
	none.Ring()
	if none.Wait() != nil {
		t.Error("a nil bell can be waited for")
	}
	bell := &app.Bell{}
	bell.Ring()
	first, second := bell.Wait(), bell.Wait()
	bell.Ring()
	<-first
	<-second
	select {
	case <-bell.Wait():
		t.Error("a ring of before is heard")
	default:
	}
}

// A process that stops does not wait for the time-outs of a role.
func TestLoopGrace(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name        string
		role, limit time.Duration
		want        time.Duration
	}{
		{"neither", 0, 0, 30 * time.Second},
		{"role", time.Minute, 0, time.Minute},
		{"process", time.Minute, 5 * time.Second, 5 * time.Second},
		{"role is shorter", time.Second, 5 * time.Second, time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				env := steady()
				env.StopGrace = tt.limit
				stop := running(t, app.Loop{
					Name: "test", Interval: time.Second, Grace: tt.role, Env: env,
					Step: func(ctx context.Context) (int, error) {
						<-ctx.Done() // a vendor that never answers
						return 0, ctx.Err()
					},
				})
				synctest.Wait()
				began := time.Now()
				stop()
				if took := time.Since(began); took != tt.want {
					t.Errorf("ended after %v, want %v", took, tt.want)
				}
			})
		})
	}
}
