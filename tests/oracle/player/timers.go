package player

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/utils/clock"
)

// class orders the timers of one instant.
type class int

const (
	evictionDone class = iota
	finished
	checksReady
	podsReady
	podFails
	recheck
	sampling
	secondPass
	nodeCheck
)

// timer is something that happens later.
type timer struct {
	at    time.Time
	class class
	key   string
	order int
	fire  func()
	// void tells whether nothing is to happen any more. Such a timer does not move the clock.
	void func() bool
}

// timers are all that are set.
type timers struct {
	set   []*timer
	count int
}

// add sets a timer. A nil void means that it always fires.
func (t *timers) add(at time.Time, class class, key string, fire func(), void func() bool) *timer {
	t.count++
	added := &timer{at: at, class: class, key: key, order: t.count, fire: fire, void: void}
	t.set = append(t.set, added)
	return added
}

// replace sets a timer in the place of those of the same class and key. A nil void means that it always fires.
func (t *timers) replace(at time.Time, class class, key string, fire func(), void func() bool) {
	t.remove(class, key)
	t.add(at, class, key, fire, void)
}

func (t *timers) remove(class class, key string) {
	t.set = slices.DeleteFunc(t.set, func(it *timer) bool { return it.class == class && it.key == key })
}

func (t *timers) has(class class, key string) bool {
	return slices.ContainsFunc(t.set, func(it *timer) bool { return it.class == class && it.key == key })
}

func (t *timers) dropVoid() {
	t.set = slices.DeleteFunc(t.set, func(it *timer) bool { return it.void != nil && it.void() })
}

func compare(a, b *timer) int {
	key := cmp.Compare(a.key, b.key)
	if a.class == secondPass && b.class == secondPass {
		key = 0 // They fire in the order in which they were set.
	}
	return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.class, b.class), key, cmp.Compare(a.order, b.order))
}

// next returns the first timer that is not void, nil if there is none.
func (t *timers) next() *timer {
	t.dropVoid()
	if len(t.set) == 0 {
		return nil
	}
	return slices.MinFunc(t.set, compare)
}

// take returns the first timer that is due, and removes it.
func (t *timers) take(due func(*timer) bool) *timer {
	t.dropVoid()
	var found *timer
	for _, it := range t.set {
		if due(it) && (found == nil || compare(it, found) < 0) {
			found = it
		}
	}
	if found != nil {
		t.set = slices.DeleteFunc(t.set, func(it *timer) bool { return it == found })
	}
	return found
}

// virtualClock is the clock of the queues: its delayed functions are timers of the run.
type virtualClock struct {
	clock.RealClock
	run *run
}

// AfterFunc is how Kueue delays a second pass.
func (c virtualClock) AfterFunc(delay time.Duration, f func()) clock.Timer {
	c.run.prequeued(delay, f)
	return c.RealClock.NewTimer(0)
}
