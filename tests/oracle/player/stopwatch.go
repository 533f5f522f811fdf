package player

import (
	"sync"
	_ "unsafe" // for go:linkname
)

// stopwatch adds up the time of the machine in which at least one of its users is at work.
type stopwatch struct {
	mu           sync.Mutex
	users        int
	since, total int64
}

// start counts until the function that it returns is called.
func (s *stopwatch) start() (stop func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users++; s.users == 1 {
		s.since = monotonic()
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.users--; s.users == 0 {
			s.total += monotonic() - s.since
		}
	}
}

// take returns what was counted since the last call.
func (s *stopwatch) take() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	total := s.total
	s.total = 0
	return total
}

// monotonic is the time of the machine: that of the run stands still while a cycle runs.
//
//go:linkname monotonic runtime.nanotime
func monotonic() int64
