package player

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1 "k8s.io/api/core/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/kueue/pkg/workload"
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

var errStuck = errors.New("a cycle waits for ever until pods are ready")

func (r *run) fail(err error) {
	if r.failed == nil {
		r.failed = err
	}
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
		at, any := r.nextInstant()
		if !any {
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

// observed tells Kueue's controllers of an object that is no Workload, and lets them do at once what they then do.
func (r *run) observed(old, new client.Object) {
	object := new
	if object == nil {
		object = old
	}
	_, isPod := object.(*corev1.Pod)
	for _, it := range r.manager.controllers {
		// A node controller that looks at a node for every pod would find what nobody plays.
		if it.name == "tas_node_controller" && isPod {
			continue
		}
		it.deliver(old, new)
	}
	synctest.Wait()
	switch object := object.(type) {
	case *kueue.Cohort:
		r.reconcileAll("cohort_controller")
	case *corev1.Node:
		var node *corev1.Node
		if new != nil {
			node = object
		}
		r.watchNode(object.Name, node)
		r.reconcileAll("tas_resource_flavor_controller")
		for _, request := range r.waiting("tas_node_controller") {
			r.lookAtNode(request.Name)
		}
	case *corev1.Pod:
		r.reconcileAll("tas-non-tas-usage-controller")
		r.kueue.DrainNodes(r.ctx)
	case *kueue.ResourceFlavor:
		r.reconcileAll("tas_resource_flavor_controller")
	}
	r.sampleNew()
	for _, request := range r.waiting("workload_controller") {
		r.touched[request.NamespacedName] = true
	}
	// Statuses of queues, cohorts and topologies decide nothing.
	for _, it := range r.manager.controllers {
		it.waiting.take()
	}
}

func (r *run) waiting(name string) []reconcile.Request {
	if it := r.manager.named(name); it != nil {
		return it.waiting.take()
	}
	return nil
}

func (r *run) reconcileAll(name string) {
	for _, request := range r.waiting(name) {
		if _, err := r.manager.named(name).do.Reconcile(r.ctx, request); err != nil {
			// Kueue would try again later, which changes nothing as long as nothing else does: a cycle of cohorts.
			r.logged(logEntry{Op: "error", Key: request.Name, Reason: err.Error()})
		}
	}
}

// sampleNew begins to sample the usage of LocalQueues that are new, go on, or whose ClusterQueue has become active.
func (r *run) sampleNew() {
	if r.script.Config.AdmissionFairSharing == nil {
		return
	}
	r.reconcileAll("clusterqueue_controller")
	queues := &kueue.LocalQueueList{}
	if err := r.store.List(r.ctx, queues); err != nil {
		r.fail(err)
	}
	for _, queue := range queues.Items {
		if !r.timers.has(sampling, keyOf(&queue).String()) {
			r.sample(keyOf(&queue))
		}
	}
}

// sample lets Kueue sample the usage of a LocalQueue, and again when it asks for that.
func (r *run) sample(key types.NamespacedName) {
	result, err := r.manager.named("localqueue_controller").do.Reconcile(r.ctx, reconcile.Request{NamespacedName: key})
	if err != nil {
		r.fail(err)
	}
	if result.RequeueAfter > 0 {
		r.timers.replace(time.Now().Add(result.RequeueAfter), sampling, key.String(), func() { r.sample(key) })
	}
}

// settle delivers what changed, and lets controllers and jobs react, until nothing changes any more.
func (r *run) settle() {
	controller := r.manager.named("workload_controller")
	for r.failed == nil {
		changes := r.store.takeChanges()
		keys := r.touched
		r.touched = map[types.NamespacedName]bool{}
		if len(changes) == 0 && len(keys) == 0 {
			return
		}
		slices.SortStableFunc(changes, func(a, b change) int { return strings.Compare(a.key.String(), b.key.String()) })
		for _, it := range changes {
			if it.scheduled && r.current != nil {
				r.current.note(r, it)
			}
			r.handling = it.key.String()
			controller.deliver(asObject(it.old), asObject(it.new))
			keys[it.key] = true
		}
		r.handling = ""
		synctest.Wait()
		controller.waiting.take()
		sorted := slices.SortedFunc(maps.Keys(keys), func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) })
		for _, key := range sorted {
			r.reconcileWorkload(controller, key)
			r.playJob(key)
		}
	}
}

// asObject keeps a nil pointer from becoming an interface that is not nil.
func asObject(wl *kueue.Workload) client.Object {
	if wl == nil {
		return nil
	}
	return wl
}

func (r *run) reconcileWorkload(controller *controller, key types.NamespacedName) {
	result, err := controller.do.Reconcile(r.ctx, reconcile.Request{NamespacedName: key})
	// The queue of a real controller hands the key out again after milliseconds.
	for tries := 0; err != nil && tries < 5; tries++ {
		result, err = controller.do.Reconcile(r.ctx, reconcile.Request{NamespacedName: key})
	}
	if err != nil {
		r.fail(fmt.Errorf("workload %s: %w", key, err))
	}
	if result.RequeueAfter <= 0 {
		r.timers.remove(recheck, key.String())
		return
	}
	r.timers.replace(time.Now().Add(result.RequeueAfter), recheck, key.String(), func() {
		r.touched[key] = true
	})
}

// prequeued notes that a workload will come to a second pass.
func (r *run) prequeued(delay time.Duration, ready func()) {
	key := r.handling
	if key == "" {
		waiting := map[string]bool{}
		for _, it := range r.timers.set {
			if it.class == secondPass {
				waiting[it.key] = true
			}
		}
		for _, found := range inside(r.kueue.Queues, "secondPassQueue", "prequeued").MapKeys() {
			if !waiting[found.String()] {
				key = found.String()
			}
		}
	}
	r.timers.add(time.Now().Add(delay), secondPass, key, ready, func() bool { return !r.isPrequeued(key) })
}

func (r *run) isPrequeued(key string) bool {
	for _, found := range inside(r.kueue.Queues, "secondPassQueue", "prequeued").MapKeys() {
		if found.String() == key {
			return true
		}
	}
	return false
}

func (r *run) secondPassReady() bool {
	return inside(r.kueue.Queues, "secondPassQueue", "queued").Len() > 0
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
		at, any := r.nextInstant()
		if !any {
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
