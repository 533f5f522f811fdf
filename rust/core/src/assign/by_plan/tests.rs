//! By a plan as without it, for random rules, flavors, pod sets and usage.

use std::collections::BTreeMap;

use smallvec::SmallVec;

use super::*;
use crate::assign::plan::PlanKey;
use crate::assign::rules::RulesTable;
use crate::assign::{
    Candidate, Context, Fungibility, Mode, Possibility, QueueRules, ResourceGroup, ScanProgress, assign,
};
use crate::base::amount::Amount;
use crate::base::gates::Gate;
use crate::base::ids::{FlavorId, IdVec, ResourceId};
use crate::base::names::Names;
use crate::objects::config::Config;
use crate::objects::config::FairSharing;
use crate::objects::{
    BorrowWithinCohort, FlavorFungibility, FungibilityPolicy, FungibilityPreference, PodSet, Preemption,
    PreemptionPolicy, Requirement, ResourceFlavor, Taint, Toleration,
};
use crate::pods::totals::Totals;
use crate::quota::forest::{Forest, NodeKind};
use crate::quota::tree::{Column, Quota};
use crate::testing::Dice;
use crate::topology::sites::Sites;

const N_WORLDS: u64 = 6_000;
const RESOURCES: [&str; 4] = ["cpu", "memory", "example.com/gpu", "pods"];

/// Says anything of a column and an amount, and always the same.
struct Anything(u64);

impl Oracle for Anything {
    fn simulate(&mut self, _: &mut Tree, _: Row, column: Column, amount: Amount, level: u32) -> (Possibility, u32) {
        let mut dice = Dice(self.0 ^ (column as u64) << 8 ^ amount.get().unsigned_abs());
        let all = [Possibility::NoCandidates, Possibility::Preempt, Possibility::Reclaim];
        (dice.one_of(&all), if dice.once_in(2) { level } else { dice.below(3) as u32 })
    }
}

fn flavor(dice: &mut Dice) -> Option<Arc<ResourceFlavor>> {
    let mut flavor = ResourceFlavor::default();
    if dice.once_in(4) {
        let (key, value) = (dice.one_of(&["a", "b"]).to_owned(), String::new());
        let effect = dice.one_of(&["NoSchedule", "PreferNoSchedule"]).to_owned();
        flavor.node_taints.push(Taint { key, value, effect });
    }
    if dice.once_in(3) {
        flavor.node_labels.insert("zone".to_owned(), dice.one_of(&["1", "2"]).to_owned());
    }
    if dice.once_in(12) {
        flavor.topology_name = "racks".to_owned();
    }
    (!dice.once_in(12)).then(|| Arc::new(flavor))
}

/// Groups of resources and flavors; now and then one that Kueue's webhook refuses.
fn groups(dice: &mut Dice, names: &mut Names, flavors: usize) -> Vec<ResourceGroup> {
    let mut groups = Vec::new();
    let (mut resources, mut free) = (RESOURCES.to_vec(), (0..flavors).collect::<Vec<_>>());
    if dice.once_in(3) {
        resources.pop();
    }
    for _ in 0..=dice.below(2) {
        let mut group = ResourceGroup::default();
        for _ in 0..=dice.below(2) {
            if !resources.is_empty() {
                let at = dice.below(resources.len());
                let resource = if dice.once_in(30) { resources[at] } else { resources.swap_remove(at) };
                group.covered.push(names.resource(resource));
            }
        }
        for _ in 0..dice.below(6) {
            if !free.is_empty() {
                let at = dice.below(free.len());
                let flavor = if dice.once_in(30) { free[at] } else { free.swap_remove(at) };
                group.flavors.push(FlavorId(flavor as u32));
            }
        }
        let pairs = group.flavors.iter().flat_map(|&flavor| group.covered.iter().map(move |&it| (flavor, it)));
        group.pairs = pairs.map(|(flavor, resource)| names.flavor_resource(flavor, resource)).collect();
        groups.push(group);
    }
    let all: Vec<FlavorId> = groups.iter().flat_map(|group| group.flavors.clone()).collect();
    let is_twice = |flavor: &FlavorId| all.iter().filter(|it| *it == flavor).count() > 1;
    groups.iter_mut().for_each(|group| group.repeats = group.flavors.iter().any(is_twice));
    groups
}

