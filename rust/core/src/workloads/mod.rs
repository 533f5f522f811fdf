//! The table of workloads, with values computed once for each: adjusted pod sets, totals, shape, queue position.

pub(crate) mod assigned;
pub(crate) mod before;
pub mod candidates;
pub mod charge;
pub(crate) mod plans;
pub mod row;
pub(crate) mod stored;

use std::collections::BTreeSet;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, OnceLock};

use rustc_hash::{FxHashMap, FxHasher};

use crate::assign::plan::{Plan, PlanKey};
use crate::assign::rules::RulesId;
use crate::assign::{Assignment, Resume};
use crate::base::ids::{Id, IdTable, LocalQueueId, Pool, QueueId, ShapeId, WorkloadId};
use crate::base::key::Key;
use crate::base::names::Names;
use crate::base::pair::Pair;
use crate::base::shared::Shared;
use crate::objects::config::Config;
use crate::objects::{PodSet, PodSetRequest, PodSpec, TopologyRequest, Workload};
use crate::pods::devices::Devices;
use crate::pods::totals::Totals;
use crate::workloads::assigned::Assigned;
use crate::workloads::charge::Charge;
use crate::workloads::plans::Plans;
use crate::workloads::row::{RowRules, WorkloadRow};

/// Fewer than this are not worth a sweep.
const MIN_UNUSED: usize = 1024;

/// Pod sets shared by many workloads: as applied, and adjusted to LimitRanges and RuntimeClasses (rules/01 §7.3).
#[derive(Debug, PartialEq)]
pub struct Spec {
    /// A unique number.
    number: u64,
    /// As applied.
    pub original: Shared<Vec<PodSet>>,
    /// With the defaults of the namespace.
    pub adjusted: Vec<PodSet>,
    /// Totals at full counts.
    pub totals: Arc<[Totals]>,
    /// The totals as `status.resourceRequests`, made when a status first needs them.
    pub resource_requests: OnceLock<Shared<Vec<PodSetRequest>>>,
    /// Equal for pod sets that are equivalent for scheduling.
    pub form: u32,
    /// Why `adjusted` violates its own limits or the LimitRanges of its namespace.
    pub misfit: Option<String>,
    /// The same for `original`.
    pub original_misfit: Option<String>,
}

impl Spec {
    /// Its unique number.
    pub fn number(&self) -> u64 {
        self.number
    }
}

/// Values computed from pod sets as applied.
pub struct Prepared {
    /// See [`Spec`].
    pub adjusted: Vec<PodSet>,
    /// See [`Spec`].
    pub totals: Arc<[Totals]>,
    /// See [`Spec`].
    pub misfit: Option<String>,
    /// See [`Spec`].
    pub original_misfit: Option<String>,
}

#[derive(Clone, Debug)]
pub struct Record {
    /// Its row of numbers.
    pub row: WorkloadRow,
    /// The object, changed only in [`Workloads::transition`]; its pod sets are in `spec`.
    pub workload: Workload,
    /// Its pod sets.
    pub spec: Arc<Spec>,
    /// Its current totals: from the templates while pending, from the admission once reserved.
    pub totals: Arc<[Totals]>,
    /// Its device charges while pending; `None`: it requests no devices, as nearly all.
    pub devices: Option<Arc<Devices>>,
    /// Its charge, while a ClusterQueue counts it as reserving quota.
    pub charge: Option<Arc<Charge>>,
    /// Where its flavor scan stopped.
    pub resume: Option<Box<Resume>>,
    /// Its generation when it was last popped; 0: never.
    pub evaluated_generation: i64,
    /// The LocalQueue in whose queue it last was.
    pub assigned: Option<LocalQueueId>,
}

impl Record {
    /// Namespace, name and UID.
    pub fn key(&self) -> &Key {
        &self.workload.meta.key
    }

    /// Does it request exactly what its pod sets say, for all their pods?
    pub(crate) fn has_totals_of_its_spec(&self) -> bool {
        Arc::ptr_eq(&self.totals, &self.spec.totals)
    }

