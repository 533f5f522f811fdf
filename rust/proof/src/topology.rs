//! Placement on the nodes of one flavor.

use std::collections::BTreeMap;
use std::sync::Arc;

use kueuecore::base::gates::{Gate, Gates};
use kueuecore::objects::resource_names::resource_value;
use kueuecore::objects::{Admission, PodSetAssignment, TopologyAssignment, TopologyDomain, Workload};
use kueuecore::state::State;
use kueuecore::status::eviction::owned_by_single_pod;
use kueuecore::topology::capacity::Amounts;
use kueuecore::topology::filter::PodFacts;
use kueuecore::topology::placement::{AmountsById, Ask, Assumed, Seen, Terms};
use kueuecore::topology::sites::Stand;
use kueuecore_wire::encode;
use serde_json::{Map, Value, json};

use super::values::{entries, integer, is_true, items, quantity, text, texts};
use super::{Answer, Case};

/// Kind `topology`.
pub(super) fn topology(case: &Case<'_>) -> Answer {
    let input = case.input;
    let mut state = case.state();
    state.refresh_sites();
    let flavor = state.flavor(text(input, "flavor")?);
    let own = stand(&mut state, text(input, "flavor")?, &input["priorOwnUsage"])?;
    let of_sibling = stand(&mut state, text(input, "flavor")?, &input["priorFlavorUsage"])?;
    state.nodes.sites.try_with(&own, false);
    if state.config.gates.enabled(Gate::TASHandleOverlappingFlavors) {
        state.nodes.sites.try_with(&of_sibling, false);
    }
    let asked = workload(input)?;
    let gates = case.config.gates;
    let given = (!input["workload"].is_null()).then(|| case.workload("workload")).transpose()?;
    let Some(ground) = state.nodes.sites.ground(flavor) else { return Err("the flavor has no nodes".to_owned()) };
    let requests: Vec<Amounts> =
        items(&input["podSets"]).iter().map(|each| amounts(&each["singlePodRequests"])).collect::<Result<_, _>>()?;
    let of = |workload: Option<&Workload>, name: &str| -> Option<Arc<TopologyAssignment>> {
        let admission = workload?.status.admission.as_ref()?;
        let assigned = admission.pod_set_assignments.iter().find(|each| each.name == name)?;
        assigned.topology_assignment.as_deref().cloned().map(Arc::new)
    };
    let places: Vec<_> =
        asked.pod_sets.iter().map(|each| (of(given.as_ref(), &each.name), of(Some(&asked), &each.name))).collect();
    let mut asks = Vec::new();
    for (index, pod_set) in asked.pod_sets.iter().enumerate() {
        asks.push(Ask {
            pod_set,
            index,
            count: pod_set.count,
            requests: &requests[index],
            is_implied: is_true(&input["podSets"][index], "implied"),
            facts: PodFacts::new(&pod_set.template, std::iter::empty(), ground.tolerations),
            current: places[index].0.as_deref(),
            previous: places[index].1.as_deref(),
        });
    }
    let unhealthy = given.as_ref().and_then(|each| each.status.rare.unhealthy_nodes.first());
    let terms = Terms {
        gates,
        simulates_empty: false,
        unhealthy: unhealthy.map(String::as_str),
        stays: gates.enabled(Gate::SkipReassignmentForPodOwnedWorkloads)
            && given.as_ref().is_some_and(owned_by_single_pod),
        given_back: &AmountsById::default(),
    };
    let uid = given.as_ref().map_or("", |each| each.meta.key.uid());
    let found = ground.place(&asks, terms, &mut Assumed::default(), (uid, &mut Seen::default()));
    let found = found.into_iter().map(|(index, place)| (asked.pod_sets[index].name.clone(), place));
    Ok(Value::Object(answer(found, &gates)))
}

