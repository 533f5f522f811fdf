//! Nodes and pods: the capacity for topology-aware scheduling (rules/08 §4).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::objects::{Node, Pod};
use crate::snapshot::{Damage, Reader, Stored, Writer};
use crate::state::State;
use crate::topology::tree::HOSTNAME;

/// All nodes and pods.
#[derive(Clone, Debug, Default)]
pub struct Cluster {
    nodes: Arc<BTreeMap<String, Arc<Node>>>,
    /// By namespace and name.
    pods: Arc<BTreeMap<String, BTreeMap<String, Arc<Pod>>>>,
    /// By hostname, the nodes whose name is another one.
    renamed: Arc<BTreeMap<String, BTreeSet<String>>>,
    /// The pods that are bound to a node.
    bound: ByNode,
    /// The pods whose node selector names a host, bound or not.
    pinned: ByNode,
    n_changes: u64,
}

/// Pods by node, those of a node in the order of namespace and name.
#[derive(Clone, Debug, Default)]
struct ByNode(Arc<BTreeMap<String, Vec<Arc<Pod>>>>);

impl ByNode {
    fn of(&self, node: &str) -> &[Arc<Pod>] {
        self.0.get(node).map_or(&[], Vec::as_slice)
    }

    fn add(&mut self, node: &str, pod: &Arc<Pod>) {
        let pods = Arc::make_mut(&mut self.0).entry(node.to_owned()).or_default();
        let place = pods.partition_point(|other| key(other) < key(pod));
        pods.insert(place, Arc::clone(pod));
    }

    fn remove(&mut self, node: &str, pod: &Pod) {
        let by_node = Arc::make_mut(&mut self.0);
        if let Some(pods) = by_node.get_mut(node) {
            let place = pods.partition_point(|other| key(other) < key(pod));
            if pods.get(place).is_some_and(|other| key(other) == key(pod)) {
                pods.remove(place);
            }
            if pods.is_empty() {
                by_node.remove(node);
            }
        }
    }
}

impl Cluster {
    /// Number of changes of nodes and pods.
    pub fn n_changes(&self) -> u64 {
        self.n_changes
    }

    /// The node with this name.
    pub fn node(&self, name: &str) -> Option<&Arc<Node>> {
        self.nodes.get(name)
    }

    /// The node with this hostname, the first by name. Kueue leaves open which of several.
    pub fn node_of_host(&self, host: &str) -> Option<&Arc<Node>> {
        let same = self.node(host).filter(|node| hostname(node) == Some(host));
        let renamed = self.renamed.get(host).and_then(BTreeSet::first).and_then(|name| self.node(name));
        same.into_iter().chain(renamed).min_by_key(|node| &node.meta.name)
    }

    /// Indexes a node by its hostname, or takes it out.
    fn file_node(&mut self, node: &Node, adds: bool) {
        let Some(host) = hostname(node).filter(|host| *host != node.meta.name) else { return };
        let renamed = Arc::make_mut(&mut self.renamed);
        let names = renamed.entry(host.to_owned()).or_default();
        if adds {
            names.insert(node.meta.name.clone());
        } else {
            names.remove(&node.meta.name);
            if names.is_empty() {
                renamed.remove(host);
            }
        }
    }

    /// All nodes, in the order of their names.
    pub fn nodes(&self) -> impl Iterator<Item = &Arc<Node>> {
        self.nodes.values()
    }

    /// All pods, in the order of namespace and name.
    pub fn pods(&self) -> impl Iterator<Item = &Arc<Pod>> {
        self.pods.values().flat_map(BTreeMap::values)
    }

    /// The pod with this namespace and name.
    pub fn pod(&self, namespace: &str, name: &str) -> Option<&Arc<Pod>> {
        self.pods.get(namespace)?.get(name)
    }

    /// The pods bound to a node, whatever their phase, in the order of namespace and name. The node need not exist.
    pub fn pods_on(&self, node: &str) -> &[Arc<Pod>] {
        self.bound.of(node)
    }

    /// The pods whose node selector names a host, bound or not, in the order of namespace and name.
    pub fn pods_pinned_to(&self, host: &str) -> &[Arc<Pod>] {
        self.pinned.of(host)
    }

    /// Indexes a pod by its nodes.
    fn file(&mut self, pod: &Arc<Pod>) {
        if !pod.node_name.is_empty() {
            self.bound.add(&pod.node_name, pod);
        }
        if let Some(host) = pod.spec.node_selector.get(HOSTNAME) {
            self.pinned.add(host, pod);
        }
    }