fn rules(dice: &mut Dice, names: &mut Names, n_flavors: usize) -> QueueRules {
    let policies = [FungibilityPolicy::MayStopSearch, FungibilityPolicy::TryNextFlavor];
    let given = FlavorFungibility {
        when_can_borrow: dice.one_of(&policies),
        when_can_preempt: dice.one_of(&policies),
        preference: dice.one_of(&[None, Some(FungibilityPreference::PreemptionOverBorrowing)]),
    };
    let all = [PreemptionPolicy::Unset, PreemptionPolicy::Never, PreemptionPolicy::LowerPriority];
    let policy = dice.one_of(&all);
    let preemption = (!dice.once_in(3)).then(|| Preemption {
        reclaim_within_cohort: dice.one_of(&all),
        within_cluster_queue: dice.one_of(&all),
        borrow_within_cohort: dice.once_in(2).then_some(BorrowWithinCohort { policy, max_priority_threshold: None }),
    });
    let fungibility =
        Fungibility { fit_beats_no_candidates: dice.once_in(2), ..Fungibility::new(given, &Config::default()) };
    QueueRules { groups: groups(dice, names, n_flavors), fungibility, preemption }
}

fn pod_set(dice: &mut Dice, names: &mut Names) -> (PodSet, Totals) {
    let count = dice.below(4) as i32;
    let mut pod_set = PodSet { name: "main".to_owned(), count, ..PodSet::default() };
    let spec = &mut pod_set.template.spec;
    if dice.once_in(2) {
        let key = dice.one_of(&["a", "b", ""]).to_owned();
        spec.tolerations.push(Toleration { key, operator: "Exists".to_owned(), ..Toleration::default() });
    }
    if dice.once_in(4) {
        spec.node_selector.insert("zone".to_owned(), "1".to_owned());
    }
    if dice.once_in(20) {
        let operator = dice.one_of(&["In", "Like"]).to_owned();
        let expression = Requirement { key: "zone".to_owned(), operator, values: vec!["2".to_owned()] };
        let term = crate::objects::NodeSelectorTerm { match_expressions: vec![expression], ..Default::default() };
        spec.required_node_affinity = Some(vec![term]);
    }
    let mut requests = Vec::new();
    for name in &RESOURCES[..3] {
        if dice.once_in(2) {
            requests.push((names.resource(name), dice.below(7) as i64));
        }
    }
    requests.sort_by(|a, b| names.canonical_key(a.0).cmp(&names.canonical_key(b.0)));
    (pod_set, Totals { count, requests, flavors: Vec::new() })
}

/// A ClusterQueue in a cohort with another one, and what both use.
fn tree(dice: &mut Dice, names: &Names, rules: &QueueRules) -> (Tree, Row) {
    let mut forest = Forest::default();
    let cohort = forest.add_node(NodeKind::Cohort);
    let queues = [forest.add_node(NodeKind::Queue), forest.add_node(NodeKind::Queue)];
    let pairs: Vec<_> = rules.groups.iter().flat_map(|group| group.pairs.clone()).collect();
    let is_alone = dice.once_in(4);
    for queue in queues {
        let limit = |dice: &mut Dice| dice.once_in(3).then(|| Amount::new(dice.below(5) as i64));
        let mut quotas = BTreeMap::new();
        for &pair in &pairs {
            let nominal = if dice.once_in(20) { Amount::UNLIMITED } else { Amount::new(dice.below(12) as i64) };
            quotas.insert(pair, Quota { nominal, borrowing_limit: limit(dice), lending_limit: limit(dice) });
        }
        forest.set_quotas(queue, quotas);
        forest.set_parent(queue, (!is_alone).then_some(cohort), names);
        forest.set_active(queue, true);
    }
    forest.flush(names);
    for queue in queues {
        for &pair in &pairs {
            if dice.once_in(2) {
                forest.charge(queue, &[(pair, Amount::new(dice.below(9) as i64))], true, names);
            }
        }
    }
    forest.flush(names);
    let (tree, row) = forest.locate(queues[0]);
    (*forest.lend_tree(tree), row)
}

