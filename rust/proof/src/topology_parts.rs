//! Parts of a placement, each on its own: orders, balance, assignments and their compact form.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kueuecore::base::changes::Changes;
use kueuecore::objects::{Meta, Node, Object, PodSet, TopologyAssignment, TopologyDomain};
use kueuecore::state::needs_second_pass;
use kueuecore::topology::capacity::Row;
use kueuecore::topology::counts::{Counts, Levels};
use kueuecore::topology::hosts::used_hosts;
use kueuecore::topology::placement::{Ground, truncated};
use kueuecore::topology::request::{Request, Wish};
use kueuecore::topology::search::Search;
use kueuecore::topology::tree::{Offer, Tree};
use kueuecore_wire::decode;
use kueuecore_wire::encode::topology::in_prefix_runs;
use serde_json::{Map, Value, json};

use super::topology::{encoded, shown};
use super::values::{integer, is_true, items, text, texts};
use super::{Answer, Case};

/// Kind `explicitly_requesting_tas`.
pub(super) fn explicitly_requesting_tas(case: &Case<'_>) -> Answer {
    let pod_sets: Vec<PodSet> = items(&case.input["podSets"]).iter().map(pod_set).collect::<Result<_, _>>()?;
    let mut requests = pod_sets.iter().filter_map(|it| it.topology_request.as_ref());
    Ok(Some(json!({"explicit": requests.any(|request| request.is_explicit())})))
}

/// Kind `needs_second_pass`.
pub(super) fn second_pass(case: &Case<'_>) -> Answer {
    Ok(Some(json!({"needsSecondPass": needs_second_pass(&case.workload("workload")?)})))
}

/// Kind `used_nodes`.
pub(super) fn used_nodes(case: &Case<'_>) -> Answer {
    let workload = case.workload("workload")?;
    Ok(Some(json!({"nodes": used_hosts(&workload).map(|host| &**host).collect::<BTreeSet<_>>()})))
}

/// Kind `topology_has_level`.
pub(super) fn has_level(case: &Case<'_>) -> Answer {
    let levels: Vec<String> = texts(&case.input["levels"]).map(str::to_owned).collect();
    let pod_set = pod_set(&json!({"topologyRequest": case.input["topologyRequest"]}))?;
    let wish = Wish::new(pod_set.topology_request.as_deref(), false, &levels);
    Ok(Some(json!({"hasLevel": wish.fits_levels(&levels)})))
}

/// Kind `topology_encoding`.
pub(super) fn encoding(case: &Case<'_>) -> Answer {
    let place = assignment(&case.input["assignment"])?;
    let written = encoded("main", &place, &case.config.gates);
    Ok(Some(if case.input["encoder"] == "hostnamePrefixRuns" {
        json!({"topologyAssignment": in_prefix_runs(&place), "v1beta2From": written})
    } else {
        json!({"topologyAssignment": written})
    }))
}

/// Kind `topology_decoding`.
pub(super) fn decoding(case: &Case<'_>) -> Answer {
    let assigned = json!({"name": "main", "topologyAssignment": case.input["topologyAssignment"]});
    let admission = decode::admission(&json!({"clusterQueue": "cq", "podSetAssignments": [assigned]}));
    let admission = admission.map_err(|e| e.to_string())?;
    let place = admission.pod_set_assignments.first().and_then(|it| it.topology_assignment.as_deref());
    let n_domains = place.map_or(0, |place| place.domains.len());
    Ok(Some(json!({"assignment": place.map(shown), "totalDomainCount": n_domains})))
}

/// Kind `topology_truncate`.
pub(super) fn truncate(case: &Case<'_>) -> Answer {
    let place = assignment(&case.input["assignment"])?;
    Ok(Some(json!({"assignment": shown(&truncated(&place, integer(case.input, "count")?))})))
}

