package player

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1 "k8s.io/api/core/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// run is one case while it is played.
type run struct {
	ctx      context.Context
	script   *Case
	store    *store
	manager  *Manager
	kueue    *Kueue
	recorder *Recorder
	patience *patience
	writing  *stopwatch
	start    time.Time
	events   []event
	timers   timers
	jobs     map[types.NamespacedName]*job
	bad      map[string]time.Time
	// later holds the timers of nodes at which Kueue wants to look again.
	later map[string]*timer
	// handling is the key of the Workload whose watch event is delivered.
	handling string
	// touched are the keys that Kueue wants to reconcile though they did not change.
	touched map[types.NamespacedName]bool
	cycles  int
	// current is the cycle that runs.
	current *cycle
	answer  *answer
	failed  error
}

// sinceStart is the virtual time in seconds.
func (r *run) sinceStart(at time.Time) float64 { return at.Sub(r.start).Seconds() }

func (r *run) play() error {
	for _, raw := range r.script.Objects {
		object, err := decodeObject(raw)
		if err != nil {
			return err
		}
		r.create(object, jobScript{})
		r.settle()
	}
	for r.failed == nil {
		at, more := r.nextInstant()
		if !more {
			break
		}
		r.advance(at)
		r.instant(at)
		if stopped := r.round(); stopped {
			r.answer.Final.Stopped = "maxCycles"
			break
		}
	}
	return r.failed
}

// nextInstant is the time of the next event or timer. Sampling alone does not keep a run alive.
func (r *run) nextInstant() (time.Time, bool) {
	next := r.timers.next()
	if len(r.events) > 0 {
		at := r.start.Add(seconds(r.events[0].At))
		if next == nil || at.Before(next.at) {
			return at, true
		}
		return next.at, true
	}
	if next == nil || !slices.ContainsFunc(r.timers.set, func(it *timer) bool { return it.class != sampling }) {
		return time.Time{}, false
	}
	return next.at, true
}

func (r *run) advance(at time.Time) {
	if wait := time.Until(at); wait > 0 {
		time.Sleep(wait)
	}
}

// instant does everything of one time: events in their order, then timers.
func (r *run) instant(at time.Time) {
	for len(r.events) > 0 && r.start.Add(seconds(r.events[0].At)).Equal(at) {
		happening := r.events[0]
		r.events = r.events[1:]
		if err := r.apply(&happening); err != nil {
			r.fail(fmt.Errorf("event %s at %v: %w", happening.Op, happening.At, err))
			return
		}
		r.settle()
	}
	for {
		due := r.timers.take(func(it *timer) bool { return it.at.Equal(at) })
		if due == nil {
			return
		}
		due.fire()
		r.settle()
	}
}

func parseKey(key string) types.NamespacedName {
	namespace, name, found := strings.Cut(key, "/")
	if !found {
		return types.NamespacedName{Name: key}
	}
	return types.NamespacedName{Namespace: namespace, Name: name}
}

func (r *run) apply(it *event) error {
	switch it.Op {
	case "create":
		object, err := decodeObject(it.Object)
		if err != nil {
			return err
		}
		r.create(object, it.jobScript)
	case "update":
		object, err := decodeObject(it.Object)
		if err != nil {
			return err
		}
		r.update(object)
	case "finish":
		r.finish(parseKey(it.Key))
	case "delete":
		kind := it.Kind
		if kind == "" {
			kind = "Workload"
		}
		object, err := newObject(kind)
		if err != nil {
			return err
		}
		key := parseKey(it.Key)
		if r.store.Get(r.ctx, key, object) == nil {
			r.delete(object)
		}
	default:
		return fmt.Errorf("the player has no op %q", it.Op)
	}
	return nil
}

// create makes an object, or replaces one that is there already.
func (r *run) create(object client.Object, script jobScript) {
	err := r.store.Create(r.ctx, object)
	if apierrors.IsAlreadyExists(err) {
		r.update(object)
		return
	}
	if err != nil {
		r.fail(err)
		return
	}
	if _, is := object.(*kueue.Workload); is {
		r.jobs[keyOf(object)] = &job{jobScript: script, key: keyOf(object)}
		return // The store reports the change.
	}
	r.observed(nil, r.stored(object))
}

func (r *run) stored(object client.Object) client.Object {
	found := object.DeepCopyObject().(client.Object)
	if err := r.store.Get(r.ctx, keyOf(object), found); err != nil {
		r.fail(err)
	}
	return found
}

// update replaces an object. Of a Workload it replaces what a user may change, and the pods that can be given back.
func (r *run) update(object client.Object) {
	old := object.DeepCopyObject().(client.Object)
	if r.store.Get(r.ctx, keyOf(object), old) != nil {
		return // It is gone.
	}
	next := old.DeepCopyObject().(client.Object)
	next.SetLabels(object.GetLabels())
	next.SetAnnotations(object.GetAnnotations())
	part(next, "Spec").Set(part(object, "Spec"))
	if _, is := object.(*kueue.Cohort); is {
		next.SetLabels(old.GetLabels())
	}
	changes := false
	r.store.mu.Lock()
	stored, err := r.store.find(object)
	if err == nil {
		switch changed := object.(type) {
		case *kueue.Workload:
			if changed.Status.ReclaimablePods != nil {
				next.(*kueue.Workload).Status.ReclaimablePods = changed.Status.ReclaimablePods
			}
		case *corev1.Node, *corev1.Pod:
			part(next, "Status").Set(part(object, "Status"))
		}
		next.SetResourceVersion(stored.GetResourceVersion())
		// As with the API server, an update that changes nothing is no event.
		if changes = !equality.Semantic.DeepEqual(stored, next); changes {
			r.store.replace(r.ctx, stored, next)
		}
	}
	r.store.mu.Unlock()
	if _, is := object.(*kueue.Workload); !is && changes {
		r.observed(old, r.stored(object))
	}
}

func (r *run) delete(object client.Object) {
	if err := r.store.Delete(r.ctx, object); err != nil {
		r.fail(err)
		return
	}
	if _, is := object.(*kueue.Workload); is {
		if job := r.jobs[keyOf(object)]; job != nil {
			job.stop()
		}
		delete(r.jobs, keyOf(object))
		return
	}
	r.observed(object, nil)
}
