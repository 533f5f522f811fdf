//! Pods on nodes: one placement in three levels, a cycle that preempts on full nodes, and nodes that report.

use std::collections::BTreeMap;

use kueuecore::assign::{Assignment, Candidate, Context, assign};
use kueuecore::base::gates::Gate;
use kueuecore::engine::Engine;
use kueuecore::objects::config::Config;
use kueuecore::objects::{
    ConditionStatus, Node, NodeReady, Object, Pod, PodSet, ResourceFlavor, SliceConstraint, Topology,
    TopologyAssignment, TopologyDomain, TopologyRequest, Workload,
};
use kueuecore::preempt::Simulation;
use kueuecore::workloads::Record;

use crate::objects::{
    BASE, LOWER_AND_ANY, NEVER, admitted, engine, group, meta, object, pod_set, quantity, queue, workload,
};
use crate::rows::{Row, timed};

const BLOCK: &str = "example.com/block";
const RACK: &str = "example.com/rack";
const HOST: &str = "kubernetes.io/hostname";
const GROUP: &str = "example.com/group";
/// Racks of a block, and hosts of a rack.
const N_RACKS: usize = 10;
const N_HOSTS: usize = 25;
/// Groups of nodes in the cycle that preempts, and resources of each node.
const N_GROUPS: usize = 8;
const N_RESOURCES: usize = 30;

/// A pod set, and how its pods are to stand.
type Shape = fn() -> Vec<PodSet>;

const SHAPES: [(&str, Shape); 7] = [
    ("required", required),
    ("preferred", preferred),
    ("unconstrained", unconstrained),
    ("slices", slices),
    ("three-layers", three_layers),
    ("leader", leader),
    ("balanced", preferred),
];

pub fn rows() -> Vec<Row> {
    let mut rows = growing_rows(&[2_500, 10_000, 40_000]);
    rows.extend([1_000, 5_000, 20_000].map(preemption));
    rows.push(heartbeats(10_000));
    rows.push(failures(10_000));
    rows
}

/// Placements among so many nodes.
pub fn growing_rows(sizes: &[usize]) -> Vec<Row> {
    let shapes = SHAPES.into_iter().chain([("first", required as Shape)]);
    shapes.flat_map(|(name, shape)| sizes.iter().map(move |&n_nodes| placement(name, shape, n_nodes))).collect()
}

/// One placement after another, each on what those before have left; `first` is one of pods that are new to the nodes.
fn placement(name: &'static str, shape: Shape, n_nodes: usize) -> Row {
    let n_calls = u32::try_from(40_000 / n_nodes).unwrap_or(1);
    Row::new(format!("Place/{name}/nodes={n_nodes}"), n_calls, move || {
        let mut engine = cluster(n_nodes, shape(), name == "balanced");
        let state = &mut engine.state;
        state.refresh_sites();
        let queue = state.find_queue("cq").expect("it was applied");
        let head = state.workloads.find("ns", "w0").expect("it was applied");
        let preemptor = state.preemptor(queue, head);
        let mut tree = state.ledger.forest.lend_tree(preemptor.tree);
        let record = state.workloads.get(head);
        let candidate = Candidate {
            pod_sets: &record.spec.adjusted,
            totals: &record.totals,
            of_one_pod: &[],
            resume: None,
            allowed_flavors: None,
            replaced_slice: None,
            nomination: None,
            places: &[],
        };
        let context = Context {
            names: &state.names,
            flavors: &state.objects.flavors,
            config: &state.config,
            queue: &state.queues[queue].rules,
            row: preemptor.row,
            sites: &state.nodes.sites,
        };
        let mut oracle = Simulation::new(state.world(), preemptor);
        let without_place = assign(&context, &mut tree, &candidate, None, &mut oracle);
        state.ledger.forest.return_tree(preemptor.tree, tree);
        Box::new(move |n_calls| {
            let state = &mut engine.state;
            let (took, assignment) = timed(n_calls, || {
                if name == "first" {
                    state.nodes.sites.seen.clear();
                }
                let mut assignment: Assignment = without_place.clone();
                state.place(queue, head, &mut assignment);
                let stands = state.net_stands((queue, head), &assignment);
                state.nodes.sites.try_with(&stands, false);
                assignment
            });
            state.nodes.sites.rollback_all();
            let n_places: i32 = assignment.pod_sets().iter().filter_map(|it| it.place.as_ref()).map(n_pods).sum();
            let n_asked: i32 = state.workloads.get(head).spec.adjusted.iter().map(|it| it.count).sum();
            assert_eq!(n_places, n_asked, "all pods have a place");
            took
        })
    })
}

fn n_pods(place: &kueuecore::base::shared::Shared<TopologyAssignment>) -> i32 {
    place.domains.iter().map(|domain| domain.count).sum()
}

fn required() -> Vec<PodSet> {
    asking(64, |it| it.required = Some(RACK.to_owned()))
}

fn preferred() -> Vec<PodSet> {
    asking(64, |it| it.preferred = Some(RACK.to_owned()))
}

