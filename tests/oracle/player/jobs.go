package player

import (
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/kueue/pkg/workload"
)

// job is what the player knows of the job of a Workload.
type job struct {
	jobScript
	key types.NamespacedName
	// admission counts the admissions; timers of another one are void.
	admission int
	admitted  bool
	ready     bool
	wasReady  bool
	// checksSet tells whether the checks of this reservation are on their way.
	checksSet bool
	evictedAt time.Time
}

func conditionTrue(wl *kueue.Workload, name string) bool {
	return apimeta.IsStatusConditionTrue(wl.Status.Conditions, name)
}

func isFinished(wl *kueue.Workload) bool { return conditionTrue(wl, kueue.WorkloadFinished) }
func isEvicted(wl *kueue.Workload) bool  { return conditionTrue(wl, kueue.WorkloadEvicted) }
func isAdmitted(wl *kueue.Workload) bool { return conditionTrue(wl, kueue.WorkloadAdmitted) }

// setStatus changes the status of a Workload as the controllers of jobs and checks do.
func (r *run) setStatus(key types.NamespacedName, change func(*kueue.Workload)) {
	wl := r.store.workload(key)
	if wl == nil {
		return
	}
	change(wl)
	if err := r.store.Status().Update(r.ctx, wl); err != nil {
		r.fail(err)
	}
}

// playJob does for a Workload what the controllers of its job and its checks would do now.
func (r *run) playJob(key types.NamespacedName) {
	wl, job := r.store.workload(key), r.jobs[key]
	if wl == nil || job == nil || isFinished(wl) {
		return
	}
	if !workload.HasQuotaReservation(wl) {
		job.checksSet = false
	}
	if !isAdmitted(wl) || isEvicted(wl) {
		job.admitted = false
	}
	if !isEvicted(wl) {
		job.evictedAt = time.Time{}
	}
	if isAdmitted(wl) && !isEvicted(wl) && !job.admitted {
		r.enter(job)
	}
	if r.script.Config.WaitForPodsReady != nil && r.reportReadiness(wl, job) {
		return
	}
	if isEvicted(wl) && workload.HasQuotaReservation(wl) {
		r.release(wl, job)
		return
	}
	r.playChecks(wl, job)
}

// enter starts what an admission starts.
func (r *run) enter(job *job) {
	job.admitted, job.ready, job.wasReady = true, false, false
	job.admission++
	if r.script.Config.WaitForPodsReady == nil {
		r.finishLater(job)
		return
	}
	if len(job.ReadySeconds) == 0 {
		return
	}
	if after := job.ReadySeconds[min(job.admission, len(job.ReadySeconds))-1]; after != nil {
		r.readyAt(job, time.Now().Add(seconds(*after)))
	}
}

// finishLater sets the timer at which a job that begins now ends.
func (r *run) finishLater(job *job) {
	if job.RunSeconds == nil {
		return
	}
	r.timers.add(time.Now().Add(seconds(*job.RunSeconds)), finished, job.name(), func() { r.finish(job.key) }, r.voidFor(job))
}

// voidFor tells whether the admission of now is over.
func (r *run) voidFor(job *job) func() bool {
	admission := job.admission
	return func() bool {
		if !job.admitted || job.admission != admission {
			return true
		}
		wl := r.store.workload(job.key)
		return wl == nil || isFinished(wl) || isEvicted(wl) || !isAdmitted(wl)
	}
}

// goneFor tells whether the pods of this admission are gone. Those of a finished job still change, though nobody cares.
func (r *run) goneFor(job *job) func() bool {
	admission := job.admission
	return func() bool {
		return !job.admitted || job.admission != admission || r.store.workload(job.key) == nil
	}
}

func (j *job) name() string { return j.key.Namespace + "/" + j.key.Name }

func (j *job) stop() { j.admitted, j.ready = false, false }

// readyAt sets the timer at which the pods are ready.
func (r *run) readyAt(job *job, at time.Time) {
	r.timers.add(at, podsReady, job.name(), func() {
		job.ready = true
		if !job.wasReady {
			job.wasReady = true
			r.finishLater(job)
			if job.FailSeconds != nil {
				r.failAt(job, time.Now().Add(seconds(*job.FailSeconds)))
			}
		}
		r.playJob(job.key)
	}, r.goneFor(job))
}

func (r *run) failAt(job *job, at time.Time) {
	r.timers.add(at, podFails, job.name(), func() {
		job.ready = false
		if job.RecoverSeconds != nil {
			r.readyAt(job, time.Now().Add(seconds(*job.RecoverSeconds)))
		}
		r.playJob(job.key)
	}, r.goneFor(job))
}

