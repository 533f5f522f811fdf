//! Placements on small trees, and random placements checked against invariants.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::base::changes::Changes;
use crate::base::gates::{Gate, Gates};
use crate::base::quantity::Quantity;
use crate::objects::{
    ConditionStatus, Meta, Node, NodeReady, PodSet, SliceConstraint, Taint, Time, TopologyAssignment, TopologyRequest,
};
use crate::testing::Dice;
use crate::topology::capacity::Amounts;
use crate::topology::counts::Counts;
use crate::topology::filter::PodFacts;
use crate::topology::placement::{AmountsById, Ask, Assumed, Ground, Places, Seen, Terms};
use crate::topology::request::Wish;
use crate::topology::search::Search;
use crate::topology::tree::{HOSTNAME, Offer, Tree};

const RACK: &str = "rack";
const BLOCK: &str = "block";

fn keys(keys: &[&str]) -> Vec<String> {
    keys.iter().map(|&key| key.to_owned()).collect()
}

/// A node with labels, CPUs and room for 110 pods.
fn node(name: &str, labels: &[(&str, &str)], cpus: i64) -> Arc<Node> {
    let labels = labels.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect();
    let quantity = |text: String| text.parse::<Quantity>().expect("a quantity");
    let allocatable =
        [("cpu", quantity(cpus.to_string())), ("pods", quantity("110".to_owned()))].map(|(k, v)| (k.to_owned(), v));
    Arc::new(Node {
        meta: Meta { name: name.to_owned(), labels, ..Meta::default() },
        ready: Some(NodeReady { status: ConditionStatus::True, since: Time(0) }),
        allocatable: allocatable.into_iter().collect(),
        ..Node::default()
    })
}

fn tree(levels: &[&str], nodes: &[Arc<Node>]) -> Tree {
    Tree::new(&keys(levels), nodes.iter().map(|node| Offer { node, taken: None }), Changes::default(), false)
}

/// Racks of hosts with these CPUs: host `h<rack><host>`.
fn racks(cpus: &[&[i64]]) -> Tree {
    let mut nodes = Vec::new();
    for (rack, hosts) in cpus.iter().enumerate() {
        for (host, &cpus) in hosts.iter().enumerate() {
            let (rack, name) = (format!("r{rack}"), format!("h{rack}{host}"));
            nodes.push(node(&name, &[(RACK, &rack), (HOSTNAME, &name)], cpus));
        }
    }
    tree(&[RACK, HOSTNAME], &nodes)
}

fn pod_set(name: &str, count: i32, request: TopologyRequest) -> PodSet {
    PodSet { name: name.to_owned(), count, topology_request: Some(Box::new(request)), ..PodSet::default() }
}

fn required(level: &str) -> TopologyRequest {
    TopologyRequest { required: Some(level.to_owned()), ..TopologyRequest::default() }
}

fn preferred(level: &str) -> TopologyRequest {
    TopologyRequest { preferred: Some(level.to_owned()), ..TopologyRequest::default() }
}

fn unconstrained() -> TopologyRequest {
    TopologyRequest { unconstrained: Some(true), ..TopologyRequest::default() }
}

fn slices(request: TopologyRequest, level: &str, size: i32) -> TopologyRequest {
    TopologyRequest { slice_required_topology: Some(level.to_owned()), slice_size: Some(size), ..request }
}

fn in_group(request: TopologyRequest) -> TopologyRequest {
    TopologyRequest { pod_set_group_name: Some("g".to_owned()), ..request }
}

/// Places pods that request one CPU each.
fn place(tree: &Tree, pod_sets: &[PodSet], gates: Gates) -> Places {
    let cpu: Amounts = BTreeMap::from([("cpu".to_owned(), 1000)]);
    let ask = |(index, pod_set)| ask(index, pod_set, &cpu, None);
    let asks: Vec<Ask<'_>> = pod_sets.iter().enumerate().map(ask).collect();
    let terms =
        Terms { gates, simulates_empty: false, unhealthy: None, stays: false, given_back: &AmountsById::default() };
    ground(tree).place(&asks, terms, &mut Assumed::default(), ("", &mut Seen::default()))
}