pub(crate) fn unconstrained() -> Vec<PodSet> {
    asking(64, |it| it.unconstrained = Some(true))
}

fn slices() -> Vec<PodSet> {
    asking(64, |it| {
        it.preferred = Some(BLOCK.to_owned());
        it.slice_required_topology = Some(RACK.to_owned());
        it.slice_size = Some(16);
    })
}

fn three_layers() -> Vec<PodSet> {
    let layer = |topology: &str, size| SliceConstraint { topology: topology.to_owned(), size };
    asking(64, |it| {
        it.preferred = Some(BLOCK.to_owned());
        it.constraints = vec![layer(BLOCK, 32), layer(RACK, 8), layer(HOST, 2)];
    })
}

fn leader() -> Vec<PodSet> {
    let ask = |it: &mut TopologyRequest| {
        it.preferred = Some(RACK.to_owned());
        it.pod_set_group_name = Some("together".to_owned());
    };
    let mut pod_sets = asking(64, ask);
    pod_sets.extend(asking(1, ask).into_iter().map(|it| PodSet { name: "leader".to_owned(), ..it }));
    pod_sets
}

fn asking(count: i32, ask: impl Fn(&mut TopologyRequest)) -> Vec<PodSet> {
    let mut request = TopologyRequest::default();
    ask(&mut request);
    let topology_request = Some(Box::new(request));
    vec![PodSet { topology_request, ..pod_set("main", count, &[("cpu", "1"), ("memory", "1Gi")]) }]
}

/// Hosts in racks in blocks, with eight CPUs each; one ClusterQueue, in which `w0` waits.
pub(crate) fn cluster(n_nodes: usize, pod_sets: Vec<PodSet>, balances: bool) -> Engine {
    let mut objects = site(&[BLOCK, RACK, HOST]);
    for number in 0..n_nodes {
        let (rack, block) = (number / N_HOSTS, number / N_HOSTS / N_RACKS);
        let labels = [(BLOCK, format!("b{block:04}")), (RACK, format!("r{rack:04}"))];
        objects.push(Object::Node(node(number, &labels, &[("cpu", "8"), ("memory", "64Gi")])));
    }
    objects.extend(queue("cq", "co", vec![group(["tas"], &[("cpu", "1000000"), ("memory", "1000000Gi")])], NEVER));
    objects.push(object(workload(0, "cq", 0, pod_sets)));
    let gates = Config::default().gates.with(Gate::TASBalancedPlacement, balances);
    engine(Config { gates, ..Config::default() }, objects)
}

/// A head of 200 pods of half a node each, for one group of full nodes.
fn preemption(n_nodes: usize) -> Row {
    Row::new(format!("Cycle/topology/preempt-100/nodes={n_nodes}"), 1, move || {
        Box::new(move |_| {
            let mut engine = full(n_nodes);
            // The nodes have been there for a while.
            engine.state.refresh_sites();
            let (took, decision) = timed(1, || engine.cycle(BASE));
            assert_eq!(decision.preemptions.len(), 100, "{:?}", decision.events);
            took
        })
    })
    .of_heads(1)
}

/// Nodes in groups, with 30 resources each, all taken by workloads of two pods.
fn full(n_nodes: usize) -> Engine {
    let names: Vec<String> = (0..N_RESOURCES - 2).map(|number| format!("example.com/device-{number:02}")).collect();
    let mut room = vec![("cpu", "96"), ("memory", "768Gi")];
    room.extend(names.iter().map(|name| (name.as_str(), "8")));
    let mut objects = site(&[HOST]);
    objects.extend(queue("cq", "", vec![group(["tas"], &[("cpu", "1000000000")])], LOWER_AND_ANY));
    for number in 0..n_nodes {
        let labels = [(GROUP, format!("g{}", number % N_GROUPS))];
        objects.push(Object::Node(node(number, &labels, &room)));
        let half = PodSet { count: 2, ..pod_set("main", 2, &[("cpu", "48")]) };
        let holder = admitted(workload(number + 1, "cq", 0, vec![half]), &[("cpu", "tas")], BASE);
        objects.push(object(standing(holder, &host(number))));
    }
    let request = TopologyRequest { unconstrained: Some(true), ..TopologyRequest::default() };
    let mut head = pod_set("main", 200, &[("cpu", "48")]);
    head.topology_request = Some(Box::new(request));
    head.template.spec.node_selector.insert(GROUP.to_owned(), "g3".to_owned());
    objects.push(object(workload(0, "cq", 10, vec![head])));
    engine(Config::default(), objects)
}

/// The same workload with both pods on a host, and what they use of quota.
fn standing(mut workload: Workload, host: &str) -> Workload {
    let place = TopologyAssignment { levels: vec![HOST.to_owned()], domains: vec![TopologyDomain::new([host], 2)] };
    let mut admission = workload.status.admission.as_deref().cloned().expect("it is admitted");
    let mut assignments = admission.pod_set_assignments.to_vec();
    assignments[0].topology_assignment = Some(place.into());
    assignments[0].resource_usage.insert("cpu".to_owned(), quantity("96"));
    admission.pod_set_assignments = assignments.into();
    workload.status.admission = Some(admission.into());
    workload
}

