package player

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/kueue/pkg/workload"
)

// isBad tells whether pods on a node end after a while.
func isBad(node *corev1.Node) bool {
	for _, taint := range node.Spec.Taints {
		if taint.Effect == corev1.TaintEffectNoSchedule || taint.Effect == corev1.TaintEffectNoExecute {
			return true
		}
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
			return false
		}
	}
	return true
}

// watchNode notes since when a node is bad.
func (r *run) watchNode(name string, node *corev1.Node) {
	if node == nil || !isBad(node) {
		delete(r.bad, name)
		r.timers.remove(nodeCheck, name)
		return
	}
	if _, already := r.bad[name]; !already {
		r.bad[name] = time.Now()
	}
}

// lookAtNode lets Kueue look at a node that has changed, and again when the pods that linger there are gone.
func (r *run) lookAtNode(name string) {
	if since, is := r.bad[name]; is && since.Equal(time.Now()) {
		r.waitForPods(name)
	}
	r.reconcileNode(name)
}

func (r *run) waitForPods(name string) {
	var delays []float64
	for _, wl := range r.store.workloads() {
		job := r.jobs[keyOf(&wl)]
		if job != nil && job.LingerSeconds != nil && onNode(&wl, name) && !slices.Contains(delays, *job.LingerSeconds) {
			delays = append(delays, *job.LingerSeconds)
		}
	}
	for _, delay := range delays {
		r.checkNodeAt(name, time.Now().Add(seconds(delay)))
	}
}

func (r *run) checkNodeAt(name string, at time.Time) *timer {
	return r.timers.add(at, nodeCheck, name, func() { r.reconcileNode(name) }, nil)
}

func (r *run) reconcileNode(name string) {
	controller := r.manager.named("tas_node_controller")
	if controller == nil {
		return
	}
	result, err := controller.do.Reconcile(r.ctx, reconcile.Request{NamespacedName: types.NamespacedName{Name: name}})
	if err != nil {
		r.fail(err)
	}
	// Each look says anew when to look again.
	r.timers.set = slices.DeleteFunc(r.timers.set, func(it *timer) bool { return it == r.later[name] })
	if delete(r.later, name); result.RequeueAfter > 0 {
		r.later[name] = r.checkNodeAt(name, time.Now().Add(result.RequeueAfter))
	}
}

func onNode(wl *kueue.Workload, node string) bool {
	return isAdmitted(wl) && wl.Status.Admission != nil && slices.Contains(workload.TASAssignedNodeNames(wl), node)
}

// podsOn lists the pods of jobs that still run on a node. Only those of jobs that linger are played.
func (r *run) podsOn(node, namespace string) []corev1.Pod {
	var found []corev1.Pod
	for key, job := range r.jobs {
		if job.LingerSeconds == nil || key.Namespace != namespace {
			continue
		}
		since, bad := r.bad[node]
		if bad && time.Since(since) >= seconds(*job.LingerSeconds) {
			continue
		}
		if wl := r.store.workload(key); wl != nil && onNode(wl, node) {
			found = append(found, corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: key.Name + "-on-" + node},
				Spec:       corev1.PodSpec{NodeName: node},
				Status:     corev1.PodStatus{Phase: corev1.PodRunning},
			})
		}
	}
	return found
}
