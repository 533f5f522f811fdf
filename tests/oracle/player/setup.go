package player

import (
	"context"
	"time"
	"unsafe"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configapi "sigs.k8s.io/kueue/apis/config/v1beta2"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	qcache "sigs.k8s.io/kueue/pkg/cache/queue"
	schdcache "sigs.k8s.io/kueue/pkg/cache/scheduler"
	"sigs.k8s.io/kueue/pkg/controller/core/indexer"
	tasindexer "sigs.k8s.io/kueue/pkg/controller/tas/indexer"
	"sigs.k8s.io/kueue/pkg/features"
	"sigs.k8s.io/kueue/pkg/resources"
	utilqueue "sigs.k8s.io/kueue/pkg/util/queue"
	utiltas "sigs.k8s.io/kueue/pkg/util/tas"
)

// Release builds the parts of a release for one case.
type Release func(context.Context, Setup) (*Kueue, error)

// Setup is what it builds them from.
type Setup struct {
	Manager  *Manager
	Client   client.Client
	Config   *configapi.Configuration
	Clock    virtualClock
	Recorder *Recorder
}

// Kueue is what the player needs of a release.
type Kueue struct {
	Queues *qcache.Manager
	Cache  *schdcache.Cache
	// Requeue moves the inadmissible workloads of who was notified since the last call back to their heaps.
	Requeue func(context.Context) int
	// Schedule is one cycle.
	Schedule func(context.Context)
	// Release takes the reservation of an evicted Workload away, as the reconciler of its job does.
	Release func(context.Context, client.Client, *kueue.Workload) error
	// DrainNodes notifies who waits for what pods that are not Kueue's have given back.
	DrainNodes func(context.Context)
	// Usage is what the cache holds.
	Usage func(context.Context) (Usage, error)
	// LocalQueue is the usage of a LocalQueue in admission fair sharing.
	LocalQueue func(utilqueue.LocalQueueReference) (Ledger, bool)
}

// Ledger is the usage of a LocalQueue.
type Ledger struct {
	Consumed, Penalty corev1.ResourceList
	LastUpdate        time.Time
}

// BlocksAdmission tells whether one workload waits for the pods of another.
func (s Setup) BlocksAdmission() bool {
	wait := s.Config.WaitForPodsReady
	return wait != nil && wait.BlockAdmission != nil && *wait.BlockAdmission
}

// RequeuingTimestamp is the place in the queue after a timeout.
func (s Setup) RequeuingTimestamp() configapi.RequeuingTimestamp {
	wait := s.Config.WaitForPodsReady
	if wait != nil && wait.RequeuingStrategy != nil && wait.RequeuingStrategy.Timestamp != nil {
		return *wait.RequeuingStrategy.Timestamp
	}
	return configapi.EvictionTimestamp
}

// ExcludedPrefixes name resources that do not count.
func (s Setup) ExcludedPrefixes() []string {
	if s.Config.Resources == nil {
		return nil
	}
	return s.Config.Resources.ExcludeResourcePrefixes
}

// Transformations turn requests into others.
func (s Setup) Transformations() []configapi.ResourceTransformation {
	if s.Config.Resources == nil {
		return nil
	}
	return s.Config.Resources.Transformations
}

// Indexes lets the store find objects as Kueue asks for them.
func (s Setup) Indexes(ctx context.Context) error {
	if err := indexer.Setup(ctx, s.Manager.GetFieldIndexer()); err != nil {
		return err
	}
	if features.Enabled(features.TopologyAwareScheduling) {
		return tasindexer.SetupIndexes(ctx, s.Manager.GetFieldIndexer())
	}
	return nil
}

// Usage is flavor, resource and quantity of each ClusterQueue and cohort, and domain, resource and quantity of each flavor.
type Usage struct {
	ClusterQueues, Cohorts, Topology map[string]map[string]map[string]string
}

// NewUsage starts with what workloads use of each domain.
func NewUsage(
	cache *schdcache.Cache, text func(corev1.ResourceName, int64) string, counts func(resources.Requests) map[corev1.ResourceName]int64,
) Usage {
	found := Usage{
		ClusterQueues: map[string]map[string]map[string]string{},
		Cohorts:       map[string]map[string]map[string]string{},
		Topology:      map[string]map[string]map[string]string{},
	}
	for flavor, flavorCache := range cache.CloneTASCache() {
		// The package keeps the map to itself.
		domains := *(*map[utiltas.TopologyDomainID]resources.Requests)(unsafe.Pointer(inside(flavorCache, "usage").UnsafeAddr()))
		for domain, used := range domains {
			for resource, value := range counts(used) {
				put(found.Topology, string(flavor), string(domain), string(resource), value, text(resource, value))
			}
		}
	}
	return found
}

// OfClusterQueue adds what a ClusterQueue uses.
func (u Usage) OfClusterQueue(name kueue.ClusterQueueReference, at resources.FlavorResource, value int64, text string) {
	put(u.ClusterQueues, string(name), string(at.Flavor), string(at.Resource), value, text)
}

// OfCohort adds what a cohort uses.
func (u Usage) OfCohort(name kueue.CohortReference, at resources.FlavorResource, value int64, text string) {
	put(u.Cohorts, string(name), string(at.Flavor), string(at.Resource), value, text)
}

// put leaves zeros out.
func put(found map[string]map[string]map[string]string, first, second, third string, value int64, text string) {
	if value == 0 {
		return
	}
	if found[first] == nil {
		found[first] = map[string]map[string]string{}
	}
	if found[first][second] == nil {
		found[first][second] = map[string]string{}
	}
	found[first][second][third] = text
}
