//! The table of workloads, and what is worked out of each once: adjusted pod sets, totals, shape, place in the queue.

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

/// Less than this is not worth a sweep.
const MIN_UNUSED: usize = 1024;

/// Pod sets that many workloads share: as applied, and adjusted to LimitRanges and RuntimeClasses (rules/01 §7.3).
#[derive(Debug, PartialEq)]
pub struct Spec {
    /// A number of its own.
    number: u64,
    /// As applied.
    pub original: Shared<Vec<PodSet>>,
    /// With defaults of the namespace filled in.
    pub adjusted: Vec<PodSet>,
    /// Totals at full counts.
    pub totals: Arc<[Totals]>,
    /// The totals as statuses tell them, once one has.
    pub told: OnceLock<Shared<Vec<PodSetRequest>>>,
    /// Equal for pod sets that scheduling cannot tell apart.
    pub form: u32,
    /// Why `adjusted` does not suit its own limits or the LimitRanges of its namespace.
    pub misfit: Option<String>,
    /// The same of `original`.
    pub original_misfit: Option<String>,
}

impl Spec {
    /// A number that no other has.
    pub fn number(&self) -> u64 {
        self.number
    }
}

/// What is worked out of pod sets as applied.
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

/// One workload.
#[derive(Clone, Debug)]
pub struct Record {
    /// Where it stands, by numbers.
    pub row: WorkloadRow,
    /// The object, which changes in [`Workloads::transition`] alone; its pod sets stand in `spec`.
    pub workload: Workload,
    /// Its pod sets.
    pub spec: Arc<Spec>,
    /// Its totals now: pending from the templates, reserved from the admission.
    pub totals: Arc<[Totals]>,
    /// What its devices come to while it is pending; `None`: it asks for none, as nearly all do.
    pub devices: Option<Arc<Devices>>,
    /// What it charges, while a ClusterQueue counts it as reserving quota.
    pub charge: Option<Arc<Charge>>,
    /// Where its scan of flavors stopped.
    pub resume: Option<Box<Resume>>,
    /// Its generation when it was last popped; 0: it never was.
    pub evaluated_generation: i64,
    /// The LocalQueue in whose queue it was last.
    pub assigned: Option<LocalQueueId>,
}

impl Record {
    /// Namespace, name and UID.
    pub fn key(&self) -> &Key {
        &self.workload.meta.key
    }

    /// Does it ask for what its pod sets say, all pods of them?
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
    /// What their rows depend on.
    rules: RowRules,
    slots: IdTable<WorkloadId, Option<Record>>,
    free: Vec<WorkloadId>,
    by_key: Arc<FxHashMap<Key, WorkloadId>>,
    specs: Arc<FxHashMap<u64, Vec<Arc<Spec>>>>,
    forms: Pool<FormId, Vec<FormKey>>,
    shapes: Pool<ShapeId, ShapeKey>,
    /// Shapes by number of the spec and priority, of workloads that ask for all that their specs say.
    usual_shapes: Arc<FxHashMap<(u64, i64), ShapeId>>,
    /// The plans of specs.
    plans: Plans,
    /// How many specs there were.
    n_specs: u64,
    /// So many specs, forms and shapes were in use when that was last looked at, or workloads if these were more.
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

/// What scheduling reads of a pod set besides its count and totals (rules/05 §4).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct FormKey {
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
    /// Has rows follow from these settings, before there are any.
    pub(crate) fn follow(&mut self, config: &Config) {
        debug_assert!(self.is_empty(), "the settings of an engine never change");
        self.rules = config.into();
    }

    /// Has the next copies share the table.
    pub(crate) fn share_pieces(&mut self) {
        self.slots.share();
    }

    /// The slot of a workload.
    pub fn find(&self, namespace: &str, name: &str) -> Option<WorkloadId> {
        self.by_key.get::<dyn Pair>(&(namespace, name)).copied()
    }