fn resume(dice: &mut Dice, pod_sets: usize) -> Resume {
    let of_resource = |dice: &mut Dice, id| (ResourceId(id), dice.below(4) as i32 - 1);
    let tried: ScanProgress =
        (0..pod_sets).map(|_| (0..3).map(|id| of_resource(dice, id)).collect::<SmallVec<_>>()).collect();
    Resume { tried, ..Resume::default() }
}

#[test]
fn assignment_by_a_plan_equals_assignment_without() {
    let mut n_of_mode = BTreeMap::new();
    let (mut n_general, mut n_passing_over, mut n_resumed) = (0, 0, 0);
    for seed in 0..N_WORLDS {
        let mut dice = Dice(seed);
        let mut names = Names::default();
        for name in RESOURCES {
            names.resource(name);
        }
        let mut flavors = IdVec::default();
        for n in 0..1 + dice.below(8) {
            names.flavors.intern(&format!("f{n}"));
            flavors.push(flavor(&mut dice));
        }
        let rules = rules(&mut dice, &mut names, flavors.len());
        let (tree, row) = tree(&mut dice, &names, &rules);
        let (mut tree, again) = (tree.clone(), tree);
        let mut config = Config::default();
        for gate in [Gate::FlavorFungibility, Gate::UnadmittedWorkloadsObservability, Gate::TopologyAwareScheduling] {
            config.gates = config.gates.with(gate, !dice.once_in(4));
        }
        config.gates = config.gates.with(Gate::QuotaCheckStrategy, true);
        config.resources.ignore_undeclared = dice.once_in(3);
        config.fair_sharing = dice.once_in(3).then(FairSharing::default);
        let (pod_sets, totals): (Vec<_>, Vec<_>) =
            (0..1 + dice.below(3)).map(|_| pod_set(&mut dice, &mut names)).unzip();
        let resume = dice.once_in(3).then(|| resume(&mut dice, pod_sets.len()));

        let (rules, id) = RulesTable::default().share(rules);
        let context =
            Context { names: &names, flavors: &flavors, config: &config, queue: &rules, row, sites: &Sites::default() };
        let key = PlanKey { spec: seed, rules: id };
        let Some(plan) = Plan::new(key, &context, &rules, &pod_sets, &totals) else {
            n_general += 1;
            continue;
        };
        let candidate = Candidate {
            pod_sets: &pod_sets,
            totals: &totals,
            of_one_pod: &[],
            resume: resume.as_ref(),
            allowed_flavors: None,
            replaced_slice: None,
            nomination: None,
            places: &[],
        };
        let expected = assign(&context, &mut again.clone(), &candidate, None, &mut Anything(seed));
        let found = Arc::new(plan).assign(&mut tree, row, resume.as_ref(), &mut Anything(seed));
        assert_eq!(found, expected, "world {seed}");
        assert_eq!(found.grants(), expected.grants(), "world {seed}");
        let exists = |it: &(ResourceId, FlavorId, i64)| flavors[it.1].is_some();
        assert!(found.grants().iter().flat_map(|grant| &grant.choices).all(exists), "world {seed}");
        assert_eq!(found.takes_the_first(), expected.takes_the_first(), "world {seed}");
        *n_of_mode.entry(found.mode()).or_insert(0) += 1;
        n_passing_over += usize::from(!found.takes_the_first() && found.mode() == Mode::Fit);
        n_resumed += usize::from(resume.is_some());
    }
    // Else it would say less than it seems to.
    let n_at_least = n_of_mode.values().min().copied().unwrap_or_default();
    assert!(n_of_mode.len() == 3 && n_at_least > 100, "{n_of_mode:?}");
    assert!(n_general > 200 && n_passing_over > 200 && n_resumed > 500, "{n_general} {n_passing_over} {n_resumed}");
}