fn ground(tree: &Tree) -> Ground<'_> {
    Ground { topology: "t", tree, tolerations: &[] }
}

fn ask<'a>(index: usize, pod_set: &'a PodSet, cpu: &'a Amounts, current: Option<&'a TopologyAssignment>) -> Ask<'a> {
    Ask {
        pod_set,
        index,
        count: pod_set.count,
        requests: cpu,
        is_implied: false,
        facts: PodFacts::new(&pod_set.template, std::iter::empty(), &[]),
        current,
        previous: None,
    }
}

/// The domains of a pod set as `name:count`; or why there are none.
fn shown(places: &Places, index: usize) -> String {
    match &places.iter().find(|it| it.0 == index).expect("it was looked at").1 {
        Ok(place) => {
            let domains = place.domains.iter().map(|it| format!("{}:{}", it.values.join("/"), it.count));
            domains.collect::<Vec<_>>().join(" ")
        }
        Err(reason) => reason.clone(),
    }
}

fn place_one(tree: &Tree, count: i32, request: TopologyRequest) -> String {
    shown(&place(tree, &[pod_set("main", count, request)], Gates::default()), 0)
}

#[test]
fn nodes_of_one_hostname_are_one_leaf_but_equal_inner_names_are_not() {
    let nodes = [
        node("a", &[(RACK, "r1"), (HOSTNAME, "h")], 1),
        node("b", &[(RACK, "r2"), (HOSTNAME, "h")], 2),
        node("c", &[(RACK, "r2"), (HOSTNAME, "i")], 4),
    ];
    let by_host = tree(&[RACK, HOSTNAME], &nodes);
    assert_eq!((by_host.n_leaves(), by_host.n_domains(0)), (2, 2));
    assert_eq!(place_one(&by_host, 3, required(HOSTNAME)), "h:3", "the first rack has both nodes");
    let same_rack = [node("a", &[(BLOCK, "b1"), (RACK, "r")], 1), node("b", &[(BLOCK, "b2"), (RACK, "r")], 2)];
    let by_rack = tree(&[BLOCK, RACK], &same_rack);
    assert_eq!(by_rack.n_leaves(), 2);
    assert_eq!(place_one(&by_rack, 2, required(RACK)), "b2/r:2");
}

#[test]
fn best_fit_fills_the_fullest_first_and_the_last_one_tightly() {
    let hosts = racks(&[&[3, 3, 2, 1]]);
    assert_eq!(place_one(&hosts, 7, required(RACK)), "h00:3 h01:3 h03:1");
    assert_eq!(place_one(&hosts, 7, unconstrained()), "h00:3 h01:1 h02:2 h03:1");
    let hosts = racks(&[&[6, 5, 4, 3, 2]]);
    assert_eq!(place_one(&hosts, 12, slices(required(RACK), HOSTNAME, 2)), "h00:6 h02:4 h04:2");
    assert_eq!(place_one(&hosts, 10, slices(unconstrained(), HOSTNAME, 2)), "h01:2 h02:4 h03:2 h04:2");
}

#[test]
fn a_level_is_required_or_preferred_or_left_open() {
    let two = racks(&[&[2, 2], &[3]]);
    assert_eq!(place_one(&two, 3, required(HOSTNAME)), "h10:3");
    assert_eq!(place_one(&two, 4, required(RACK)), "h00:2 h01:2");
    let too_many = "topology \"t\" allows to fit only 4 out of 5 pod(s)";
    assert_eq!(place_one(&two, 5, required(RACK)), too_many);
    assert_eq!(place_one(&two, 5, preferred(RACK)), "h00:2 h10:3", "hosts of both racks compete");
    assert_eq!(place_one(&two, 8, preferred(HOSTNAME)), "topology \"t\" allows to fit only 7 out of 8 pod(s)");
    assert_eq!(place_one(&two, 1, required("zone")), "no requested topology level: zone");
}

