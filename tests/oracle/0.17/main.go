// The oracle of Kueue 0.17: the real thing, played in virtual time.
package main

import (
	"context"
	"fmt"
	_ "unsafe" // for go:linkname

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kueuecore/oracle/player"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	qcache "sigs.k8s.io/kueue/pkg/cache/queue"
	schdcache "sigs.k8s.io/kueue/pkg/cache/scheduler"
	"sigs.k8s.io/kueue/pkg/controller/core"
	"sigs.k8s.io/kueue/pkg/controller/tas"
	"sigs.k8s.io/kueue/pkg/features"
	"sigs.k8s.io/kueue/pkg/resources"
	"sigs.k8s.io/kueue/pkg/scheduler"
	preemptexpectations "sigs.k8s.io/kueue/pkg/scheduler/preemption/expectations"
	utilqueue "sigs.k8s.io/kueue/pkg/util/queue"
	"sigs.k8s.io/kueue/pkg/util/wait"
	"sigs.k8s.io/kueue/pkg/workload"
)

func main() { player.Main(build) }

//go:linkname schedule sigs.k8s.io/kueue/pkg/scheduler.(*Scheduler).schedule
func schedule(*scheduler.Scheduler, context.Context) wait.SpeedSignal

// recorder writes down the events of the scheduler.
type recorder struct{ *player.Recorder }

var _ record.EventRecorder = recorder{}

func (r recorder) Event(object runtime.Object, kind, reason, text string) {
	r.Record(object, kind, reason, text)
}

func (r recorder) Eventf(object runtime.Object, kind, reason, text string, arguments ...any) {
	r.Record(object, kind, reason, fmt.Sprintf(text, arguments...))
}

func (r recorder) AnnotatedEventf(object runtime.Object, _ map[string]string, kind, reason, text string, arguments ...any) {
	r.Eventf(object, kind, reason, text, arguments...)
}

func build(ctx context.Context, setup player.Setup) (*player.Kueue, error) {
	expectations := preemptexpectations.New()
	cache := schdcache.New(setup.Client,
		schdcache.WithPodsReadyTracking(setup.BlocksAdmission()),
		schdcache.WithFairSharing(setup.Config.FairSharing != nil),
		schdcache.WithAdmissionFairSharing(setup.Config.AdmissionFairSharing),
		schdcache.WithExcludedResourcePrefixes(setup.ExcludedPrefixes()),
		schdcache.WithResourceTransformations(setup.Transformations()))
	queues, requeuer := qcache.NewManagerForUnitTestsWithRequeuer(setup.Client, cache,
		qcache.WithClock(setup.Clock),
		qcache.WithPodsReadyRequeuingTimestamp(setup.RequeuingTimestamp()),
		qcache.WithAdmissionFairSharing(setup.Config.AdmissionFairSharing),
		qcache.WithPreemptionExpectations(expectations),
		qcache.WithExcludedResourcePrefixes(setup.ExcludedPrefixes()),
		qcache.WithResourceTransformations(setup.Transformations()))
	if err := setup.Indexes(ctx); err != nil {
		return nil, err
	}
	if name, err := core.SetupControllers(setup.Manager, queues, cache, setup.Config, nil, expectations, nil); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if features.Enabled(features.TopologyAwareScheduling) {
		if name, err := tas.SetupControllers(setup.Manager, queues, cache, setup.Config, nil); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	real := scheduler.New(queues, cache, setup.Client, recorder{setup.Recorder},
		scheduler.WithPodsReadyRequeuingTimestamp(setup.RequeuingTimestamp()),
		scheduler.WithFairSharing(setup.Config.FairSharing),
		scheduler.WithAdmissionFairSharing(setup.Config.AdmissionFairSharing),
		scheduler.WithPreemptionExpectations(expectations))
	return &player.Kueue{
		Queues:     queues,
		Cache:      cache,
		Requeue:    requeuer.ProcessRequeues,
		Schedule:   func(ctx context.Context) { schedule(real, ctx) },
		Release:    release,
		DrainNodes: func(context.Context) {}, // This release notifies nobody.
		Usage: func(ctx context.Context) (player.Usage, error) {
			snapshot, err := cache.Snapshot(ctx)
			if err != nil {
				return player.Usage{}, err
			}
			usage := player.NewUsage(cache, resources.ResourceQuantityString,
				func(used resources.Requests) map[corev1.ResourceName]int64 { return used })
			for name, queue := range snapshot.ClusterQueues() {
				for at, amount := range queue.ResourceNode.Usage {
					usage.OfClusterQueue(name, at, amount, resources.ResourceQuantityString(at.Resource, amount))
				}
			}
			for name, cohort := range snapshot.Cohorts() {
				for at, amount := range cohort.ResourceNode.Usage {
					usage.OfCohort(name, at, amount, resources.ResourceQuantityString(at.Resource, amount))
				}
			}
			return usage, nil
		},
		LocalQueue: func(key utilqueue.LocalQueueReference) (player.Ledger, bool) {
			entry, found := queues.AfsConsumedResources.Get(key)
			return player.Ledger{
				Consumed: entry.Resources, Penalty: queues.AfsEntryPenalties.Peek(key), LastUpdate: entry.LastUpdate,
			}, found
		},
	}, nil
}

// release is what the reconciler of a job does when the pods of an evicted workload are gone.
func release(ctx context.Context, api client.Client, wl *kueue.Workload) error {
	evicted := apimeta.FindStatusCondition(wl.Status.Conditions, kueue.WorkloadEvicted)
	return workload.PatchAdmissionStatus(ctx, api, wl, clock.RealClock{}, func(wl *kueue.Workload) (bool, error) {
		again := evicted.Reason == kueue.WorkloadEvictedByPreemption || evicted.Reason == kueue.WorkloadEvictedDueToNodeFailures
		requeued := workload.SetRequeuedCondition(wl, evicted.Reason, evicted.Message, again)
		unset := workload.UnsetQuotaReservationWithCondition(wl, "Pending", evicted.Message, clock.RealClock{}.Now())
		return requeued || unset, nil
	})
}
