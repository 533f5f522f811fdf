package player

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	utilqueue "sigs.k8s.io/kueue/pkg/util/queue"
	"sigs.k8s.io/kueue/pkg/workload"
)

// answer is what Kueue did, in the form of recorded runs.
type answer struct {
	Cycles          []*cycle   `json:"cycles"`
	Rounds          []round    `json:"rounds"`
	Log             []logEntry `json:"log,omitempty"`
	QuietMessages   []quiet    `json:"quietMessages,omitempty"`
	StaleHeapCycles []int      `json:"staleHeapCycles,omitempty"`
	Final           final      `json:"final"`

	took times
}

// times are how long each cycle took on this machine.
type times struct {
	SchedulingNanos []int64 `json:"schedulingNanos,omitempty"`
	// StoreNanos is the part of it in the store, WritingNanos that and the status patches of admissions.
	StoreNanos   []int64 `json:"storeNanos,omitempty"`
	WritingNanos []int64 `json:"writingNanos,omitempty"`
}

func (t *times) add(all, store, writing int64) {
	t.SchedulingNanos = append(t.SchedulingNanos, all)
	t.StoreNanos = append(t.StoreNanos, store)
	t.WritingNanos = append(t.WritingNanos, writing)
}

type cycle struct {
	N            int        `json:"n"`
	T            float64    `json:"t"`
	Admitted     []admitted `json:"admitted,omitempty"`
	Assigned     []admitted `json:"assigned,omitempty"`
	Preempting   []evicted  `json:"preempting,omitempty"`
	Evicted      []evicted  `json:"evicted,omitempty"`
	Finished     []evicted  `json:"finished,omitempty"`
	Inadmissible []string   `json:"inadmissible,omitempty"`
	Messages     []message  `json:"messages,omitempty"`
}

type admitted struct {
	Key          string   `json:"key"`
	ClusterQueue string   `json:"clusterQueue,omitempty"`
	PodSets      []podSet `json:"podSets"`
	T            *float64 `json:"t,omitempty"`
}

type podSet struct {
	Name                   string                             `json:"name"`
	Count                  *int32                             `json:"count,omitempty"`
	Flavors                map[string]string                  `json:"flavors,omitempty"`
	TopologyAssignment     *kueue.TopologyAssignment          `json:"topologyAssignment,omitempty"`
	DelayedTopologyRequest *kueue.DelayedTopologyRequestState `json:"delayedTopologyRequest,omitempty"`
}

type evicted struct {
	Key       string `json:"key"`
	Reason    string `json:"reason"`
	Preemptor string `json:"preemptor,omitempty"`
	Again     bool   `json:"again,omitempty"`
}