#[test]
fn slices_in_slices_stay_whole() {
    let hosts = racks(&[&[3, 3, 2]]);
    let layer = |topology: &str, size| SliceConstraint { topology: topology.to_owned(), size };
    let layers = |sizes: [i32; 2]| TopologyRequest {
        constraints: vec![layer(RACK, sizes[0]), layer(HOSTNAME, sizes[1])],
        ..required(RACK)
    };
    assert_eq!(place_one(&hosts, 6, layers([6, 2])), "h00:2 h01:2 h02:2");
    let lacks = "topology \"t\" doesn't allow to fit; 0/1 slice(s) fit on level rack; 0/2 slice(s) fit on level \
                 kubernetes.io/hostname";
    assert_eq!(place_one(&hosts, 8, layers([8, 4])), lacks);
    let odd = "additional slice layer size 4 must evenly divide parent layer size 6";
    assert_eq!(place_one(&hosts, 6, layers([6, 4])), odd);
}

#[test]
fn a_leader_is_placed_with_its_workers() {
    let two = racks(&[&[2, 2], &[4]]);
    let group = [pod_set("leader", 1, in_group(required(RACK))), pod_set("worker", 3, in_group(required(RACK)))];
    let places = place(&two, &group, Gates::default());
    assert_eq!((shown(&places, 0), shown(&places, 1)), ("h00:1".to_owned(), "h00:1 h01:2".to_owned()));
    let group = [pod_set("leader", 1, in_group(required(RACK))), pod_set("worker", 4, in_group(required(RACK)))];
    let places = place(&two, &group, Gates::default());
    assert_eq!(shown(&places, 0), shown(&places, 1), "both bear the reason");
}

#[test]
fn pods_beyond_whole_slices_make_a_shorter_one_that_comes_last() {
    let gates = Gates::default().with(Gate::TASPartialSlices, true);
    let placed = |tree: &Tree, count, request| shown(&place(tree, &[pod_set("main", count, request)], gates), 0);
    let three = racks(&[&[3], &[4], &[4]]);
    assert_eq!(placed(&three, 10, slices(preferred(RACK), RACK, 4)), "h10:4 h20:4 h00:2");
    assert_eq!(placed(&three, 8, slices(preferred(RACK), RACK, 4)), "h10:4 h20:4");
    let too_many = "topology \"t\" allows to fit only 2 out of 3 slice(s)";
    let two = racks(&[&[1, 1, 1], &[4], &[5]]);
    assert_eq!(placed(&two, 11, slices(preferred(RACK), RACK, 4)), "h10:4 h20:4 h00:1 h01:1 h02:1");
    assert_eq!(placed(&racks(&[&[4], &[5]]), 10, slices(preferred(RACK), RACK, 4)), too_many);
}

#[test]
fn a_pod_needs_a_node_below_the_levels_of_the_topology() {
    let nodes = [node("a", &[(RACK, "r1")], 4), node("b", &[(RACK, "r1")], 4), node("c", &[(RACK, "r2")], 3)];
    let offers = || nodes.iter().map(|node| Offer { node, taken: None });
    let mut tree = Tree::new(&keys(&[RACK]), offers(), Changes::default(), true);
    assert_eq!((tree.n_leaves(), tree.n_domains(0), tree.has_nodes()), (3, 2, true));
    assert_eq!(place_one(&tree, 8, required(RACK)), "r1:8");
    let cpu: Amounts = BTreeMap::from([("cpu".to_owned(), 1000)]);
    let rack = tree.find_by_id("r1").expect("it has nodes");
    tree.occupy(rack, &cpu, 3);
    assert_eq!(place_one(&tree, 6, required(RACK)), "topology \"t\" allows to fit only 5 out of 6 pod(s)");
    assert_eq!(place_one(&tree, 8, preferred(RACK)), "r1:5 r2:3");
    let leaf = tree.leaf_of(&nodes[1]).expect("it is of the flavor");
    assert!(tree.take_outside(leaf, &cpu, 4));
    assert_eq!(place_one(&tree, 2, required(RACK)), "r2:2");
    assert_eq!(place_one(&tree, 1, required(HOSTNAME)), "no requested topology level: kubernetes.io/hostname");
}

