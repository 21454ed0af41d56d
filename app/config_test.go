package app_test

import (
	"strings"
	"testing"
	"time"

	"github.com/aivedio/aivedio/app"
)

// Every use case says at once all that it misses.
func TestConstructorsNameWhatIsMissing(t *testing.T) {
	t.Parallel()
	for name, build := range map[string]func() error{
		"Submit":    func() error { _, err := app.NewSubmit(app.SubmitDeps{}, app.SubmitConfig{}); return err },
		"Submitter": func() error { _, err := app.NewSubmitter(app.SubmitterDeps{}, app.SubmitterConfig{}); return err },
		"Receive":   func() error { _, err := app.NewReceive(app.ReceiveDeps{}, app.ReceiveConfig{}); return err },
		"Process":   func() error { _, err := app.NewProcess(app.ProcessDeps{}, app.ProcessConfig{}); return err },
		"Poll":      func() error { _, err := app.NewPoll(app.PollDeps{}, app.PollConfig{}); return err },
		"Relay":     func() error { _, err := app.NewRelay(app.RelayDeps{}, app.RelayConfig{}); return err },
		"Dispatch":  func() error { _, err := app.NewDispatch(app.DispatchDeps{}, app.DispatchConfig{}); return err },
		"Cancel":    func() error { _, err := app.NewCancel(app.CommandDeps{}); return err },
		"CancelSender": func() error {
			_, err := app.NewCancelSender(app.CancelSenderDeps{}, app.CancelSenderConfig{})
			return err
		},
		"Retry":   func() error { _, err := app.NewRetry(app.RetryDeps{}); return err },
		"Resolve": func() error { _, err := app.NewResolve(app.ResolveDeps{}); return err },
		"Media":   func() error { _, err := app.NewMedia(app.MediaDeps{}, app.MediaConfig{}); return err },
		"Sweep":   func() error { _, err := app.NewSweep(app.SweepDeps{}, app.SweepConfig{}); return err },
		"Access":  func() error { _, err := app.NewAccess(app.AccessDeps{}, app.AccessConfig{}); return err },
	} {
		err := build()
		if err == nil || !strings.Contains(err.Error(), "NewID is required") || strings.Count(err.Error(), "is required") < 2 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestConfigs(t *testing.T) {
	t.Parallel()
	type config interface{ Validate() error }
	for name, cfg := range map[string]config{
		"submit": app.SubmitConfig{}, "submitter": app.SubmitterConfig{}, "receive": app.ReceiveConfig{}, "process": app.ProcessConfig{},
		"poll": app.PollConfig{}, "relay": app.RelayConfig{}, "dispatch": app.DispatchConfig{}, "cancel": app.CancelSenderConfig{},
		"media": app.MediaConfig{}, "sweep": app.SweepConfig{}, "access": app.AccessConfig{}, "quota": app.QuotaConfig{},
	} {
		if err := cfg.Validate(); err != nil {
			t.Errorf("the zero config of %s: %v", name, err)
		}
	}
	for name, cfg := range map[string]config{
		"negative prompt":    app.SubmitConfig{MaxPrompt: -1},
		"negative credits":   app.SubmitConfig{DefaultCredits: -1},
		"negative price":     app.SubmitConfig{Credits: map[string]int64{"acme": -1}},
		"negative flushers":  app.ReceiveConfig{Flushers: -1},
		"queue below batch":  app.ReceiveConfig{Batch: 10, Queue: 5},
		"negative workers":   app.ProcessConfig{Workers: -1},
		"negative window":    app.DispatchConfig{RepeatWindow: -1},
		"negative period":    app.SweepConfig{HeadsEvery: -1},
		"negative watch":     app.WebhookWatchConfig{Enough: -1},
		"negative size":      app.MediaConfig{MaxBytes: -1},
		"download past":      app.MediaConfig{OperationConfig: app.OperationConfig{Timeout: time.Hour}},
		"retry past its cap": app.CancelSenderConfig{OperationConfig: app.OperationConfig{Retry: time.Hour}},
		"negative tries":     app.CancelSenderConfig{OperationConfig: app.OperationConfig{MaxTries: -1}},
		"burst without rate": app.QuotaConfig{Models: map[string]app.Rate{"acme:kite": {Burst: 1}}},
	} {
		if cfg.Validate() == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

func TestMetricsAreWellNamed(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, m := range app.AllMetrics() {
		counter := strings.HasSuffix(m.Name, "_total")
		if seen[m.Name] || !strings.HasPrefix(m.Name, "aivedio_") || m.Help == "" || counter == (len(m.Buckets) > 0 || m.Gauge) {
			t.Errorf("metric %+v", m)
		}
		seen[m.Name] = true
	}
	app.NopMetrics{}.Add(app.MetricPublished, 1)
	app.NopMetrics{}.Observe(app.MetricPublishLag, 1)
	app.NopMetrics{}.Set(&app.Metric{Gauge: true}, 1)
}
