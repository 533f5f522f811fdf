package player

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing/synctest"
	"time"
	"unsafe"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1 "k8s.io/api/core/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/kueue/pkg/workload"
)

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

// sortSecondPasses fills the map of those that are ready anew, by key: timers that expire together fill it in any order.
// Go ranges over a small map from one of eight places, so that this order, which kueuecore takes, is the likeliest.
func (r *run) sortSecondPasses() {
	// The package keeps the map to itself.
	ready := *(*map[workload.Reference]*workload.Info)(unsafe.Pointer(inside(r.kueue.Queues, "secondPassQueue", "queued").UnsafeAddr()))
	found := maps.Clone(ready)
	clear(ready)
	for _, key := range slices.Sorted(maps.Keys(found)) {
		ready[key] = found[key]
	}
}