    fn unfile(&mut self, pod: &Pod) {
        if !pod.node_name.is_empty() {
            self.bound.remove(&pod.node_name, pod);
        }
        if let Some(host) = pod.spec.node_selector.get(HOSTNAME) {
            self.pinned.remove(host, pod);
        }
    }
}

impl Stored for Cluster {
    fn write_to(&self, out: &mut Writer<'_>) {
        out.list(self.nodes().map(|node| &**node).collect::<Vec<_>>().into_iter());
        out.list(self.pods().map(|pod| &**pod).collect::<Vec<_>>().into_iter());
        self.n_changes.write_to(out);
    }

    fn read_from(from: &mut Reader<'_>) -> Result<Self, Damage> {
        let mut cluster = Self::default();
        let nodes = from.list(Node::read_from)?.into_iter().map(|node| (node.meta.name.clone(), Arc::new(node)));
        cluster.nodes = Arc::new(nodes.collect());
        for node in Arc::clone(&cluster.nodes).values() {
            cluster.file_node(node, true);
        }
        for pod in from.list(Pod::read_from)? {
            let pod = Arc::new(pod);
            let of_namespace = Arc::make_mut(&mut cluster.pods).entry(pod.meta.namespace.clone()).or_default();
            let before = of_namespace.insert(pod.meta.name.clone(), Arc::clone(&pod));
            from.check(before.is_none(), "a duplicate pod")?;
            cluster.file(&pod);
        }
        cluster.n_changes = Stored::read_from(from)?;
        Ok(cluster)
    }
}

/// The hostname by which assignments name a node.
pub fn hostname(node: &Node) -> Option<&str> {
    node.meta.labels.get(HOSTNAME).map(String::as_str)
}

fn key(pod: &Pod) -> (&str, &str) {
    (&pod.meta.namespace, &pod.meta.name)
}

impl State {
    /// Stores a node, and returns the old one. An identical node changes nothing.
    pub(crate) fn put_node(&mut self, node: Node) -> Option<Arc<Node>> {
        let name = node.meta.name.clone();
        let old = self.nodes.cluster.node(&name).cloned();
        if old.as_deref() != Some(&node) {
            old.iter().for_each(|old| self.nodes.cluster.file_node(old, false));
            self.nodes.cluster.file_node(&node, true);
            Arc::make_mut(&mut self.nodes.cluster.nodes).insert(name.clone(), Arc::new(node));
            self.nodes.cluster.n_changes += 1;
            self.node_changed(&name, old.clone());
        }
        old
    }

    /// Removes a node, and returns it. Its pods stay until they are deleted themselves.
    pub(crate) fn remove_node(&mut self, name: &str) -> Option<Arc<Node>> {
        self.nodes.cluster.node(name)?;
        let old = Arc::make_mut(&mut self.nodes.cluster.nodes).remove(name);
        old.iter().for_each(|old| self.nodes.cluster.file_node(old, false));
        self.nodes.cluster.n_changes += 1;
        self.node_changed(name, old.clone());
        old
    }

    /// Stores a pod, and returns the old one. An identical pod changes nothing.
    pub(crate) fn put_pod(&mut self, pod: Pod) -> Option<Arc<Pod>> {
        let (namespace, name) = (pod.meta.namespace.clone(), pod.meta.name.clone());
        let old = self.nodes.cluster.pod(&namespace, &name).cloned();
        if old.as_deref() != Some(&pod) {
            let pod = Arc::new(pod);
            old.iter().for_each(|old| self.nodes.cluster.unfile(old));
            self.nodes.cluster.file(&pod);
            let pods = Arc::make_mut(&mut self.nodes.cluster.pods);
            pods.entry(namespace.clone()).or_default().insert(name.clone(), pod);
            self.nodes.cluster.n_changes += 1;
            self.pod_changed(&namespace, &name, old.clone());
        }
        old
    }