    /// The ClusterQueue that counts it as reserving quota.
    pub fn cached_in(&self) -> Option<QueueId> {
        self.charge.as_ref().map(|charge| charge.queue)
    }
}

/// All workloads.
#[derive(Clone, Debug, Default)]
pub struct Workloads {
    /// The settings for rows.
    rules: RowRules,
    slots: IdTable<WorkloadId, Option<Record>>,
    free: Vec<WorkloadId>,
    by_key: Arc<FxHashMap<Key, WorkloadId>>,
    specs: Arc<FxHashMap<u64, Vec<Arc<Spec>>>>,
    forms: Pool<FormId, Vec<FormKey>>,
    shapes: Pool<ShapeId, ShapeKey>,
    /// Shapes by spec number and priority, for workloads that request all that their spec says.
    usual_shapes: Arc<FxHashMap<(u64, i64), ShapeId>>,
    /// The plans of specs.
    plans: Plans,
    /// Number of specs so far.
    n_specs: u64,
    /// Number of specs, forms and shapes in use at the last sweep, or of workloads if there were more.
    n_used: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct FormId(u32);
impl Id for FormId {
    fn from_index(index: usize) -> Self {
        Self(u32::try_from(index).expect("fewer than 2^32 forms"))
    }
    fn index(self) -> usize {
        self.0 as usize
    }
}

/// What scheduling reads of a pod set besides count and totals (rules/05 §4).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct FormKey {
    /// Empty where names do not count.
    name: String,
    min_count: Option<i32>,
    topology: Option<Box<TopologyRequest>>,
    spec: PodSpec,
}

/// What makes two pending workloads equivalent (rules/05 §4).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct ShapeKey {
    form: u32,
    priority: i64,
    sets: Vec<(i32, Vec<(u32, i64)>)>,
    allowed_flavors: Option<String>,
}

impl Workloads {
    /// Sets what rows depend on, before there are any.
    pub(crate) fn follow(&mut self, config: &Config) {
        debug_assert!(self.is_empty(), "the settings of an engine never change");
        self.rules = config.into();
    }

    /// Lets the next copies share the table.
    pub(crate) fn share_pieces(&mut self) {
        self.slots.share();
    }

    /// The slot of a workload.
    pub fn find(&self, namespace: &str, name: &str) -> Option<WorkloadId> {
        self.by_key.get::<dyn Pair>(&(namespace, name)).copied()
    }

    /// The workload in a slot, if any.
    pub fn find_by_id(&self, id: WorkloadId) -> Option<&Record> {
        self.slots.get(id).and_then(Option::as_ref)
    }

    /// A workload in the table.
    pub fn get(&self, id: WorkloadId) -> &Record {
        let record = self.slots[id].as_ref().expect("a workload in the table");
        debug_assert_eq!(
            record.row,
            record.row.after(&record.workload, self.rules),
            "its row says what its object says"
        );
        record
    }

    /// The row of a workload.
    pub fn row(&self, id: WorkloadId) -> &WorkloadRow {
        &self.get(id).row
    }

    /// A workload in the table, for changes of everything but its object.
    pub fn get_mut(&mut self, id: WorkloadId) -> &mut Record {
        self.slots[id].as_mut().expect("a workload in the table")
    }

    /// Changes the object of a workload, and updates its row: the only way to another stage.
    pub(crate) fn transition<T>(&mut self, id: WorkloadId, write: impl FnOnce(&mut Workload) -> T) -> T {
        let rules = self.rules;
        let record = self.get_mut(id);
        let result = write(&mut record.workload);
        record.row = record.row.after(&record.workload, rules);
        result
    }

    /// The row of a new workload in this LocalQueue.
    pub(crate) fn new_row(&self, workload: &Workload, local_queue: LocalQueueId) -> WorkloadRow {
        WorkloadRow::new(workload, local_queue, self.rules)
    }

    /// All workloads by slot.
    pub fn iter(&self) -> impl Iterator<Item = (WorkloadId, &Record)> {
        self.slots.iter().filter_map(|(id, slot)| slot.as_ref().map(|record| (id, record)))
    }

