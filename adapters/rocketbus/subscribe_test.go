package rocketbus

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"

	"github.com/aivedio/aivedio/internal/wire"
	"github.com/aivedio/aivedio/ports"
)

func testSubscription(t *testing.T, handler func(context.Context, []ports.StoredEvent) error) *subscription {
	return &subscription{
		bus: fakeBus(&fakeProducer{}, Config{}), group: "g", ctx: t.Context(), handler: handler,
		started: make(chan struct{}), drain: newDrain(),
	}
}

func messageExt(t *testing.T, e ports.StoredEvent, retries int32) *primitive.MessageExt {
	t.Helper()
	body, err := json.Marshal(wire.MessageOf(e))
	if err != nil {
		t.Fatal(err)
	}
	return &primitive.MessageExt{Message: primitive.Message{Body: body}, ReconsumeTimes: retries}
}

// TestConsumeSortsAndCompacts: one call per batch, in (project, event) order.
func TestConsumeSortsAndCompacts(t *testing.T) {
	t.Parallel()
	var got []string
	s := testSubscription(t, func(_ context.Context, events []ports.StoredEvent) error {
		for _, e := range events {
			got = append(got, fmt.Sprintf("%d.%d", e.ProjectID.ID[0], e.EventID))
		}
		return nil
	})
	garbage := &primitive.MessageExt{Message: primitive.Message{Body: []byte("{")}}
	result, err := s.consume(t.Context(),
		messageExt(t, testEvent(2, 1), 0), messageExt(t, testEvent(1, 1), 0), garbage,
		messageExt(t, testEvent(2, 2), 0), messageExt(t, testEvent(1, 1), 0), messageExt(t, testEvent(1, 2), 0))
	if result != consumer.ConsumeSuccess || err != nil {
		t.Errorf("result %v, %v", result, err)
	}
	if want := []string{"1.1", "1.2", "2.1", "2.2"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestConsumeGarbageAlone is acknowledged without a call.
func TestConsumeGarbageAlone(t *testing.T) {
	t.Parallel()
	s := testSubscription(t, func(context.Context, []ports.StoredEvent) error { t.Error("called"); return nil })
	result, err := s.consume(t.Context(), &primitive.MessageExt{})
	if result != consumer.ConsumeSuccess || err != nil {
		t.Errorf("result %v, %v", result, err)
	}
}

// TestConsumeFailure: an error and a panic are "later" with a nil error, after a
// wait that grows.
func TestConsumeFailure(t *testing.T) {
	t.Parallel()
	handlers := map[string]func(context.Context, []ports.StoredEvent) error{
		"error": func(context.Context, []ports.StoredEvent) error { return errors.New("no") },
		"panic": func(context.Context, []ports.StoredEvent) error { panic("no") },
	}
	for name, handler := range handlers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := testSubscription(t, handler)
			for retries, level := range map[int32]int{0: 1, 1: 2, 5: 6, 8: 9, 500: 9} {
				c := primitive.NewConsumeConcurrentlyContext()
				ctx := primitive.WithConcurrentlyCtx(t.Context(), c)
				result, err := s.consume(ctx, messageExt(t, testEvent(1, 1), retries))
				if result != consumer.ConsumeRetryLater || err != nil {
					t.Errorf("result %v, %v", result, err)
				}
				if c.DelayLevelWhenNextConsume != level {
					t.Errorf("after %d retries the level is %d, want %d", retries, c.DelayLevelWhenNextConsume, level)
				}
			}
		})
	}
}

// TestConsumePoison: in a batch that failed before, each event gets its own call.
func TestConsumePoison(t *testing.T) {
	t.Parallel()
	handled := map[int64]bool{}
	s := testSubscription(t, func(_ context.Context, events []ports.StoredEvent) error {
		for _, e := range events {
			if e.EventID == 2 {
				return errors.New("poison")
			}
		}
		for _, e := range events {
			handled[e.EventID] = true
		}
		return nil
	})
	result, _ := s.consume(t.Context(), messageExt(t, testEvent(1, 1), 1), messageExt(t, testEvent(1, 2), 1), messageExt(t, testEvent(1, 3), 1))
	if result != consumer.ConsumeRetryLater || !handled[1] || !handled[3] {
		t.Errorf("result %v, handled %v", result, handled)
	}
}