/// Kind `topology_merge`.
pub(super) fn merge(case: &Case<'_>) -> Answer {
    let keys: Vec<String> = texts(&case.input["levels"]).map(str::to_owned).collect();
    let nodes: Vec<Arc<Node>> = case.objects.iter().filter_map(node).collect();
    let tree = Tree::new(&keys, nodes.iter().map(|node| Offer { node, taken: None }), Changes::default(), false);
    let ground = Ground { topology: "", tree: &tree, tolerations: &[] };
    let [a, b] = [assignment(&case.input["a"])?, assignment(&case.input["b"])?];
    Ok(Some(json!({"assignment": shown(&ground.merged(&a, &b))})))
}

/// Kind `tas_domain_order`.
pub(super) fn domain_order(case: &Case<'_>) -> Answer {
    let domains = Domains::read(case.input)?;
    let request = Request { unconstrained: is_true(case.input, "unconstrained"), ..domains.request(case.input)? };
    let search = domains.search(case, &request, 0);
    let mut rows: Vec<Row> = domains.rows().collect();
    if is_true(case.input, "withLeader") {
        search.sort_with_leader(domains.tree.lowest(), &mut rows, search.algorithm);
    } else {
        search.sort_plain(domains.tree.lowest(), &mut rows, search.algorithm);
    }
    Ok(Some(json!({"order": domains.ids(&rows)})))
}

/// Kind `tas_optimal_domain_set`.
pub(super) fn optimal_domain_set(case: &Case<'_>) -> Answer {
    let domains = Domains::read(case.input)?;
    let request = domains.request(case.input)?;
    let search = domains.search(case, &request, integer(case.input, "workerCount")? * request.slice_size);
    let rows: Vec<Row> = domains.rows().collect();
    let chosen = search.optimal(request.level, &rows, is_true(case.input, "prioritizeByEntropy"));
    let ids: BTreeSet<&str> = domains.ids(&chosen.unwrap_or_default()).into_iter().collect();
    Ok(Some(json!({"domains": ids})))
}

/// Kind `tas_best_domains_balanced`.
pub(super) fn best_domains_balanced(case: &Case<'_>) -> Answer {
    let domains = Domains::read(case.input)?;
    let request = domains.request(case.input)?;
    let search = domains.search(case, &request, integer(case.input, "count")?);
    let best = search.best_candidate(&mut domains.levels.clone());
    let (threshold, n_domains) = best.map_or((0, 0), |best| (best.threshold, best.rows.len()));
    Ok(Some(json!({"threshold": threshold, "domainsCount": n_domains})))
}

/// Kind `tas_balanced_placement`.
pub(super) fn balanced_placement(case: &Case<'_>) -> Answer {
    let domains = Domains::read(case.input)?;
    let request = domains.request(case.input)?;
    let search = domains.search(case, &request, integer(case.input, "sliceCount")? * request.slice_size);
    let rows: Vec<Row> = domains.rows().collect();
    let shared = search.share_out(request.level, &rows, integer(case.input, "threshold")?);
    Ok(Some(match shared {
        Ok((rows, levels)) => {
            let states = domains.ids(&rows).into_iter().zip(&rows);
            let states: Map<String, Value> =
                states.map(|(id, &row)| (id.to_owned(), state(&levels[request.level][row]))).collect();
            json!({"domains": states, "reason": ""})
        }
        Err(reason) => json!({"domains": {}, "reason": reason}),
    }))
}

/// Domains, and how much fits into them.
struct Domains<'a> {
    tree: Tree,
    levels: Levels,
    /// The id of each domain of the lowest level.
    ids: Vec<&'a str>,
}

