//! Which hosts a pod may run on (rules/08 §4.7, §4.8).

use std::collections::BTreeMap;

use crate::objects::selectors::{term_matches, tolerated};
use crate::objects::{Node, NodeSelectorTerm, PodSetUpdate, PodTemplate, StringMap, Taint, Toleration};

/// kube-scheduler's taint for an unschedulable node.
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";

/// The parts of a pod that decide where it may run.
#[derive(Clone, Debug, Default)]
pub struct PodFacts<'a> {
    /// Required node labels.
    pub node_selector: StringMap,
    /// Tolerations, those of the flavor included.
    pub tolerations: Vec<&'a Toleration>,
    /// The terms of which one must match; `None`: there are none.
    pub required: Option<&'a [NodeSelectorTerm]>,
    /// Do kube-scheduler's filters decide?
    pub by_library: bool,
    /// Preferred terms, with their weights.
    pub preferred: Vec<(i64, &'a NodeSelectorTerm)>,
}

impl<'a> PodFacts<'a> {
    /// Combines a pod's template with additions of admission checks and tolerations of a flavor; or says which of these
    /// contradict each other.
    pub fn new(
        template: &'a PodTemplate,
        updates: impl Iterator<Item = &'a PodSetUpdate>,
        tolerations: &'a [Toleration],
    ) -> Result<Self, String> {
        let spec = &template.spec;
        let (mut labels, mut annotations) = (template.metadata.labels.clone(), template.metadata.annotations.clone());
        let mut facts = Self {
            node_selector: spec.node_selector.clone(),
            tolerations: spec.tolerations.iter().collect(),
            required: spec.required_node_affinity.as_deref(),
            by_library: false,
            preferred: spec.preferred_node_affinity.iter().map(|it| (i64::from(it.weight), &it.term)).collect(),
        };
        for update in updates {
            merge("annotations", &mut annotations, &update.annotations)?;
            merge("labels", &mut labels, &update.labels)?;
            merge("nodeSelector", &mut facts.node_selector, &update.node_selector)?;
            facts.tolerations.extend(&update.tolerations);
        }
        facts.tolerations.extend(tolerations);
        Ok(facts)
    }

    /// The first reason why a pod may not run on a node.
    pub fn refusal(&self, node: &Node) -> Option<Refusal> {
        let refusal = self.mismatch(node);
        // Without the filters of kube-scheduler, nodes that are cordoned have been left out of the leaves before
        // (rules/08 §4.1).
        if !self.by_library {
            return refusal;
        }
        let cordon = || Taint { key: UNSCHEDULABLE.to_owned(), effect: "NoSchedule".to_owned(), ..Taint::default() };
        let is_cordoned = node.unschedulable && !tolerated(&cordon(), self.tolerations.iter().copied());
        (is_cordoned || refusal.is_some()).then_some(Refusal::Library)
    }

    fn mismatch(&self, node: &Node) -> Option<Refusal> {
        let forbids = |taint: &&Taint| taint.effect == "NoSchedule" || taint.effect == "NoExecute";
        let untolerated =
            node.taints.iter().filter(forbids).find(|it| !tolerated(it, self.tolerations.iter().copied()));
        if let Some(taint) = untolerated {
            return Some(Refusal::Taint(shown(taint)));
        }
        if self.node_selector.iter().any(|(key, value)| node.meta.labels.get(key) != Some(value)) {
            return Some(Refusal::Selector);
        }
        let matches = |term: &NodeSelectorTerm| term_matches(term, &node.meta.labels, &node.meta.name);
        (!self.required.is_none_or(|terms| terms.iter().any(matches))).then_some(Refusal::Affinity)
    }

    /// How strongly a pod prefers this node.
    pub fn score(&self, node: &Node) -> i64 {
        let matches =
            |it: &&(i64, &NodeSelectorTerm)| it.0 != 0 && term_matches(it.1, &node.meta.labels, &node.meta.name);
        self.preferred.iter().filter(matches).map(|it| it.0).sum()
    }
}

/// Adds what an update sets, unless it contradicts a known value.
fn merge(field: &str, known: &mut StringMap, update: &StringMap) -> Result<(), String> {
    for (key, value) in update {
        if let Some(other) = known.get(key).filter(|other| *other != value) {
            return Err(format!(
                "invalid admission check PodSetUpdate: conflict for {field}: conflict for key={key}, value1={other}, \
                 value2={value}"
            ));
        }
    }
    known.extend(update.iter().map(|(key, value)| (key.clone(), value.clone())));
    Ok(())
}

fn shown(taint: &Taint) -> String {
    let Taint { key, value, effect } = taint;
    if value.is_empty() { format!("{key}:{effect}") } else { format!("{key}={value}:{effect}") }
}

/// Why a leaf cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Refusal {
    /// The node selector does not match.
    Selector,
    /// The required affinity does not match.
    Affinity,
    /// It is outside the domain in which a lost pod must stay.
    Domain,
    /// kube-scheduler's filters reject it.
    Library,
    /// This taint is not tolerated.
    Taint(String),
    /// Too little of a resource.
    Resource(String),
}

/// How many leaves cannot be used, by reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refusals(BTreeMap<Refusal, usize>);

impl Refusals {
    /// Counts one leaf.
    pub fn add(&mut self, refusal: Refusal) {
        self.add_some(refusal, 1);
    }

    /// Counts several leaves.
    pub fn add_some(&mut self, refusal: Refusal, n_leaves: usize) {
        if n_leaves > 0 {
            *self.0.entry(refusal).or_default() += n_leaves;
        }
    }

    /// The message, empty if there is nothing to report.
    pub fn text(&self, n_leaves: usize) -> String {
        if self.0.keys().all(|refusal| *refusal == Refusal::Library) {
            return String::new();
        }
        let mut parts: Vec<String> = self
            .0
            .iter()
            .map(|(refusal, n)| match refusal {
                Refusal::Selector => format!("nodeSelector: {n}"),
                Refusal::Affinity => format!("affinity: {n}"),
                Refusal::Domain => format!("topologyDomain: {n}"),
                Refusal::Library => format!("schedulerLibraryNoFit: {n}"),
                Refusal::Taint(taint) => format!("taint \"{taint}\": {n}"),
                Refusal::Resource(name) => format!("resource \"{name}\": {n}"),
            })
            .collect();
        parts.sort_unstable();
        format!(". Total nodes: {n_leaves}; excluded: {}", parts.join(", "))
    }
}