// TestConsumeAfterDrain: a batch that comes too late is neither handled nor
// answered before Shutdown.
func TestConsumeAfterDrain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := testSubscription(t, func(context.Context, []ports.StoredEvent) error { t.Error("called"); return nil })
		s.drain.wait()
		answered := make(chan consumer.ConsumeResult, 1)
		go func() {
			result, _ := s.consume(t.Context(), messageExt(t, testEvent(1, 1), 0))
			answered <- result
		}()
		time.Sleep(time.Minute)
		select {
		case <-answered:
			t.Fatal("answered before Shutdown")
		default:
		}
		s.drain.over()
		if result := <-answered; result != consumer.ConsumeRetryLater {
			t.Errorf("result %v", result)
		}
	})
}

// TestDrain: what was pulled is handled before the drain ends, what is pulled
// later is left alone.
func TestDrain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDrain()
		if !d.pull(5) || !d.pull(2) || !d.begin(5) {
			t.Fatal("an open drain refuses")
		}
		drained := make(chan struct{})
		go func() { d.wait(); close(drained) }()
		isDrained := func() bool {
			synctest.Wait()
			select {
			case <-drained:
				return true
			default:
				return false
			}
		}
		time.Sleep(time.Hour)
		if isDrained() {
			t.Fatal("drained during a call")
		}
		if d.pull(1) {
			t.Error("pulled while closing")
		}
		d.end()
		if isDrained() {
			t.Fatal("drained before what was pulled is handled")
		}
		if !d.begin(2) {
			t.Fatal("what was pulled before may not be handled")
		}
		d.end()
		time.Sleep(settleTime)
		if !isDrained() {
			t.Fatal("not drained")
		}
		d.over()
	})
}

// TestDrainGivesUp: a queue that moved to another consumer takes along what was
// pulled from it; the drain does not wait for that for ever.
func TestDrainGivesUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDrain()
		d.pull(5)
		begin := time.Now()
		d.wait()
		if waited := time.Since(begin); waited != quietTime+settleTime {
			t.Errorf("waited %v", waited)
		}
	})
}

// TestHandlerTimeout: the handler's context ends.
func TestHandlerTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := testSubscription(t, func(ctx context.Context, _ []ports.StoredEvent) error {
			<-ctx.Done()
			return ctx.Err()
		})
		begin := time.Now()
		result, _ := s.consume(t.Context(), messageExt(t, testEvent(1, 1), 0))
		if d := time.Since(begin); result != consumer.ConsumeRetryLater || d != 30*time.Second {
			t.Errorf("result %v after %v", result, d)
		}
	})
}

// TestLibraryLog: the library's lines arrive one level lower, without bodies.
func TestLibraryLog(t *testing.T) {
	var buf bytes.Buffer
	before := libraryLog.Swap(slog.New(slog.NewTextHandler(&buf, &slog.HandlerOptions{Level: slog.LevelDebug})))
	defer libraryLog.Store(before)
	l := logBridge{}
	l.Level("debug")
	_ = l.OutputPath("/nowhere")
	l.Debug("d", nil)
	l.Info("i", nil)
	l.Warning("w", map[string]any{"messages": "a body", "topic": strings.Repeat("x", 500)})
	l.Error("e", nil)
	l.Fatal("f", nil)
	got := buf.String()
	for _, want := range []string{"level=DEBUG msg=i", "level=INFO msg=w", "level=WARN msg=e", "level=ERROR msg=f"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing", want)
		}
	}
	if strings.Contains(got, "body") || strings.Contains(got, "msg=d") || strings.Contains(got, strings.Repeat("x", 201)) {
		t.Errorf("too much: %s", got)
	}
}