#[test]
fn later_groups_do_not_use_what_earlier_groups_took() {
    let hosts = racks(&[&[3, 2]]);
    let sets =
        [pod_set("a", 3, required(HOSTNAME)), pod_set("b", 2, required(HOSTNAME)), pod_set("c", 1, unconstrained())];
    let places = place(&hosts, &sets, Gates::default());
    assert_eq!((shown(&places, 0), shown(&places, 1)), ("h00:3".to_owned(), "h01:2".to_owned()));
    let full = "topology \"t\" doesn't allow to fit any of 1 pod(s). Total nodes: 2; excluded: resource \"cpu\": 2";
    assert_eq!(shown(&places, 2), full);
}

#[test]
fn balance_spreads_pods_evenly_where_the_gate_allows_it() {
    let gates = Gates::default().with(Gate::TASBalancedPlacement, true);
    let block = |block: &str, racks: &[i64]| -> Vec<Arc<Node>> {
        let host = |(rack, cpus): (usize, &i64)| {
            let (rack, name) = (format!("{block}r{rack}"), format!("{block}h{rack}"));
            node(&name, &[(BLOCK, block), (RACK, &rack), (HOSTNAME, &name)], *cpus)
        };
        racks.iter().enumerate().map(host).collect()
    };
    let nodes = [block("a", &[20, 10]), block("b", &[15, 15])].concat();
    let tree = tree(&[BLOCK, RACK, HOSTNAME], &nodes);
    let balanced = |count| shown(&place(&tree, &[pod_set("main", count, preferred(RACK))], gates), 0);
    assert_eq!(balanced(22), "bh0:11 bh1:11");
    assert_eq!(balanced(20), "ah0:20");
    assert_eq!(place_one(&tree, 22, preferred(RACK)), "ah0:20 ah1:2");
}

#[test]
fn each_domain_gets_the_threshold_and_the_first_the_rest() {
    let tree = tree(&[RACK], &[("a", 5), ("b", 1)].map(|(rack, cpus)| node(rack, &[(RACK, rack)], cpus)));
    let request = Wish::new(Some(&preferred(RACK)), false, &tree.keys).in_tree(&tree).expect("there are racks");
    let levels = vec![[5, 1].map(|n| Counts { pods: n, slices: n, ..Counts::default() }).to_vec()];
    let search = |n_pods| Search::new(&tree, (&request, &levels), (n_pods, 0), Gates::default());
    let given = |n_pods, threshold| {
        let (rows, levels) = search(n_pods).share_out(0, &[0, 1], threshold).ok()?;
        Some(rows.into_iter().map(|row| (row, levels[0][row].pods)).collect::<Vec<_>>())
    };
    assert_eq!(given(6, 1), Some(vec![(0, 5), (1, 1)]));
    assert_eq!(given(5, 1), Some(vec![(0, 5)]));
    // Once nothing is left, the capacity of a domain does not matter.
    assert_eq!(given(6, 2), Some(vec![(0, 4), (1, 2)]));
    assert_eq!(given(6, 4), None);
    assert_eq!(given(7, 1), None);
}

#[test]
fn a_topology_fits_if_it_has_all_requested_levels() {
    let levels = keys(&[BLOCK, RACK]);
    let fits = |request: &TopologyRequest| Wish::new(Some(request), false, &levels).fits_levels(&levels);
    assert!(fits(&required(RACK)));
    assert!(!fits(&required(HOSTNAME)));
    assert!(fits(&slices(required(BLOCK), RACK, 2)));
    assert!(!fits(&slices(required(BLOCK), HOSTNAME, 2)));
    assert!(fits(&unconstrained()));
    assert!(!fits(&TopologyRequest::default()));
    assert!(!Wish::new(None, false, &levels).fits_levels(&levels));
}