/// The places of pod sets, or why there is none.
fn answer(
    found: impl Iterator<Item = (String, Result<TopologyAssignment, String>)>,
    gates: &Gates,
) -> Map<String, Value> {
    let mut answer = Map::new();
    let (mut assignments, mut reasons, mut api) = (Map::new(), Map::new(), Map::new());
    let mut first = String::new();
    for (name, place) in found {
        match place {
            Ok(place) => {
                api.insert(name.clone(), encoded(&name, &place, gates));
                assignments.insert(name, shown(&place));
            }
            Err(reason) => {
                if first.is_empty() {
                    first.clone_from(&reason);
                }
                reasons.insert(name, Value::from(reason));
            }
        }
    }
    answer.insert("assignments".to_owned(), Value::Object(assignments));
    answer.insert("apiAssignments".to_owned(), Value::Object(api));
    answer.insert("reasons".to_owned(), Value::Object(reasons));
    answer.insert("reason".to_owned(), Value::from(first));
    answer
}

/// An assignment as cases write it, one entry per domain.
pub(super) fn shown(place: &TopologyAssignment) -> Value {
    let domains = place.domains.iter().map(|each| json!({"values": values_of(each), "count": each.count}));
    json!({"levels": place.levels, "domains": domains.collect::<Vec<_>>()})
}

/// The values of a domain.
pub(super) fn values_of(domain: &TopologyDomain) -> Vec<&str> {
    domain.values.iter().map(|value| &**value).collect()
}

/// An assignment as in the API.
pub(super) fn encoded(name: &str, place: &TopologyAssignment, gates: &Gates) -> Value {
    let topology_assignment = Some(place.clone().into());
    let assigned = PodSetAssignment { name: name.to_owned(), topology_assignment, ..PodSetAssignment::default() };
    let admission = Admission { cluster_queue: "".into(), pod_set_assignments: vec![assigned].into() };
    encode::admission(&admission, gates)["podSetAssignments"][0]["topologyAssignment"].clone()
}

/// What other pods take.
pub(super) fn stand(state: &mut State, flavor: &str, usage: &Value) -> Result<Vec<Stand>, String> {
    let flavor = state.flavor(flavor);
    let mut stands = Vec::new();
    for each in items(usage) {
        let mut per_pod = amounts(&each["singlePodRequests"])?;
        *per_pod.entry("pods".to_owned()).or_default() += 1;
        let count = i32::try_from(integer(each, "count")?).map_err(|error| error.to_string())?;
        let domains = vec![TopologyDomain::new(texts(&each["values"]), count)];
        let place = TopologyAssignment { levels: Vec::new(), domains }.into();
        stands.push(Stand { flavors: [flavor].into_iter().collect(), per_pod: Arc::new(per_pod), place });
    }
    Ok(stands)
}

fn amounts(requests: &Value) -> Result<Amounts, String> {
    let amount = |(name, given): (&String, &Value)| Ok((name.clone(), resource_value(name, &quantity(given)?)));
    entries(requests).map(amount).collect::<Result<BTreeMap<_, _>, String>>()
}

/// A workload with the pod sets of the case, and the placement of the slice that it replaces.
fn workload(input: &Value) -> Result<Workload, String> {
    let mut pod_sets = Vec::new();
    let mut assignments = Vec::new();
    for each in items(&input["podSets"]) {
        let mut spec = each["podSpec"].clone();
        if !spec.is_object() {
            spec = json!({});
        }
        let mut request = each["topologyRequest"].clone();
        if !each["podSetGroupName"].is_null() {
            request["podSetGroupName"] = each["podSetGroupName"].clone();
        }
        let mut pod_set = json!({"name": each["name"], "count": each["count"], "template": {"spec": spec}});
        if !request.is_null() {
            pod_set["topologyRequest"] = request;
        }
        pod_sets.push(pod_set);
        let mut assigned = json!({"name": each["name"], "count": each["count"]});
        if !each["previousAssignment"].is_null() {
            assigned["topologyAssignment"] = each["previousAssignment"].clone();
        }
        assignments.push(assigned);
    }
    super::workload(&json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": {"namespace": "ns", "name": "asked"},
        "spec": {"podSets": pod_sets},
        "status": {"admission": {"clusterQueue": "cq", "podSetAssignments": assignments}},
    }))
}
