//! Small worlds for tests: a namespace, a flavor, a ClusterQueue and a LocalQueue, and workloads that request CPUs.

pub mod hosts;

use crate::base::ids::WorkloadId;
use crate::base::quantity::Quantity;
use crate::engine::Engine;
use crate::objects::condition_type::ConditionType;
use crate::objects::config::{Config, RequeuingTimestamp, WaitForPodsReady};
use crate::objects::{
    AdmissionCheck, AdmissionCheckRule, AdmissionCheckState, CheckState, ClusterQueue, Condition, ConditionStatus,
    Container, FlavorQuotas, Kind, LabelSelector, LocalQueue, Meta, Object, PodSet, ResourceFlavor, ResourceGroup,
    ResourceQuota, Time, Workload,
};
use crate::schedule::decision::{Decision, Event};

/// A second after `Time(0)`.
pub const SECOND: i64 = 1_000_000_000;

/// The time `seconds` after the beginning.
pub fn at(seconds: i64) -> Time {
    Time(seconds * SECOND)
}

/// Metadata of a cluster-scoped object.
pub fn meta(name: &str) -> Meta {
    Meta { name: name.to_owned(), uid: format!("uid-{name}"), created: at(0), generation: 1, ..Meta::default() }
}

/// Metadata in namespace `ns`.
pub fn namespaced(name: &str) -> Meta {
    Meta { namespace: "ns".to_owned(), ..meta(name) }
}

/// Parses a quantity.
pub fn quantity(text: &str) -> Quantity {
    text.parse().expect("a quantity")
}

/// A flavor without labels and taints.
pub fn flavor(name: &str) -> Object {
    Object::ResourceFlavor(ResourceFlavor { meta: meta(name), ..ResourceFlavor::default() })
}

/// An active check.
pub fn check(name: &str) -> Object {
    Object::AdmissionCheck(AdmissionCheck { meta: meta(name), controller_name: "c".to_owned(), active: true })
}

/// These resources in these flavors, each with the flavor's amount as quota.
pub fn resource_group(resources: &[&str], flavors: &[(&str, &str)]) -> ResourceGroup {
    let quota = |name: &str, nominal: &str| ResourceQuota {
        name: name.to_owned(),
        nominal_quota: quantity(nominal),
        borrowing_limit: None,
        lending_limit: None,
    };
    let quotas = |&(name, nominal): &(&str, &str)| FlavorQuotas {
        name: name.to_owned(),
        resources: resources.iter().map(|resource| quota(resource, nominal)).collect(),
    };
    ResourceGroup {
        covered_resources: resources.iter().map(|&resource| resource.to_owned()).collect(),
        flavors: flavors.iter().map(quotas).collect(),
    }
}

/// A ClusterQueue with `cpu` of flavor `default` for every namespace.
pub fn cluster_queue(name: &str, cpu: &str) -> ClusterQueue {
    ClusterQueue {
        meta: meta(name),
        resource_groups: vec![resource_group(&["cpu"], &[("default", cpu)])],
        namespace_selector: Some(LabelSelector::default()),
        ..ClusterQueue::default()
    }
}

/// Checks for all flavors.
pub fn rules(checks: &[&str]) -> Vec<AdmissionCheckRule> {
    checks.iter().map(|name| AdmissionCheckRule { name: (*name).to_owned(), on_flavors: Vec::new() }).collect()
}

/// LocalQueue `ns/name`.
pub fn local_queue(name: &str, cluster_queue: &str) -> LocalQueue {
    LocalQueue { meta: namespaced(name), cluster_queue: cluster_queue.to_owned(), ..LocalQueue::default() }
}

/// Workload `ns/name` in LocalQueue `lq`: one pod with one container that requests `cpu`.
pub fn workload(name: &str, cpu: &str) -> Workload {
    let mut container = Container { name: "c".to_owned(), ..Container::default() };
    container.resources.requests.insert("cpu".to_owned(), quantity(cpu));
    let mut pod_set = PodSet { name: "main".to_owned(), count: 1, ..PodSet::default() };
    pod_set.template.spec.containers.push(container);
    Workload {
        meta: namespaced(name).into(),
        pod_sets: vec![pod_set].into(),
        queue_name: "lq".into(),
        ..Workload::default()
    }
}

/// Reproducible pseudo-random numbers: SplitMix64.
pub struct Dice(pub u64);

impl Dice {
    /// Less than `n`.
    pub fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ (z >> 31)) % n as u64).unwrap()
    }

    /// True once in `n` times.
    pub fn once_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// One of these.
    pub fn one_of<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }
}

/// An engine, and helpers to use it in tests.
pub struct World {
    pub engine: Engine,
    /// The current time.
    pub now: Time,
}

