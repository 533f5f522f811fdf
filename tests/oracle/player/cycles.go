package player

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing/synctest"
	"time"

	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/kueue/pkg/workload"
)

var errStuck = errors.New("a cycle waits for ever until pods are ready")

func (r *run) fail(err error) {
	if r.failed == nil {
		r.failed = err
	}
}

type queues map[kueue.ClusterQueueReference][]workload.Reference

func (r *run) active(dump queues) queues {
	found := queues{}
	for name, keys := range dump {
		if r.kueue.Cache.ClusterQueueActive(name) {
			slices.Sort(keys)
			found[name] = keys
		}
	}
	return found
}

func equalQueues(a, b queues) bool {
	return maps.EqualFunc(a, b, func(a, b []workload.Reference) bool { return slices.Equal(a, b) })
}

// round runs cycles until nothing moves any more, and tells whether the run has had enough of them.
func (r *run) round() bool {
	if r.failed != nil {
		return false
	}
	r.kueue.Requeue(r.ctx)
	first, quiet := r.cycles+1, 0
	began := r.sinceStart(time.Now())
	stopped := false
	for quiet < r.script.own.QuietCycles && (len(r.active(r.kueue.Queues.Dump())) > 0 || r.secondPassReady()) {
		if r.cycles >= r.script.own.MaxCycles {
			stopped = true
			break
		}
		if r.cycle() {
			quiet = 0
		} else {
			quiet++
		}
		if r.failed != nil {
			return false
		}
	}
	r.answer.Rounds = append(r.answer.Rounds, round{T: began, Cycles: [2]int{first, r.cycles}})
	return stopped || r.cycles >= r.script.own.MaxCycles
}

// cycle runs one, and tells whether it changed anything that can be seen.
func (r *run) cycle() bool {
	r.cycles++
	heaps, inadmissible := r.active(r.kueue.Queues.Dump()), r.active(r.kueue.Queues.DumpInadmissible())
	if r.staleHeap() {
		r.answer.StaleHeapCycles = append(r.answer.StaleHeapCycles, r.cycles)
	}
	found := &cycle{N: r.cycles, T: r.sinceStart(time.Now())}
	r.sortSecondPasses()
	r.recorder.take()
	r.schedule(found)
	if r.failed != nil {
		return false
	}
	found.Messages = r.recorder.take()
	found.Inadmissible = newKeys(r.active(r.kueue.Queues.DumpInadmissible()), inadmissible)
	r.settle()
	r.current = nil
	changed := found.acted() ||
		!equalQueues(heaps, r.active(r.kueue.Queues.Dump())) ||
		!equalQueues(inadmissible, r.active(r.kueue.Queues.DumpInadmissible()))
	r.answer.add(found)
	r.kueue.Requeue(r.ctx)
	time.Sleep(time.Duration(r.script.own.CycleStepMs) * time.Millisecond)
	for {
		due := r.timers.take(func(it *timer) bool { return it.class == secondPass && !it.at.After(time.Now()) })
		if due == nil {
			return changed
		}
		due.fire()
		r.settle()
	}
}

func newKeys(after, before queues) []string {
	var found []string
	for name, keys := range after {
		for _, key := range keys {
			if !slices.Contains(before[name], key) {
				found = append(found, string(key))
			}
		}
	}
	slices.Sort(found)
	return found
}

// schedule runs a cycle. While it waits until pods are ready, time goes on.
func (r *run) schedule(found *cycle) {
	done := make(chan any, 1)
	r.store.busy.take()
	r.writing.take()
	began := monotonic()
	go func() {
		defer func() { done <- recover() }()
		r.kueue.Schedule(scheduledBy(r.ctx))
		r.answer.took.add(monotonic()-began, r.store.busy.take(), r.writing.take())
	}()
	r.current = found
	for {
		synctest.Wait()
		select {
		case panicked := <-done:
			if panicked != nil {
				r.fail(crash{panicked})
			}
			return
		default:
		}
		r.settle()
		at, more := r.nextInstant()
		if !more {
			r.fail(errStuck)
			return
		}
		r.advance(at)
		r.instant(at)
		r.patience.over()
	}
}

// crash is a panic of Kueue.
type crash struct{ value any }

func (c crash) Error() string { return fmt.Sprint(c.value) }

// staleHeap tells whether a heap has another top than the first of its queue, as usage changed since it was built.
func (r *run) staleHeap() bool {
	if r.script.Config.AdmissionFairSharing == nil {
		return false
	}
	for name, keys := range r.active(r.kueue.Queues.Dump()) {
		queue := inside(r.kueue.Queues, "hm", "clusterQueues").MapIndex(reflect.ValueOf(name))
		top := inside(queue, "heap", "data", "keys").Index(0).String()
		for _, info := range r.kueue.Queues.PendingWorkloadsInfo(name) {
			if key := workload.Key(info.Obj); slices.Contains(keys, key) {
				if string(key) != top {
					return true
				}
				break
			}
		}
	}
	return false
}