#[test]
fn unusable_hosts_are_counted_by_reason() {
    let tainted = Node {
        taints: vec![Taint { key: "spot".to_owned(), value: "yes".to_owned(), effect: "NoSchedule".to_owned() }],
        ..Node::clone(&node("a", &[(HOSTNAME, "a")], 5))
    };
    let hosts = tree(&[HOSTNAME], &[Arc::new(tainted), node("b", &[(HOSTNAME, "b"), ("gpu", "no")], 5)]);
    let mut pods = pod_set("main", 1, unconstrained());
    assert_eq!(shown(&place(&hosts, std::slice::from_ref(&pods), Gates::default()), 0), "b:1");
    pods.template.spec.node_selector.insert("gpu".to_owned(), "yes".to_owned());
    let nowhere = "topology \"t\" doesn't allow to fit any of 1 pod(s). Total nodes: 2; excluded: nodeSelector: 1, \
                   taint \"spot=yes:NoSchedule\": 1";
    assert_eq!(shown(&place(&hosts, &[pods], Gates::default()), 0), nowhere);
}

/// Random racks and requests: pods are placed all together, only where there is room, and as requested.
#[test]
fn placements_in_random_worlds_respect_the_request() {
    let (mut n_placed, mut n_failed) = (0, 0);
    for seed in 0..4_000 {
        let mut dice = Dice(seed);
        let cpus: Vec<Vec<i64>> = (0..1 + dice.below(3))
            .map(|_| (0..1 + dice.below(4)).map(|_| i64::try_from(dice.below(6)).unwrap()).collect())
            .collect();
        let tree = racks(&cpus.iter().map(Vec::as_slice).collect::<Vec<_>>());
        let size = [1, 1, 2, 3][dice.below(4)];
        let count = size * i32::try_from(1 + dice.below(6)).unwrap();
        let level = dice.one_of(&[RACK, HOSTNAME]);
        let asked = match dice.below(3) {
            0 => required(level),
            1 => preferred(level),
            _ => unconstrained(),
        };
        let of_slices = if size > 1 { slices(asked.clone(), HOSTNAME, size) } else { asked.clone() };
        let mut sets = vec![pod_set("worker", count, of_slices.clone())];
        if asked.unconstrained.is_none() && dice.once_in(3) {
            sets = vec![pod_set("leader", 1, in_group(asked.clone())), pod_set("worker", count, in_group(of_slices))];
        }
        let gates = Gates::default()
            .with(Gate::TASProfileMixed, !dice.once_in(4))
            .with(Gate::TASBalancedPlacement, dice.once_in(4));
        let places = place(&tree, &sets, gates);
        if places.iter().any(|place| place.1.is_err()) {
            n_failed += 1;
            continue;
        }
        n_placed += 1;
        let mut on_host: BTreeMap<String, i32> = BTreeMap::new();
        for (index, place) in &places {
            let place = place.as_ref().expect("none has failed");
            let n_pods: i32 = place.domains.iter().map(|domain| domain.count).sum();
            assert_eq!(n_pods, sets[*index].count, "world {seed}: all of {}", sets[*index].name);
            assert!(place.domains.is_sorted_by(|a, b| a.values < b.values), "world {seed}: in order");
            for domain in &place.domains {
                *on_host.entry(domain.values[0].to_string()).or_default() += domain.count;
                let is_worker = sets[*index].name == "worker";
                assert!(!is_worker || domain.count % size == 0, "world {seed}: slices are whole");
            }
        }
        for (host, n_pods) in &on_host {
            let (rack, at) = (usize::from(host.as_bytes()[1] - b'0'), usize::from(host.as_bytes()[2] - b'0'));
            assert!(i64::from(*n_pods) <= cpus[rack][at], "world {seed}: room on {host}");
        }
        if let Some(level) = &asked.required {
            let domains: std::collections::BTreeSet<&str> =
                on_host.keys().map(|host| if level == RACK { &host[..2] } else { host.as_str() }).collect();
            assert_eq!(domains.len(), 1, "world {seed}: in one {level}");
        }
    }
    assert!(n_placed > 1_000 && n_failed > 500, "{n_placed} {n_failed}");
}