/// So many nodes say that they are still there, and the next cycle is due.
fn heartbeats(n_nodes: usize) -> Row {
    let n_calls = u32::try_from(n_nodes).unwrap_or(u32::MAX);
    Row::new(format!("Nodes/heartbeat/nodes={n_nodes}"), n_calls, move || {
        let mut engine = cluster(n_nodes, required(), false);
        engine.state.refresh_sites();
        let mut number = 0;
        Box::new(move |n_calls| {
            let mut objects: Vec<Vec<Object>> = Vec::new();
            for _ in 0..n_calls {
                let (rack, block) = (number / N_HOSTS, number / N_HOSTS / N_RACKS);
                let labels = [(BLOCK, format!("b{block:04}")), (RACK, format!("r{rack:04}"))];
                objects.push(vec![Object::Node(node(number, &labels, &[("cpu", "8"), ("memory", "64Gi")]))]);
                number = (number + 1) % n_nodes;
            }
            let (took, ()) = timed(n_calls, || {
                engine.apply(objects.pop().unwrap_or_default(), BASE);
            });
            assert!(!engine.state.nodes.sites.is_stale, "nothing has to be built anew");
            took
        })
    })
}

/// Nodes fail one after another; a workload stands on each, whose pods are on their way out. Trees are built anew in the
/// next cycle, which does not count.
fn failures(n_nodes: usize) -> Row {
    let n_calls = 20;
    Row::new(format!("Nodes/failure/nodes={n_nodes}"), n_calls, move || {
        let mut engine = full(n_nodes);
        engine.apply((0..n_nodes).flat_map(leaving_pods).collect(), BASE);
        engine.reconcile(BASE);
        Box::new(move |n_calls| {
            let report = |number: usize, status| {
                let number = number * 97 % n_nodes;
                let mut node =
                    engine.state.nodes.cluster.node(&host(number)).map(|it| Node::clone(it)).expect("a node");
                node.ready = Some(NodeReady { status, since: BASE });
                vec![Object::Node(node)]
            };
            let numbers = || 0..n_calls as usize;
            let mut failed: Vec<_> = numbers().map(|number| report(number, ConditionStatus::False)).collect();
            let well: Vec<_> = numbers().map(|number| report(number, ConditionStatus::True)).collect();
            let (took, _) = timed(n_calls, || {
                engine.apply(failed.pop().unwrap_or_default(), BASE);
                engine.reconcile(BASE)
            });
            let is_hit = |record: &Record| !record.workload.status.rare.unhealthy_nodes.is_empty();
            let n_hit = engine.state.workloads.iter().filter(|(_, record)| is_hit(record)).count();
            assert_eq!(n_hit, n_calls as usize, "each had a workload");
            well.into_iter().for_each(|objects| engine.apply(objects, BASE));
            engine.reconcile(BASE);
            took
        })
    })
}

/// Both pods of the workload on a node.
fn leaving_pods(number: usize) -> impl Iterator<Item = Object> {
    (0..2).map(move |index| {
        let mut pod = Pod { meta: meta(&format!("w{}-{index}", number + 1)), ..Pod::default() };
        pod.meta.namespace = "ns".to_owned();
        pod.meta.annotations = BTreeMap::from([
            ("kueue.x-k8s.io/workload".to_owned(), format!("w{}", number + 1)),
            ("kueue.x-k8s.io/podset-unconstrained-topology".to_owned(), "true".to_owned()),
        ]);
        pod.meta.deleting = true;
        pod.node_name = host(number);
        pod.spec.node_selector = BTreeMap::from([(HOST.to_owned(), host(number))]);
        pod.phase = "Running".to_owned();
        Object::Pod(Box::new(pod))
    })
}

/// Namespace `ns`, and flavor `tas` with a topology of these levels.
fn site(levels: &[&str]) -> Vec<Object> {
    let levels = levels.iter().map(|&level| level.to_owned()).collect();
    let flavor = ResourceFlavor {
        meta: meta("tas"),
        node_labels: BTreeMap::from([("example.com/site".to_owned(), "here".to_owned())]),
        topology_name: "default".to_owned(),
        ..ResourceFlavor::default()
    };
    let topology = Topology { meta: meta("default"), levels };
    vec![Object::Namespace(meta("ns")), Object::Topology(topology), Object::ResourceFlavor(flavor)]
}

fn host(number: usize) -> String {
    format!("n{number:05}")
}

fn node(number: usize, labels: &[(&str, String)], room: &[(&str, &str)]) -> Node {
    let mut node = Node { meta: meta(&host(number)), ..Node::default() };
    node.meta.labels = labels.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
    node.meta.labels.insert(HOST.to_owned(), host(number));
    node.meta.labels.insert("example.com/site".to_owned(), "here".to_owned());
    node.ready = Some(NodeReady { status: ConditionStatus::True, since: BASE });
    node.allocatable =
        room.iter().chain(&[("pods", "110")]).map(|(name, text)| ((*name).to_owned(), quantity(text))).collect();
    node
}