    /// Removes a pod, and returns it.
    pub(crate) fn remove_pod(&mut self, namespace: &str, name: &str) -> Option<Arc<Pod>> {
        self.nodes.cluster.pod(namespace, name)?;
        let pods = Arc::make_mut(&mut self.nodes.cluster.pods);
        let of_namespace = pods.get_mut(namespace)?;
        let old = of_namespace.remove(name);
        if of_namespace.is_empty() {
            pods.remove(namespace);
        }
        old.iter().for_each(|old| self.nodes.cluster.unfile(old));
        self.nodes.cluster.n_changes += 1;
        self.pod_changed(namespace, name, old.clone());
        old
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::Meta;
    use crate::objects::config::Config;

    fn state() -> State {
        State::new(Config::default())
    }

    fn pod(namespace: &str, name: &str, node: &str) -> Pod {
        let meta = Meta { namespace: namespace.to_owned(), name: name.to_owned(), ..Meta::default() };
        Pod { meta, node_name: node.to_owned(), ..Pod::default() }
    }

    fn on(state: &State, node: &str) -> Vec<String> {
        let pods = state.nodes.cluster.pods_on(node).iter();
        pods.map(|pod| format!("{}/{}", pod.meta.namespace, pod.meta.name)).collect()
    }

    #[test]
    fn pods_are_listed_under_the_node_they_are_bound_to() {
        let mut state = state();
        assert_eq!(state.put_pod(pod("b", "x", "n1")), None);
        state.put_pod(pod("a", "y", "n1"));
        state.put_pod(pod("a", "x", ""));
        assert_eq!((on(&state, "n1"), on(&state, "")), (vec!["a/y".to_owned(), "b/x".to_owned()], vec![]));
        state.put_pod(pod("a", "x", "n1"));
        assert_eq!(on(&state, "n1"), ["a/x", "a/y", "b/x"]);
        let before = state.put_pod(pod("b", "x", "n2")).expect("it was there");
        assert_eq!(before.node_name, "n1");
        assert_eq!(
            (on(&state, "n1"), on(&state, "n2")),
            (vec!["a/x".to_owned(), "a/y".to_owned()], vec!["b/x".to_owned()])
        );
        assert_eq!(state.remove_pod("b", "x").map(|pod| pod.node_name.clone()).as_deref(), Some("n2"));
        assert!(state.remove_pod("b", "x").is_none());
        assert!(on(&state, "n2").is_empty());
        assert!(state.nodes.cluster.pod("b", "x").is_none());
    }

    #[test]
    fn pods_that_select_a_host_are_pinned_to_it() {
        let mut state = state();
        let selecting = |name: &str, host: &str| {
            let mut pod = pod("ns", name, "");
            pod.spec.node_selector = [(HOSTNAME.to_owned(), host.to_owned())].into();
            pod
        };
        let to = |state: &State, host: &str| {
            state.nodes.cluster.pods_pinned_to(host).iter().map(|pod| pod.meta.name.clone()).collect::<Vec<_>>()
        };
        for name in ["b", "a"] {
            state.put_pod(selecting(name, "n1"));
        }
        state.put_pod(pod("ns", "anywhere", "n1"));
        assert_eq!((to(&state, "n1"), to(&state, "n2")), (vec!["a".to_owned(), "b".to_owned()], vec![]));
        state.put_pod(Pod { node_name: "n1".to_owned(), ..selecting("a", "n1") });
        state.put_pod(selecting("b", "n2"));
        assert_eq!((to(&state, "n1"), to(&state, "n2")), (vec!["a".to_owned()], vec!["b".to_owned()]));
        state.remove_pod("ns", "a");
        assert_eq!(to(&state, "n1"), [""; 0]);
    }

    #[test]
    fn nodes_are_listed_by_name_and_can_be_removed() {
        let mut state = state();
        let node = |name: &str, unschedulable| {
            let meta = Meta { name: name.to_owned(), ..Meta::default() };
            Node { meta, unschedulable, ..Node::default() }
        };
        state.put_node(node("b", false));
        state.put_node(node("a", false));
        let before = state.put_node(node("b", true));
        assert!(before.is_some_and(|before| !before.unschedulable));
        let names: Vec<&str> = state.nodes.cluster.nodes().map(|node| node.meta.name.as_str()).collect();
        assert_eq!(names, ["a", "b"]);
        assert!(state.nodes.cluster.node("b").is_some_and(|node| node.unschedulable));
        assert!(state.remove_node("b").is_some());
        assert!(state.remove_node("b").is_none());
        assert!(state.nodes.cluster.node("b").is_none());
    }

    #[test]
    fn a_fork_does_not_see_later_changes() {
        let mut state = state();
        state.put_pod(pod("a", "x", "n1"));
        let copy = state.fork();
        state.remove_pod("a", "x");
        assert_eq!((on(&copy, "n1").len(), on(&state, "n1").len()), (1, 0));
    }

    #[test]
    fn an_identical_pod_is_not_stored_again() {
        let mut state = state();
        state.put_pod(pod("a", "x", "n1"));
        let first = Arc::clone(state.nodes.cluster.pod("a", "x").expect("it was just put"));
        state.put_pod(pod("a", "x", "n1"));
        assert!(Arc::ptr_eq(&first, state.nodes.cluster.pod("a", "x").expect("it is still there")));
        assert_eq!(state.nodes.cluster.n_changes(), 1);
        state.remove_pod("a", "y");
        assert_eq!(state.nodes.cluster.n_changes(), 1);
        state.remove_pod("a", "x");
        assert_eq!(state.nodes.cluster.n_changes(), 2);
    }
}