    /// Number of workloads.
    pub fn len(&self) -> usize {
        self.by_key.len()
    }

    /// Is the table empty?
    pub fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }

    /// Reserves room for more workloads.
    pub(crate) fn reserve(&mut self, n_workloads: usize) {
        Arc::make_mut(&mut self.by_key).reserve(n_workloads);
    }

    /// Inserts a new workload. `needs_new_slot`: do not reuse the slot of a deleted one, which may still be referred
    /// to.
    pub fn insert(&mut self, record: Record, needs_new_slot: bool) -> WorkloadId {
        let key = record.key().clone();
        let vacant = if needs_new_slot { None } else { self.free.pop() };
        let id = match vacant {
            Some(id) => {
                self.slots[id] = Some(record);
                id
            }
            None => self.slots.push(Some(record)),
        };
        Arc::make_mut(&mut self.by_key).insert(key, id);
        id
    }

    /// Removes a workload from the table.
    pub fn remove(&mut self, id: WorkloadId) -> Record {
        let record = self.slots[id].take().expect("a workload in the table");
        Arc::make_mut(&mut self.by_key).remove(record.key());
        self.free.push(id);
        record
    }

    /// The shared pod sets equal to these; `prepare` computes a new entry. `class` separates pod sets that are adjusted
    /// differently.
    pub fn share(
        &mut self,
        class: u64,
        pod_sets: Shared<Vec<PodSet>>,
        prepare: impl FnOnce(&[PodSet]) -> Prepared,
    ) -> Arc<Spec> {
        let hash = hash_of(class, &pod_sets);
        if let Some(found) = self.specs.get(&hash).and_then(|s| s.iter().find(|s| s.original == pod_sets)) {
            return Arc::clone(found);
        }
        let Prepared { adjusted, totals, misfit, original_misfit } = prepare(&pod_sets);
        let keys: Vec<FormKey> = self.form_keys(&adjusted);
        let form = self.forms.id_of(keys).0;
        let number = self.n_specs;
        self.n_specs += 1;
        let spec = Arc::new(Spec {
            number,
            original: pod_sets,
            adjusted,
            totals,
            resource_requests: OnceLock::new(),
            form,
            misfit,
            original_misfit,
        });
        Arc::make_mut(&mut self.specs).entry(hash).or_default().push(Arc::clone(&spec));
        spec
    }

    fn form_keys(&self, pod_sets: &[PodSet]) -> Vec<FormKey> {
        pod_sets.iter().map(|pod_set| form_key(pod_set, self.rules.pod_set_names_count())).collect()
    }

    /// Drops computed values of pod sets after LimitRanges or RuntimeClasses have changed.
    pub(crate) fn forget_specs(&mut self) {
        self.specs = Arc::default();
        self.usual_shapes = Arc::default();
        self.plans.clear();
    }

    /// Is a sweep of unused entries worthwhile? It takes as long as adding what has come since the last one.
    pub(crate) fn is_worth_a_sweep(&self) -> bool {
        self.n_kept() > 2 * self.n_used + MIN_UNUSED
    }

    /// Number of specs, forms, shapes, plans and their results kept.
    pub(crate) fn n_kept(&self) -> usize {
        self.specs.len() + self.forms.len() + self.shapes.len() + self.plans.len()
    }

    /// Drops specs, forms and shapes that no workload has and neither `shapes` nor `forms` lists.
    pub(crate) fn sweep(&mut self, shapes: impl Iterator<Item = ShapeId>, forms: impl Iterator<Item = u32>) {
        let mut used_shapes: BTreeSet<ShapeId> = shapes.collect();
        let mut used_forms: BTreeSet<u32> = forms.collect();
        let note = |record: &Record| {
            used_shapes.extend(record.row.shape);
            used_shapes.extend(record.resume.as_ref().and_then(|resume| resume.shape));
            used_forms.insert(record.spec.form);
        };
        self.slots.iter().filter_map(|(_, slot)| slot.as_ref()).for_each(note);
        self.shapes.retain(|_, id| used_shapes.contains(&id));
        self.usual_shapes = Arc::default();
        Arc::make_mut(&mut self.specs).retain(|_, specs| {
            specs.retain(|spec| Arc::strong_count(spec) > 1);
            !specs.is_empty()
        });
        let used_specs: BTreeSet<u64> = self.specs.values().flatten().map(|spec| spec.number).collect();
        self.plans.retain(|spec| used_specs.contains(&spec));
        used_forms.extend(self.specs.values().flatten().map(|spec| spec.form));
        used_forms.extend(self.shapes.values().map(|(shape, _)| shape.form));
        self.forms.retain(|_, id| used_forms.contains(&id.0));
        self.n_used = self.n_kept().max(self.len());
    }

    /// Drops all plans after flavors have changed.
    pub(crate) fn forget_plans(&mut self) {
        self.plans.clear();
    }

    /// The plan for assigning flavors to a workload under some rules, if it requests all that its spec says.
    pub(crate) fn plan(
        &mut self,
        id: WorkloadId,
        rules: RulesId,
        make: impl FnOnce(PlanKey, &Spec) -> Option<Plan>,
    ) -> Option<Arc<Plan>> {
        let record = self.slots[id].as_ref().expect("a workload in the table");
        if !record.has_totals_of_its_spec() {
            return None;
        }
        let key = PlanKey { spec: record.spec.number, rules };
        self.plans.get(key, || make(key, &record.spec))
    }

    /// Computes what an assignment gives a workload.
    pub(crate) fn assigned(&mut self, names: &mut Names, id: WorkloadId, assignment: &Assignment) -> Assigned {
        let spec = Arc::clone(&self.get(id).spec);
        self.plans.assigned(names, &spec, assignment)
    }

    /// The shape of a pending workload that requests all that its spec says, and allows all flavors.
    pub(crate) fn usual_shape(&mut self, spec: &Spec, priority: i64) -> ShapeId {
        let key = (spec.number, priority);
        if let Some(&known) = self.usual_shapes.get(&key) {
            return known;
        }
        let shape = self.shape(spec, priority, &spec.totals, None);
        Arc::make_mut(&mut self.usual_shapes).insert(key, shape);
        shape
    }

    /// The shape of a pending workload.
    pub fn shape(&mut self, spec: &Spec, priority: i64, totals: &[Totals], allowed_flavors: Option<String>) -> ShapeId {
        let sets = totals
            .iter()
            .map(|t| (t.count, t.requests.iter().map(|(resource, value)| (resource.0, *value)).collect()))
            .collect();
        self.shapes.id_of(ShapeKey { form: spec.form, priority, sets, allowed_flavors })
    }
}

/// A hash of the fields in which pod sets mostly differ; equal hashes are compared in full.
fn hash_of(class: u64, pod_sets: &[PodSet]) -> u64 {
    let mut hasher = FxHasher::default();
    class.hash(&mut hasher);
    for pod_set in pod_sets {
        (pod_set.count, &pod_set.name, &pod_set.template.metadata.labels).hash(&mut hasher);
        for container in &pod_set.template.spec.containers {
            container.resources.requests.hash(&mut hasher);
        }
    }
    hasher.finish()
}

fn form_key(pod_set: &PodSet, names_count: bool) -> FormKey {
    let mut spec = pod_set.template.spec.clone();
    // Kueue's shape includes requests and ports of containers, not names, limits or restart policies.
    spec.priority_class_name.clear();
    for container in spec.init_containers.iter_mut().chain(&mut spec.containers) {
        container.name.clear();
        container.sidecar = false;
        container.resources.limits.clear();
    }
    if let Some(resources) = &mut spec.resources {
        resources.limits.clear();
    }
    FormKey {
        name: if names_count { pod_set.name.clone() } else { String::new() },
        min_count: pod_set.min_count,
        topology: pod_set.topology_request.clone(),
        spec,
    }
}