impl<'a> Domains<'a> {
    /// A tree with a node in each domain of the lowest level.
    fn read(input: &'a Value) -> Result<Self, String> {
        let given = items(&input["domains"]);
        let path = |it: &'a Value| -> Vec<&'a str> { texts(&it["levelValues"]).collect() };
        let n_levels = given.iter().map(|it| path(it).len()).max().ok_or("no domains")?;
        let keys: Vec<String> = (0..n_levels).map(|level| format!("level-{level}")).collect();
        let leaves = given.iter().filter(|it| path(it).len() == n_levels);
        let nodes: Vec<Arc<Node>> = leaves
            .map(|it| {
                let labels = keys.iter().cloned().zip(path(it).into_iter().map(str::to_owned)).collect();
                Ok(Arc::new(Node {
                    meta: Meta { name: text(it, "id")?.to_owned(), labels, ..Meta::default() },
                    ..Node::default()
                }))
            })
            .collect::<Result<_, String>>()?;
        let tree = Tree::new(&keys, nodes.iter().map(|node| Offer { node, taken: None }), Changes::default(), false);
        let by_path: BTreeMap<Vec<&str>, &Value> = given.iter().map(|it| (path(it), it)).collect();
        let mut levels: Levels = Vec::new();
        let mut ids = Vec::new();
        for level in 0..n_levels {
            let of_level = (0..tree.n_domains(level)).map(|row| {
                let path = tree.path(level, row);
                by_path.get(&path).copied().ok_or_else(|| format!("no domain {path:?}"))
            });
            let of_level: Vec<&'a Value> = of_level.collect::<Result<_, _>>()?;
            ids = of_level.iter().map(|it| text(it, "id")).collect::<Result<_, _>>()?;
            levels.push(of_level.iter().map(|it| counts(&it["state"])).collect());
        }
        if levels.iter().map(Vec::len).sum::<usize>() != given.len() {
            return Err("some domains have one path, or nothing below them".to_owned());
        }
        Ok(Self { tree, levels, ids })
    }

    /// The domains of the lowest level.
    fn rows(&self) -> std::ops::Range<Row> {
        0..self.ids.len()
    }

    fn ids(&self, rows: &[Row]) -> Vec<&'a str> {
        rows.iter().map(|&row| self.ids[row]).collect()
    }

    fn request(&self, input: &Value) -> Result<Request, String> {
        let number = |key: &str, absent: i64| match &input[key] {
            Value::Null => Ok(absent),
            _ => integer(input, key),
        };
        let level = |key: &str| usize::try_from(number(key, 0)?).map_err(|e| format!("{key}: {e}"));
        Ok(Request {
            level: level("requestedLevelIdx")?,
            required: false,
            unconstrained: false,
            slice_size: number("sliceSize", 1)?,
            slice_level: level("sliceLevelIdx")?,
            inner_sizes: vec![1; self.tree.n_levels()],
            layers: Vec::new(),
            tail: 0,
        })
    }

    fn search<'b>(&'b self, case: &Case<'_>, request: &'b Request, n_pods: i64) -> Search<'b> {
        let n_leaders = case.input["leaderCount"].as_i64().unwrap_or_default();
        Search::new(&self.tree, (request, &self.levels), (n_pods, n_leaders), case.config.gates)
    }
}

fn counts(state: &Value) -> Counts {
    let number = |key: &str| state[key].as_i64().unwrap_or_default();
    Counts {
        pods: number("podCount"),
        slices: number("sliceCount"),
        pods_with_leader: number("podCountWithLeader"),
        slices_with_leader: number("sliceCountWithLeader"),
        leaders: number("leaderCount"),
        score: number("affinityScore"),
    }
}

fn state(counts: &Counts) -> Value {
    json!({
        "podCount": counts.pods,
        "sliceCount": counts.slices,
        "podCountWithLeader": counts.pods_with_leader,
        "sliceCountWithLeader": counts.slices_with_leader,
        "leaderCount": counts.leaders,
        "affinityScore": counts.score,
    })
}

fn pod_set(value: &Value) -> Result<PodSet, String> {
    decode::pod_set(value).map_err(|e| e.to_string())
}

fn node(object: &Object) -> Option<Arc<Node>> {
    match object {
        Object::Node(node) => Some(Arc::new(Node::clone(node))),
        _ => None,
    }
}

/// An assignment as cases write it, one entry per domain.
fn assignment(value: &Value) -> Result<TopologyAssignment, String> {
    let domain = |it: &Value| {
        let count = i32::try_from(integer(it, "count")?).map_err(|e| e.to_string())?;
        Ok(TopologyDomain::new(texts(&it["values"]), count))
    };
    Ok(TopologyAssignment {
        levels: texts(&value["levels"]).map(str::to_owned).collect(),
        domains: items(&value["domains"]).iter().map(domain).collect::<Result<_, String>>()?,
    })
}
