package memory

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
	"github.com/aivedio/aivedio/ports/porttest"
)

func TestStore(t *testing.T) {
	t.Parallel()
	porttest.Store(t, func(*testing.T) porttest.StoreFixture {
		clock := porttest.NewClock()
		s := NewStore(clock.Now)
		return porttest.StoreFixture{
			Store: s, Clock: clock,
			InjectRollback: func(rate float64) {
				s.FailBeforeCommit(func() error {
					if rand.Float64() < rate {
						return fmt.Errorf("injected: %w", ports.ErrUnavailable)
					}
					return nil
				})
			},
			ExpireEvents: func(_ *testing.T, project domain.ProjectID, upTo int64) {
				s.mu.Lock()
				defer s.mu.Unlock()
				st := s.streams[project]
				st.events = st.events[st.from(upTo):]
				s.streams[project] = st
			},
			SetHead: func(_ *testing.T, project domain.ProjectID, last int64) {
				s.mu.Lock()
				defer s.mu.Unlock()
				st := s.streams[project]
				st.last = last
				s.streams[project] = st
			},
		}
	})
}