/// Racks fill up and empty, with several kinds of pods in turn: placements with a cache equal those without.
#[test]
fn cached_tables_change_no_placement() {
    let (mut n_placed, mut n_failed) = (0, 0);
    for seed in 0..200 {
        let mut dice = Dice(seed);
        let mut tree = racks(&[&[2, 3, 1], &[4, 0], &[2, 2, 2, 2]]);
        let mut seen = Seen::default();
        let cpu = Amounts::from([("cpu".to_owned(), 1000)]);
        for turn in 0..60 {
            let leaf = dice.below(tree.n_leaves());
            let n_pods = i64::try_from(dice.below(4)).unwrap() - 1;
            if dice.once_in(3) {
                assert!(tree.capacity.take_outside(leaf, &cpu, n_pods));
            } else {
                tree.capacity.take(leaf, &cpu, n_pods);
            }
            if dice.once_in(2) {
                continue;
            }
            let level = dice.one_of(&[RACK, HOSTNAME]);
            let asked = in_group(if dice.once_in(2) { required(level) } else { preferred(level) });
            let mut sets = vec![pod_set("worker", 4, slices(asked.clone(), HOSTNAME, 1 + i32::from(dice.once_in(3))))];
            sets.extend(dice.once_in(3).then(|| pod_set("leader", 1, asked)));
            let asks: Vec<Ask<'_>> = sets.iter().enumerate().map(|(at, it)| ask(at, it, &cpu, None)).collect();
            let gone = AmountsById::from([("h00".into(), Amounts::from([("cpu".to_owned(), 1000)]))]);
            let nobody = AmountsById::default();
            let terms = Terms {
                gates: Gates::default().with(Gate::TASBalancedPlacement, dice.once_in(4)),
                simulates_empty: dice.once_in(4),
                unhealthy: None,
                stays: false,
                given_back: if dice.once_in(3) { &gone } else { &nobody },
            };
            let place = |seen| ground(&tree).place(&asks, terms, &mut Assumed::default(), ("", seen));
            let (places, anew) = (place(&mut seen), place(&mut Seen::default()));
            assert_eq!(places, anew, "world {seed}, turn {turn}");
            let is_placed = places.iter().all(|place| place.1.is_ok());
            (n_placed, n_failed) = (n_placed + i32::from(is_placed), n_failed + i32::from(!is_placed));
        }
    }
    assert!(n_placed > 1_000 && n_failed > 500, "{n_placed} {n_failed}");
}

#[test]
fn a_replacement_moves_only_the_pods_of_the_lost_host() {
    let hosts = racks(&[&[2, 2, 2], &[4]]);
    let before = TopologyAssignment {
        levels: keys(&[HOSTNAME]),
        domains: [("h00", 2), ("gone", 2)]
            .map(|(host, count)| crate::objects::TopologyDomain::new([host], count))
            .to_vec(),
    };
    let cpu: Amounts = BTreeMap::from([("cpu".to_owned(), 1000)]);
    let replaced = |request: TopologyRequest, host: &str| {
        let pods = pod_set("main", 4, request);
        let asks = [ask(0, &pods, &cpu, Some(&before))];
        let terms = Terms {
            gates: Gates::default(),
            simulates_empty: false,
            unhealthy: Some(host),
            stays: false,
            given_back: &AmountsById::default(),
        };
        shown(&ground(&hosts).place(&asks, terms, &mut Assumed::default(), ("", &mut Seen::default())), 0)
    };
    // This test charges the usage of h00 elsewhere, so it has room for two more.
    assert_eq!(replaced(required(RACK), "gone"), "h00:4");
    assert_eq!(replaced(preferred(HOSTNAME), "gone"), "h00:4");
    let stale = "Cannot replace the node, because the existing topologyAssignment is invalid, as it contains the stale \
                 domain gone";
    assert_eq!(replaced(required(RACK), "h00"), stale);
}
