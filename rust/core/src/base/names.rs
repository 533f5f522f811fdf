//! Every name that the engine has seen, and its id.

use std::sync::{Arc, OnceLock};

use crate::base::appended::Appended;
use crate::base::ids::{
    CohortId, FlavorId, FlavorResourceId, Id, IdVec, Interner, LocalQueueId, NamespaceId, QueueId, ResourceId,
};
use crate::base::pair::Pair;
use crate::base::text::Text;

/// The names of ids, readable at any time by holders of ids. Includes names added later.
#[derive(Clone, Debug)]
pub struct Lexicon {
    queues: Arc<Appended<Text>>,
    cohorts: Arc<Appended<String>>,
    flavors: Arc<Appended<String>>,
    resources: Arc<Appended<String>>,
    flavor_resources: Arc<Appended<(FlavorId, ResourceId)>>,
}

impl Lexicon {
    fn of(names: &Names) -> Self {
        Self {
            queues: Arc::clone(names.queues.values()),
            cohorts: Arc::clone(names.cohorts.values()),
            flavors: Arc::clone(names.flavors.values()),
            resources: Arc::clone(names.resources.values()),
            flavor_resources: Arc::clone(names.flavor_resources.values()),
        }
    }

    /// Does it include what is added to these names?
    pub(crate) fn is_of(&self, names: &Names) -> bool {
        Arc::ptr_eq(&self.queues, names.queues.values())
            && Arc::ptr_eq(&self.cohorts, names.cohorts.values())
            && Arc::ptr_eq(&self.flavors, names.flavors.values())
            && Arc::ptr_eq(&self.resources, names.resources.values())
            && Arc::ptr_eq(&self.flavor_resources, names.flavor_resources.values())
    }

    /// The name of a ClusterQueue.
    pub fn queue(&self, id: QueueId) -> &str {
        &self.queues[id.index()]
    }

    /// The name of a Cohort.
    pub fn cohort(&self, id: CohortId) -> &str {
        &self.cohorts[id.index()]
    }

    /// The name of a ResourceFlavor.
    pub fn flavor(&self, id: FlavorId) -> &str {
        &self.flavors[id.index()]
    }

    /// The name of a resource.
    pub fn resource(&self, id: ResourceId) -> &str {
        &self.resources[id.index()]
    }

    /// Flavor and resource of a pair.
    pub fn parts(&self, id: FlavorResourceId) -> (FlavorId, ResourceId) {
        self.flavor_resources[id.index()]
    }
}

/// The interners of an engine.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// ClusterQueues.
    pub queues: Interner<QueueId, Text>,
    pub cohorts: Interner<CohortId, String>,
    /// ResourceFlavors.
    pub flavors: Interner<FlavorId, String>,
    pub namespaces: Interner<NamespaceId, String>,
    /// LocalQueues, by namespace and name.
    pub local_queues: Interner<LocalQueueId, (String, Text)>,
    resources: Interner<ResourceId, String>,
    canonical: IdVec<ResourceId, u64>,
    pods: Option<ResourceId>,
    flavor_resources: Interner<FlavorResourceId, (FlavorId, ResourceId)>,
    lexicon: OnceLock<Arc<Lexicon>>,
}

impl Names {
    /// The names of ids, for keeping.
    pub fn lexicon(&self) -> Arc<Lexicon> {
        let kept = self.lexicon.get_or_init(|| Arc::new(Lexicon::of(self)));
        if kept.is_of(self) { Arc::clone(kept) } else { Arc::new(Lexicon::of(self)) }
    }

    /// After a copy, both continue with lists of their own once they add a name.
    pub(crate) fn renew_lexicon(&mut self) {
        if self.lexicon.get().is_some_and(|kept| !kept.is_of(self)) {
            self.lexicon = OnceLock::new();
        }
    }

    /// The id of a ClusterQueue name.
    pub fn queue(&mut self, name: &str) -> QueueId {
        self.queues.intern_as(name, Text::copied)
    }

    /// The id of a LocalQueue, by namespace and name.
    pub fn local_queue(&mut self, namespace: &str, name: &str) -> LocalQueueId {
        let known = self.find_local_queue(namespace, name);
        known.unwrap_or_else(|| self.local_queues.intern(&(namespace.to_owned(), Text::copied(name))))
    }

    /// The id of a known LocalQueue.
    pub fn find_local_queue(&self, namespace: &str, name: &str) -> Option<LocalQueueId> {
        self.local_queues.find::<dyn Pair>(&(namespace, name))
    }

    /// The id of a resource.
    pub fn resource(&mut self, name: &str) -> ResourceId {
        let id = self.resources.intern(name);
        if self.canonical.len() < self.resources.len() {
            self.canonical.push(fnv1a(name.as_bytes()));
            if name == "pods" {
                self.pods = Some(id);
            }
        }
        id
    }