type message struct {
	Key     string `json:"key"`
	Type    string `json:"type"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

type quiet struct {
	N        int       `json:"n"`
	T        float64   `json:"t"`
	Messages []message `json:"messages"`
}

type round struct {
	T      float64 `json:"t"`
	Cycles [2]int  `json:"cycles"`
}

type logEntry struct {
	T      float64 `json:"t"`
	Op     string  `json:"op"`
	Key    string  `json:"key"`
	Reason string  `json:"reason,omitempty"`
}

type final struct {
	T             float64                                 `json:"t"`
	Cycles        int                                     `json:"cycles"`
	Stopped       string                                  `json:"stopped,omitempty"`
	Admitted      []admitted                              `json:"admitted,omitempty"`
	Usage         map[string]map[string]map[string]string `json:"usage,omitempty"`
	CohortUsage   map[string]map[string]map[string]string `json:"cohortUsage,omitempty"`
	TopologyUsage map[string]map[string]map[string]string `json:"topologyUsage,omitempty"`
	Queued        map[string][]string                     `json:"queued,omitempty"`
	Inadmissible  map[string][]string                     `json:"inadmissible,omitempty"`
	Statuses      map[string]status                       `json:"statuses,omitempty"`
	LocalQueues   map[string]localQueue                   `json:"localQueues,omitempty"`
}

type status struct {
	Conditions       []condition      `json:"conditions,omitempty"`
	RequeueCount     *int32           `json:"requeueCount,omitempty"`
	RequeueAt        *float64         `json:"requeueAt,omitempty"`
	Evictions        []evictionCount  `json:"evictions,omitempty"`
	AdmissionChecks  []check          `json:"admissionChecks,omitempty"`
	ResourceRequests []podSetRequests `json:"resourceRequests,omitempty"`
	UnhealthyNodes   []string         `json:"unhealthyNodes,omitempty"`
}

type condition struct {
	Type    string `json:"type"`
	Status  string `json:"status"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

type evictionCount struct {
	Reason          string `json:"reason"`
	UnderlyingCause string `json:"underlyingCause"`
	Count           int32  `json:"count"`
}

// text is the order of the entries in recorded runs.
func (e evictionCount) text() string {
	return fmt.Sprintf("%d,%s,%s", e.Count, e.Reason, e.UnderlyingCause)
}

type check struct {
	Name  string `json:"name"`
	State string `json:"state"`
}

type podSetRequests struct {
	Name      string            `json:"name"`
	Resources map[string]string `json:"resources"`
}

type localQueue struct {
	Consumed   map[string]string `json:"consumed,omitempty"`
	Penalty    map[string]string `json:"penalty,omitempty"`
	LastUpdate float64           `json:"lastUpdate"`
}

func (r *run) logged(entry logEntry) {
	entry.T = r.sinceStart(time.Now())
	r.answer.Log = append(r.answer.Log, entry)
}

var preemptorUID = regexp.MustCompile(`\(UID: ([^,]*),`)

// note adds what a write of the cycle means.
func (c *cycle) note(r *run, it change) {
	if it.old == nil || it.new == nil {
		return
	}
	key := keyOf(it.new).String()
	at := r.sinceStart(it.at)
	had, has := workload.HasQuotaReservation(it.old), workload.HasQuotaReservation(it.new)
	if !isFinished(it.old) && isFinished(it.new) {
		reason := apimeta.FindStatusCondition(it.new.Status.Conditions, kueue.WorkloadFinished).Reason
		c.Finished = append(c.Finished, evicted{Key: key, Reason: reason})
	}
	before := apimeta.FindStatusCondition(it.old.Status.Conditions, kueue.WorkloadEvicted)
	after := apimeta.FindStatusCondition(it.new.Status.Conditions, kueue.WorkloadEvicted)
	was := before != nil && before.Status == metav1.ConditionTrue
	evicts := after != nil && after.Status == metav1.ConditionTrue &&
		!(was && before.Message == after.Message && before.LastTransitionTime.Equal(&after.LastTransitionTime))
	switch {
	case !had && has && isEvicted(it.new):
		// No admission: the cycle had waited, and has written what it saw of a victim that had lost its quota since.
	case !had && has:
		entry := admission(it.new)
		if at != c.T {
			entry.T = &at
		}
		c.Admitted = append(c.Admitted, entry)
	case evicts:
		// It starts from the version before the cycle. If a second pass has assigned places, they are gone, not replaced.
	case had && has && !equality.Semantic.DeepEqual(it.old.Status.Admission, it.new.Status.Admission):
		entry := admission(it.new)
		entry.ClusterQueue = ""
		c.Assigned = append(c.Assigned, entry)
	}
	if !evicts {
		return
	}
	if after.Reason != kueue.WorkloadEvictedByPreemption {
		c.Evicted = append(c.Evicted, evicted{Key: key, Reason: after.Reason, Again: was})
		return
	}
	preempted := apimeta.FindStatusCondition(it.new.Status.Conditions, kueue.WorkloadPreempted)
	c.Preempting = append(c.Preempting, evicted{Key: key, Reason: preempted.Reason, Preemptor: r.byUID(preempted.Message)})
}

func (r *run) byUID(text string) string {
	found := preemptorUID.FindStringSubmatch(text)
	if found == nil {
		return ""
	}
	if key, is := r.store.workloadOf(types.UID(found[1])); is {
		return key.String()
	}
	return found[1]
}

func admission(wl *kueue.Workload) admitted {
	found := admitted{Key: keyOf(wl).String(), ClusterQueue: string(wl.Status.Admission.ClusterQueue), PodSets: []podSet{}}
	for _, assigned := range wl.Status.Admission.PodSetAssignments {
		entry := podSet{
			Name: string(assigned.Name), Count: assigned.Count, Flavors: map[string]string{},
			TopologyAssignment: assigned.TopologyAssignment, DelayedTopologyRequest: assigned.DelayedTopologyRequest,
		}
		for resource, flavor := range assigned.Flavors {
			entry.Flavors[string(resource)] = string(flavor)
		}
		found.PodSets = append(found.PodSets, entry)
	}
	return found
}

// acted tells whether the cycle reserved quota, changed an admission, evicted or finished anything.
func (c *cycle) acted() bool {
	return len(c.Admitted)+len(c.Assigned)+len(c.Preempting)+len(c.Evicted)+len(c.Finished) > 0
}

func (a *answer) add(found *cycle) {
	byKey := func(a, b admitted) int { return strings.Compare(a.Key, b.Key) }
	slices.SortStableFunc(found.Admitted, byKey)
	slices.SortStableFunc(found.Assigned, byKey)
	for _, list := range [][]evicted{found.Preempting, found.Evicted, found.Finished} {
		slices.SortStableFunc(list, func(a, b evicted) int { return strings.Compare(a.Key, b.Key) })
	}
	slices.SortStableFunc(found.Messages, func(a, b message) int {
		return cmp.Or(strings.Compare(a.Key, b.Key), strings.Compare(a.Reason, b.Reason), strings.Compare(a.Message, b.Message))
	})
	if found.acted() || len(found.Inadmissible) > 0 {
		a.Cycles = append(a.Cycles, found)
	} else if len(found.Messages) > 0 {
		a.QuietMessages = append(a.QuietMessages, quiet{N: found.N, T: found.T, Messages: found.Messages})
	}
}

// conclude writes down the end of a run.
func (r *run) conclude() error {
	end := &r.answer.Final
	end.T, end.Cycles = r.sinceStart(time.Now()), r.cycles
	usage, err := r.kueue.Usage(r.ctx)
	if err != nil {
		return err
	}
	end.Usage, end.CohortUsage, end.TopologyUsage = usage.ClusterQueues, usage.Cohorts, usage.Topology
	end.Statuses = map[string]status{}
	for _, wl := range r.store.workloads() {
		// Neither the usage nor the workloads of an inactive ClusterQueue are in a snapshot of the cache.
		if workload.HasQuotaReservation(&wl) && !isFinished(&wl) && r.kueue.Cache.ClusterQueueActive(wl.Status.Admission.ClusterQueue) {
			end.Admitted = append(end.Admitted, admission(&wl))
		}
		end.Statuses[keyOf(&wl).String()] = r.statusOf(&wl)
	}
	end.Queued, end.Inadmissible = map[string][]string{}, map[string][]string{}
	heaps, parked := r.kueue.Queues.Dump(), r.kueue.Queues.DumpInadmissible()
	for _, name := range r.kueue.Queues.GetClusterQueueNames() {
		for _, info := range r.kueue.Queues.PendingWorkloadsInfo(name) {
			key := workload.Key(info.Obj)
			if slices.Contains(heaps[name], key) {
				end.Queued[string(name)] = append(end.Queued[string(name)], string(key))
			}
			if slices.Contains(parked[name], key) {
				end.Inadmissible[string(name)] = append(end.Inadmissible[string(name)], string(key))
			}
		}
	}
	if r.script.Config.AdmissionFairSharing != nil {
		end.LocalQueues = map[string]localQueue{}
		queues := &kueue.LocalQueueList{}
		if err := r.store.List(r.ctx, queues); err != nil {
			return err
		}
		for _, queue := range queues.Items {
			key := keyOf(&queue).String()
			if ledger, found := r.kueue.LocalQueue(utilqueue.LocalQueueReference(key)); found {
				end.LocalQueues[key] = localQueue{
					Consumed: quantities(ledger.Consumed), Penalty: quantities(ledger.Penalty), LastUpdate: r.sinceStart(ledger.LastUpdate),
				}
			}
		}
	}
	return nil
}

func quantities(list corev1.ResourceList) map[string]string {
	found := map[string]string{}
	for name, quantity := range list {
		found[string(name)] = quantity.String()
	}
	return found
}

func (r *run) statusOf(wl *kueue.Workload) status {
	found := status{}
	done := isFinished(wl)
	for _, it := range wl.Status.Conditions {
		if !done || it.Type == kueue.WorkloadFinished {
			found.Conditions = append(found.Conditions, condition{it.Type, string(it.Status), it.Reason, it.Message})
		}
	}
	slices.SortFunc(found.Conditions, func(a, b condition) int { return strings.Compare(a.Type, b.Type) })
	if stats := wl.Status.SchedulingStats; stats != nil {
		for _, it := range stats.Evictions {
			found.Evictions = append(found.Evictions, evictionCount{it.Reason, string(it.UnderlyingCause), it.Count})
		}
		slices.SortFunc(found.Evictions, func(a, b evictionCount) int {
			return strings.Compare(a.text(), b.text())
		})
	}
	if done {
		return found
	}
	if state := wl.Status.RequeueState; state != nil {
		found.RequeueCount = state.Count
		if state.RequeueAt != nil {
			at := r.sinceStart(state.RequeueAt.Time)
			found.RequeueAt = &at
		}
	}
	for _, it := range wl.Status.AdmissionChecks {
		found.AdmissionChecks = append(found.AdmissionChecks, check{string(it.Name), string(it.State)})
	}
	slices.SortFunc(found.AdmissionChecks, func(a, b check) int { return strings.Compare(a.Name, b.Name) })
	for _, it := range wl.Status.ResourceRequests {
		found.ResourceRequests = append(found.ResourceRequests, podSetRequests{string(it.Name), quantities(it.Resources)})
	}
	for _, it := range wl.Status.UnhealthyNodes {
		found.UnhealthyNodes = append(found.UnhealthyNodes, it.Name)
	}
	return found
}