// reportReadiness writes the condition PodsReady, and tells whether it had to.
func (r *run) reportReadiness(wl *kueue.Workload, job *job) bool {
	before := apimeta.FindStatusCondition(wl.Status.Conditions, kueue.WorkloadPodsReady)
	condition := metav1.Condition{
		Type: kueue.WorkloadPodsReady, Status: metav1.ConditionFalse, Reason: kueue.WorkloadWaitForStart,
		Message: "Not all pods are ready or succeeded",
	}
	switch {
	case !isAdmitted(wl):
	case job.ready:
		condition.Status, condition.Reason = metav1.ConditionTrue, kueue.WorkloadStarted
		if before != nil && (before.Reason == kueue.WorkloadWaitForRecovery || before.Reason == kueue.WorkloadRecovered) {
			condition.Reason = kueue.WorkloadRecovered
		}
		condition.Message = "All pods reached readiness and the workload is running"
	case before != nil && (before.Status == metav1.ConditionTrue || before.Reason == kueue.WorkloadWaitForRecovery):
		condition.Reason, condition.Message = kueue.WorkloadWaitForRecovery, "At least one pod has failed, waiting for recovery"
	}
	if before != nil && before.Status == condition.Status && before.Reason == condition.Reason {
		return false
	}
	r.setStatus(job.key, func(wl *kueue.Workload) { apimeta.SetStatusCondition(&wl.Status.Conditions, condition) })
	return true
}

// release gives the reservation of an evicted Workload back, at once or when its pods are gone.
func (r *run) release(wl *kueue.Workload, job *job) {
	evicted := apimeta.FindStatusCondition(wl.Status.Conditions, kueue.WorkloadEvicted)
	if r.script.own.EvictionSeconds == 0 {
		r.releaseNow(job)
		return
	}
	at := evicted.LastTransitionTime.Add(seconds(r.script.own.EvictionSeconds))
	if !job.evictedAt.Equal(evicted.LastTransitionTime.Time) {
		job.evictedAt = evicted.LastTransitionTime.Time
		r.timers.replace(at, evictionDone, job.name(), func() { r.releaseNow(job) }, func() bool {
			// Kueue may have written an older version, without the eviction.
			wl := r.store.workload(job.key)
			return wl != nil && !isFinished(wl) && !(isEvicted(wl) && workload.HasQuotaReservation(wl))
		})
	}
}

func (r *run) releaseNow(job *job) {
	job.evictedAt = time.Time{}
	wl := r.store.workload(job.key)
	if wl == nil || !isEvicted(wl) || !workload.HasQuotaReservation(wl) || isFinished(wl) {
		return
	}
	reason := apimeta.FindStatusCondition(wl.Status.Conditions, kueue.WorkloadEvicted).Reason
	if err := r.kueue.Release(r.ctx, r.store, wl); err != nil {
		r.fail(err)
		return
	}
	job.stop()
	r.logged(logEntry{Op: "evicted", Key: job.name(), Reason: reason})
}

// playChecks lets the admission checks of a reservation become Ready, all at once.
func (r *run) playChecks(wl *kueue.Workload, job *job) {
	pending := false
	longest := 0.0
	for _, check := range wl.Status.AdmissionChecks {
		if check.State == kueue.CheckStatePending {
			pending = true
			longest = max(longest, r.script.own.AdmissionChecks[string(check.Name)].Seconds)
		}
	}
	if !pending || !workload.HasQuotaReservation(wl) {
		return
	}
	if longest == 0 {
		r.readyChecks(job.key)
		return
	}
	if job.checksSet {
		return
	}
	job.checksSet = true
	r.timers.add(time.Now().Add(seconds(longest)), checksReady, job.name(), func() { r.readyChecks(job.key) }, func() bool {
		wl := r.store.workload(job.key)
		return !job.checksSet || wl == nil || isFinished(wl) || isEvicted(wl) || !workload.HasQuotaReservation(wl)
	})
}

func (r *run) readyChecks(key types.NamespacedName) {
	r.setStatus(key, func(wl *kueue.Workload) {
		for i := range wl.Status.AdmissionChecks {
			check := &wl.Status.AdmissionChecks[i]
			if check.State != kueue.CheckStatePending {
				continue
			}
			check.State, check.Message = kueue.CheckStateReady, "Ready at once"
			check.LastTransitionTime = metav1.NewTime(time.Now())
			if selector := r.script.own.AdmissionChecks[string(check.Name)].NodeSelector; selector != nil {
				check.PodSetUpdates = nil
				for _, podSet := range wl.Spec.PodSets {
					check.PodSetUpdates = append(check.PodSetUpdates, kueue.PodSetUpdate{Name: podSet.Name, NodeSelector: selector})
				}
			}
		}
	})
}

// finish ends a job.
func (r *run) finish(key types.NamespacedName) {
	if wl := r.store.workload(key); wl == nil || isFinished(wl) {
		return
	}
	r.logged(logEntry{Op: "finish", Key: key.Namespace + "/" + key.Name})
	r.setStatus(key, func(wl *kueue.Workload) {
		apimeta.SetStatusCondition(&wl.Status.Conditions, metav1.Condition{
			Type: kueue.WorkloadFinished, Status: metav1.ConditionTrue, Reason: "Succeeded", Message: "done",
		})
	})
}