    /// The workload in a slot, if there is one.
    pub(crate) fn find_by_id(&self, id: WorkloadId) -> Option<&Record> {
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

    /// Where a workload stands.
    pub fn row(&self, id: WorkloadId) -> &WorkloadRow {
        &self.get(id).row
    }

    /// A workload in the table, to change what goes with its object.
    pub fn get_mut(&mut self, id: WorkloadId) -> &mut Record {
        self.slots[id].as_mut().expect("a workload in the table")
    }

    /// Changes the object of a workload, and its row with it: the one way from stage to stage.
    pub(crate) fn transition<T>(&mut self, id: WorkloadId, write: impl FnOnce(&mut Workload) -> T) -> T {
        let rules = self.rules;
        let record = self.get_mut(id);
        let result = write(&mut record.workload);
        record.row = record.row.after(&record.workload, rules);
        result
    }

    /// The row of a workload that is new in this LocalQueue.
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

    /// Makes room for so many more.
    pub(crate) fn reserve(&mut self, n_workloads: usize) {
        Arc::make_mut(&mut self.by_key).reserve(n_workloads);
    }

    /// Inserts a new workload. `needs_new_slot`: reuse no slot of a deleted one, which may still be referred to.
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

    /// Takes a workload out of the table.
    pub fn remove(&mut self, id: WorkloadId) -> Record {
        let record = self.slots[id].take().expect("a workload in the table");
        Arc::make_mut(&mut self.by_key).remove(record.key());
        self.free.push(id);
        record
    }

    /// The shared pod sets equal to these; `prepare` works out a new entry. `class` tells apart what is adjusted
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
        let keys: Vec<FormKey> = adjusted.iter().map(form_key).collect();
        let form = self.forms.id_of(keys).0;
        let number = self.n_specs;
        self.n_specs += 1;
        let spec = Arc::new(Spec {
            number,
            original: pod_sets,
            adjusted,
            totals,
            told: OnceLock::new(),
            form,
            misfit,
            original_misfit,
        });
        Arc::make_mut(&mut self.specs).entry(hash).or_default().push(Arc::clone(&spec));
        spec
    }

    /// Forgets what was worked out of pod sets: LimitRanges or RuntimeClasses have changed.
    pub(crate) fn forget_specs(&mut self) {
        self.specs = Arc::default();
        self.usual_shapes = Arc::default();
        self.plans.clear();
    }

    /// Is so much kept that it is time to see what of it is still in use? That takes as long as what has come since.
    pub(crate) fn is_worth_a_sweep(&self) -> bool {
        self.n_kept() > 2 * self.n_used + MIN_UNUSED
    }

    /// How many specs, forms, shapes, plans and results of these are kept.
    pub(crate) fn n_kept(&self) -> usize {
        self.specs.len() + self.forms.len() + self.shapes.len() + self.plans.len()
    }

    /// Forgets specs, forms and shapes that no workload has; nor may a shape be in `shapes`.
    pub(crate) fn sweep(&mut self, shapes: impl Iterator<Item = ShapeId>) {
        let mut used_shapes: BTreeSet<ShapeId> = shapes.collect();
        let mut used_forms = BTreeSet::new();
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

    /// Forgets all plans: flavors have changed.
    pub(crate) fn forget_plans(&mut self) {
        self.plans.clear();
    }

    /// The plan by which flavors are assigned to a workload under some rules, if it asks for all that its spec says.
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

    /// What an assignment of a workload comes to.
    pub(crate) fn assigned(&mut self, names: &mut Names, id: WorkloadId, assignment: &Assignment) -> Assigned {
        let spec = Arc::clone(&self.get(id).spec);
        self.plans.assigned(names, &spec, assignment)
    }

    /// The shape of a pending workload that asks for all that its spec says, and allows all flavors.
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

/// Of what pod sets mostly differ in; who has the same is compared.
fn hash_of(class: u64, pod_sets: &[PodSet]) -> u64 {
    let mut hasher = FxHasher::default();
    class.hash(&mut hasher);
    for pod_set in pod_sets {
        (pod_set.count, &pod_set.name, &pod_set.template.labels).hash(&mut hasher);
        for container in &pod_set.template.spec.containers {
            container.resources.requests.hash(&mut hasher);
        }
    }
    hasher.finish()
}

fn form_key(pod_set: &PodSet) -> FormKey {
    let mut spec = pod_set.template.spec.clone();
    // Kueue's shape has requests and ports of containers, not their names, limits or restart policy.
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
        name: pod_set.name.clone(),
        min_count: pod_set.min_count,
        topology: pod_set.topology_request.clone(),
        spec,
    }
}
