package stream

import (
	"testing"
	"testing/synctest"

	"github.com/prometheus/client_golang/prometheus"
)

func TestCollector(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil)
		b.open(StreamRequest{}, "/events?after=0", false)
		b.commit(taskA)
		synctest.Wait()
		registry := prometheus.NewPedanticRegistry()
		registry.MustRegister(b.hub.Collector())
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		values := map[string]float64{}
		for _, f := range families {
			m := f.GetMetric()[0]
			values[f.GetName()] = m.GetGauge().GetValue() + m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
		for _, name := range []string{"connections", "events_written_total", "delivery_seconds"} {
			if values["aivedio_stream_"+name] != 1 {
				t.Errorf("%s is %v, want 1", name, values["aivedio_stream_"+name])
			}
		}
	})
}
