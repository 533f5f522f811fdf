// The oracle of Kueue 0.19: the real thing, played in virtual time.
package main

import (
	"context"
	"fmt"
	_ "unsafe" // for go:linkname

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kueuecore/oracle/player"
	configapi "sigs.k8s.io/kueue/apis/config/v1beta2"
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
	workloadpatching "sigs.k8s.io/kueue/pkg/workload/patching"
)

func main() { player.Main(build) }

//go:linkname schedule sigs.k8s.io/kueue/pkg/scheduler.(*Scheduler).schedule
func schedule(*scheduler.Scheduler, context.Context) wait.SpeedSignal

//go:linkname drainPendingNodes sigs.k8s.io/kueue/pkg/controller/tas.(*NonTasUsageReconciler).drainPendingNodes
func drainPendingNodes(*tas.NonTasUsageReconciler, context.Context)

// recorder writes down the events of the scheduler.
type recorder struct{ *player.Recorder }

var _ events.EventRecorder = recorder{}

func (r recorder) Eventf(object, _ runtime.Object, kind, reason, _, text string, arguments ...any) {
	if len(arguments) > 0 {
		text = fmt.Sprintf(text, arguments...)
	}
	r.Record(object, kind, reason, text)
}

func build(ctx context.Context, setup player.Setup) (*player.Kueue, error) {
	formatter := resources.NewResourceFormatter()
	expectations := preemptexpectations.New()
	cache := schdcache.New(setup.Client,
		schdcache.WithPodsReadyTracking(setup.BlocksAdmission()),
		schdcache.WithFairSharing(setup.Config.FairSharing != nil),
		schdcache.WithAdmissionFairSharing(setup.Config.AdmissionFairSharing),
		schdcache.WithExcludedResourcePrefixes(setup.ExcludedPrefixes()),
		schdcache.WithResourceTransformations(setup.Transformations()),
		schdcache.WithResourceFormatter(formatter))
	queues, requeuer := qcache.NewManagerForUnitTestsWithRequeuer(setup.Client, cache,
		qcache.WithClock(setup.Clock),
		qcache.WithPodsReadyRequeuingTimestamp(setup.RequeuingTimestamp()),
		qcache.WithAdmissionFairSharing(setup.Config.AdmissionFairSharing),
		qcache.WithPreemptionExpectations(expectations),
		qcache.WithExcludedResourcePrefixes(setup.ExcludedPrefixes()),
		qcache.WithResourceTransformations(setup.Transformations()),
		qcache.WithResourceFormatter(formatter))
	if err := setup.Indexes(ctx); err != nil {
		return nil, err
	}
	if name, err := core.SetupControllers(setup.Manager, queues, cache, setup.Config, core.SetupControllersOpts{
		PreemptionExpectations: expectations, ResourceFormatter: formatter,
	}); err != nil {
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
		scheduler.WithQuotaCheckStrategy(quotaCheckStrategy(setup.Config)),
		scheduler.WithPreemptionExpectations(expectations),
		scheduler.WithResourceFormatter(formatter))
	return &player.Kueue{
		Queues:   queues,
		Cache:    cache,
		Requeue:  requeuer.ProcessRequeues,
		Schedule: func(ctx context.Context) { schedule(real, ctx) },
		Release:  release,
		DrainNodes: func(ctx context.Context) {
			for _, runnable := range setup.Manager.Runnables {
				if pods, is := runnable.(*tas.NonTasUsageReconciler); is {
					drainPendingNodes(pods, ctx)
				}
			}
		},
		Usage: func(ctx context.Context) (player.Usage, error) {
			snapshot, err := cache.Snapshot(ctx)
			if err != nil {
				return player.Usage{}, err
			}
			usage := player.NewUsage(cache, formatter.ResourceQuantityString, resources.ToMap)
			for name, queue := range snapshot.ClusterQueues() {
				for at, amount := range queue.ResourceNode.Usage {
					usage.OfClusterQueue(name, at, amount.Int64(), formatter.ResourceQuantityString(at.Resource, amount.Int64()))
				}
			}
			for name, cohort := range snapshot.Cohorts() {
				for at, amount := range cohort.ResourceNode.Usage {
					usage.OfCohort(name, at, amount.Int64(), formatter.ResourceQuantityString(at.Resource, amount.Int64()))
				}
			}
			return usage, nil
		},
		LocalQueue: func(key utilqueue.LocalQueueReference) (player.Ledger, bool) {
			entry, found := queues.AfsUsageLedger.Get(key)
			return player.Ledger{Consumed: entry.Resources, Penalty: entry.PendingPenalty(), LastUpdate: entry.LastUpdate}, found
		},
	}, nil
}

func quotaCheckStrategy(config *configapi.Configuration) configapi.QuotaCheckStrategy {
	if features.Enabled(features.QuotaCheckStrategy) && config.Resources != nil && config.Resources.QuotaCheckStrategy != nil {
		return *config.Resources.QuotaCheckStrategy
	}
	return configapi.QuotaCheckBlockUndeclared
}

// release is what the reconciler of a job does when the pods of an evicted workload are gone.
func release(ctx context.Context, api client.Client, wl *kueue.Workload) error {
	evicted := apimeta.FindStatusCondition(wl.Status.Conditions, kueue.WorkloadEvicted)
	return workloadpatching.PatchAdmissionStatus(ctx, api, wl, clock.RealClock{}, func(wl *kueue.Workload) (bool, error) {
		again := evicted.Reason == kueue.WorkloadEvictedByPreemption || evicted.Reason == kueue.WorkloadEvictedDueToNodeFailures
		if features.Enabled(features.SkipReassignmentForPodOwnedWorkloads) && workload.OwnedBySinglePod(wl) {
			again = false
		}
		reason := workload.UnadmittedWorkloadReasonWithFallback(
			kueue.WorkloadQuotaReservedReasonPendingEvaluation, kueue.WorkloadPending) //nolint:staticcheck // the fallback is deprecated
		requeued := workload.SetRequeuedCondition(wl, evicted.Reason, evicted.Message, again)
		unset := workload.UnsetQuotaReservationWithCondition(wl, reason, evicted.Message, clock.RealClock{}.Now())
		return requeued || unset, nil
	})
}