impl World {
    /// Namespace `ns`, flavor `default`, ClusterQueue `cq` with 10 CPUs and LocalQueue `ns/lq`.
    pub fn new(config: Config) -> Self {
        let mut world = Self { engine: Engine::new(config), now: at(10) };
        world.apply([
            Object::Namespace(meta("ns")),
            flavor("default"),
            Object::ClusterQueue(cluster_queue("cq", "10")),
            Object::LocalQueue(local_queue("lq", "cq")),
        ]);
        world
    }

    /// ClusterQueues `a`, `b` and `c`, each with one workload of that name that fits. Each is admitted once the pods of
    /// the previous one are ready.
    pub fn where_pods_block() -> Self {
        let wait = WaitForPodsReady {
            timeout_ns: 60 * SECOND,
            recovery_timeout_ns: None,
            unscheduled_timeout_ns: None,
            block_admission: true,
            requeuing_timestamp: RequeuingTimestamp::Eviction,
            backoff_limit_count: None,
            backoff_base_seconds: 1,
            backoff_max_seconds: 1,
        };
        let mut world = Self::new(Config { wait_for_pods_ready: Some(wait), ..Config::default() });
        for name in ["a", "b", "c"] {
            world.apply([Object::ClusterQueue(cluster_queue(name, "4")), Object::LocalQueue(local_queue(name, name))]);
            world.submit(Workload { queue_name: name.to_owned().into(), ..workload(name, "4") });
        }
        world
    }

    /// Applies objects now.
    pub fn apply<const N: usize>(&mut self, objects: [Object; N]) {
        self.engine.apply(objects.into(), self.now);
    }

    /// Applies a workload now.
    pub fn submit(&mut self, workload: Workload) {
        self.apply([Object::Workload(Box::new(workload))]);
    }

    /// Changes ClusterQueue `cq`.
    pub fn change_cluster_queue(&mut self, change: impl FnOnce(&mut ClusterQueue)) {
        let id = self.engine.state.find_queue("cq").expect("it exists");
        let mut object = ClusterQueue::clone(self.engine.state.queues[id].object.as_ref().expect("it exists"));
        change(&mut object);
        self.apply([Object::ClusterQueue(object)]);
    }

    /// Changes LocalQueue `ns/lq`, which points to `cq`.
    pub fn change_local_queue(&mut self, change: impl FnOnce(&mut LocalQueue)) {
        let mut object = local_queue("lq", "cq");
        change(&mut object);
        self.apply([Object::LocalQueue(object)]);
    }

    /// Changes a workload, status included.
    pub fn change(&mut self, name: &str, change: impl FnOnce(&mut Workload)) {
        let mut object = self.engine.state.workload_object(self.id(name));
        change(&mut object);
        self.submit(object);
    }

    /// Deletes a queue.
    pub fn delete(&mut self, kind: Kind, name: &str) {
        assert!(self.engine.delete(kind, "ns", name, self.now));
    }

    /// Runs one cycle.
    pub fn cycle(&mut self) -> Decision {
        self.engine.cycle(self.now)
    }

    /// Reconciles all workloads, and asserts that no other pass would write anything. Returns the events as `kind
    /// reason: message`.
    pub fn reconcile(&mut self) -> Vec<String> {
        let events = self.engine.state.reconcile_all(self.now);
        let all = |world: &Self| -> Vec<(WorkloadId, Workload)> {
            world.engine.state.workloads.iter().map(|(id, r)| (id, r.workload.clone())).collect()
        };
        let before = all(self);
        for (id, _) in &before {
            assert_eq!(self.engine.state.reconcile(*id, self.now), Vec::<Event>::new());
        }
        assert_eq!(before, all(self));
        events.iter().map(|e| format!("{} {}: {}", e.kind, e.reason, e.message)).collect()
    }

    /// The id of workload `ns/name`.
    pub fn id(&self, name: &str) -> WorkloadId {
        self.engine.state.workloads.find("ns", name).expect("a workload of this name")
    }

    /// Workload `ns/name`, without its pod sets.
    pub fn get(&self, name: &str) -> &Workload {
        &self.engine.state.workloads.get(self.id(name)).workload
    }

    /// A condition as `status reason: message`; empty if there is none.
    pub fn condition(&self, name: &str, kind: impl Into<ConditionType>) -> String {
        let kind = kind.into();
        let found = self.get(name).status.conditions.iter().find(|c| c.kind == kind);
        found.map_or(String::new(), |c: &Condition| {
            let status = match c.status {
                ConditionStatus::True => "True",
                ConditionStatus::False => "False",
                ConditionStatus::Unknown => "Unknown",
            };
            format!("{status} {}: {}", c.reason, c.message)
        })
    }

    /// Answers a check of a workload.
    pub fn answer(&mut self, name: &str, check: &str, state: CheckState, message: &str) {
        let now = self.now;
        self.change(name, |w| {
            let answer = AdmissionCheckState {
                name: check.to_owned(),
                state,
                message: message.to_owned(),
                ..AdmissionCheckState::default()
            };
            crate::status::checks::set_check_state(&mut w.status.rare.admission_checks, answer, now);
        });
    }
}