    /// The resource `pods`, which counts pods, if known.
    pub fn pods(&self) -> Option<ResourceId> {
        self.pods
    }

    /// The id of a known resource.
    pub fn find_resource(&self, name: &str) -> Option<ResourceId> {
        self.resources.find(name)
    }

    /// All resources, in the order of their ids.
    pub fn resources(&self) -> impl Iterator<Item = &String> {
        self.resources.iter()
    }

    /// The id of a (flavor, resource) pair.
    pub fn flavor_resource(&mut self, flavor: FlavorId, resource: ResourceId) -> FlavorResourceId {
        self.flavor_resources.intern(&(flavor, resource))
    }

    /// The id of a known pair.
    pub fn find_flavor_resource(&self, flavor: FlavorId, resource: ResourceId) -> Option<FlavorResourceId> {
        self.flavor_resources.find(&(flavor, resource))
    }

    /// Flavor and resource of a pair.
    pub fn parts(&self, fr: FlavorResourceId) -> (FlavorId, ResourceId) {
        self.flavor_resources[fr]
    }

    /// All pairs of flavors and resources, in the order of their ids.
    pub(crate) fn flavor_resources(&self) -> impl Iterator<Item = &(FlavorId, ResourceId)> {
        self.flavor_resources.iter()
    }

    /// Number of resources.
    pub(crate) fn n_resources(&self) -> usize {
        self.resources.len()
    }

    /// Number of pairs of flavors and resources.
    pub(crate) fn n_flavor_resources(&self) -> usize {
        self.flavor_resources.len()
    }

    /// The sort key of Kueue's order of requests: the 64-bit FNV-1a hash of the name, then the name (rules/03 §1).
    pub(crate) fn canonical_key(&self, resource: ResourceId) -> (u64, &str) {
        (self.canonical[resource], &self.resources[resource])
    }

    /// The name of a resource.
    pub fn resource_text(&self, resource: ResourceId) -> &str {
        &self.resources[resource]
    }
}

fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &b| (hash ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resources_are_visited_in_the_order_that_kueue_visits_them() {
        let expected = [
            "resource1",
            "resource2",
            "r1",
            "r2",
            "ephemeral-storage",
            "cloud.com/gpu",
            "amd.com/gpu",
            "memory",
            "nvidia.com/gpu",
            "pods",
            "hugepages-1Gi",
            "example.com/gpu",
            "hugepages-2Mi",
            "google.com/tpu",
            "storage",
            "gpu",
            "cpu",
        ];
        let mut names = Names::default();
        let mut ids: Vec<_> = expected.iter().rev().map(|name| names.resource(name)).collect();
        ids.sort_by(|a, b| names.canonical_key(*a).cmp(&names.canonical_key(*b)));
        let sorted: Vec<_> = ids.iter().map(|id| names.resource_text(*id)).collect();
        assert_eq!(sorted, expected);
    }

    #[test]
    fn a_lexicon_keeps_its_names_whatever_copies_add() {
        let mut names = Names::default();
        let a = names.queue("a");
        let kept = names.lexicon();
        let mut copy = names.clone();
        let (b, other) = (names.queue("b"), copy.queue("other"));
        assert_eq!(b, other, "each gives out ids of its own");
        for names in [&mut names, &mut copy] {
            names.renew_lexicon();
        }
        let read = |names: &Names| [a, b].map(|id| names.lexicon().queue(id).to_owned());
        assert_eq!((read(&names), read(&copy)), (["a", "b"].map(str::to_owned), ["a", "other"].map(str::to_owned)));
        assert_eq!(kept.queue(a), "a");
        let later = names.queue("c");
        assert_eq!(names.lexicon().queue(later), "c");
        assert!(Arc::ptr_eq(&names.lexicon(), &names.lexicon()), "it is made once, until there is another copy");
    }

    #[test]
    fn a_copy_knows_the_names_it_has_added_of_every_kind() {
        let kinds: [fn(&mut Names, &str) -> bool; 5] = [
            |names, name| {
                let id = names.queue(name);
                names.lexicon().queue(id) == name
            },
            |names, name| {
                let id = names.cohorts.intern(name);
                names.lexicon().cohort(id) == name
            },
            |names, name| {
                let id = names.flavors.intern(name);
                names.lexicon().flavor(id) == name
            },
            |names, name| {
                let id = names.resource(name);
                names.lexicon().resource(id) == name
            },
            |names, name| {
                let pair = (FlavorId::from_index(name.len()), ResourceId(0));
                let id = names.flavor_resource(pair.0, pair.1);
                names.lexicon().parts(id) == pair
            },
        ];
        for (kind, learns) in kinds.into_iter().enumerate() {
            let mut names = Names::default();
            names.lexicon();
            let mut copy = names.clone();
            assert!(learns(&mut names, "a") && learns(&mut copy, "other"), "kind {kind}");
        }
    }
}
