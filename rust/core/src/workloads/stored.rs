//! The table of workloads as bytes ([`crate::snapshot`]). Plans are left out, and so are entries that no workload uses.

use std::cmp::Reverse;

use super::*;
use crate::base::amount::Amount;
use crate::base::ids::{FlavorResourceId, IdSet};
use crate::base::text::Text;
use crate::objects::{Time, WorkloadMeta};
use crate::snapshot::{Damage, Pool as Part, Pooled, Reader, Stored, Writer, stored};
use crate::topology::sites::Stand;
use crate::workloads::assigned::Charged;
use crate::workloads::before::Unconfirmed;
use crate::workloads::charge::{CandidateKey, Target};

stored!(struct Target { workload, queue, reason });
stored!(struct Unconfirmed { status, totals, resume });
stored!(struct FormKey { name, min_count, topology, spec });

/// A shape without ids of forms: the form of a spec that was written, or the form itself.
impl Stored for ShapeKey {
    fn write_to(&self, out: &mut Writer<'_>) {
        let Self { form, priority, sets, allowed_flavors } = self;
        let spec = out.spec_of_form.get(form).copied();
        spec.write_to(out);
        if spec.is_none() {
            out.forms[*form as usize].expect("a form in use is kept").write_to(out);
        }
        priority.write_to(out);
        sets.write_to(out);
        allowed_flavors.write_to(out);
    }

    fn read_from(from: &mut Reader<'_>) -> Result<Self, Damage> {
        Err(from.damage("a shape is read with the forms"))
    }
}

impl Pooled for Charged {
    const POOL: Part = Part::Charges;

    fn read_part(from: &mut Reader<'_>) -> Result<Self, Damage> {
        from.list(<(FlavorResourceId, Amount)>::read_from).map(Arc::from)
    }
}

impl Stored for Charged {
    fn write_to(&self, out: &mut Writer<'_>) {
        out.put(Part::Charges, self.as_ptr() as usize, |out| out.list(self.iter()));
    }

    fn read_from(from: &mut Reader<'_>) -> Result<Self, Damage> {
        from.pooled(Part::Charges)
    }
}

impl Stored for Arc<Spec> {
    fn write_to(&self, out: &mut Writer<'_>) {
        let index = out.put(Part::Specs, Arc::as_ptr(self) as usize, |out| {
            let Spec { number: _, original, adjusted, totals, resource_requests: _, form: _, misfit, original_misfit } =
                &**self;
            original.write_to(out);
            (adjusted != &**original).write_to(out);
            if adjusted != &**original {
                adjusted.write_to(out);
            }
            totals.write_to(out);
            misfit.write_to(out);
            original_misfit.write_to(out);
        });
        out.spec_of_form.entry(self.form).or_insert(index);
    }

    fn read_from(from: &mut Reader<'_>) -> Result<Self, Damage> {
        from.pooled(Part::Specs)
    }
}

impl Workloads {
    /// Writes the slots, and the workloads in them.
    pub(crate) fn store<'a>(&'a self, out: &mut Writer<'a>) {
        self.forms.values().for_each(|(key, id)| put_at(&mut out.forms, id.index(), key as &dyn Stored));
        self.shapes.values().for_each(|(key, id)| put_at(&mut out.shapes, id.index(), key as &dyn Stored));
        out.count(self.free.len());
        let mut last = 0;
        for id in &self.free {
            let index = i64::from(id.0);
            (index - last).write_to(out);
            last = index;
        }
        out.count(self.len());
        for (_, record) in self.iter() {
            record.key().write_to(out);
            record.store(out);
        }
    }

    /// Reads which slots are taken; their contents follow.
    pub(crate) fn restore_slots(&mut self, from: &mut Reader<'_>) -> Result<(), Damage> {
        let mut last = 0;
        let mut taken_out = IdSet::default();
        for _ in 0..from.count()? {
            let index = i64::read_from(from)?.checked_add(last).and_then(|index| u32::try_from(index).ok());
            let id = WorkloadId(index.ok_or_else(|| from.damage("a slot of more than 32 bits"))?);
            from.check(taken_out.insert(id), "a duplicate free slot")?;
            self.free.push(id);
            last = i64::from(id.0);
        }
        let n_slots = from.count()? + self.free.len();
        let is_one = |id: &WorkloadId| id.index() < n_slots;
        from.check(self.free.iter().all(is_one), "a free slot behind the last workload")?;
        let ids = (0..n_slots).map(WorkloadId::from_index);
        ids.filter(|id| !taken_out.contains(*id)).for_each(|id| _ = from.live.insert(id));
        Ok(())
    }

    /// Reads the contents of the slots.
    pub(crate) fn restore_records(&mut self, from: &mut Reader<'_>) -> Result<(), Damage> {
        let n_slots = from.live.len() + self.free.len();
        self.reserve(from.live.len());
        for index in 0..n_slots {
            let id = WorkloadId::from_index(index);
            if !from.live.contains(id) {
                self.slots.push(None);
                continue;
            }
            let key = Key::read_from(from)?;
            let record = Record::restore(id, &key, self.rules, from)?;
            let before = Arc::make_mut(&mut self.by_key).insert(key, id);
            from.check(before.is_none(), "two workloads of one name")?;
            self.slots.push(Some(record));
        }
        self.n_used = self.n_kept().max(self.len());
        Ok(())
    }

    /// Reads the specs and shapes that workloads share.
    pub(crate) fn restore_specs(&mut self, from: &mut Reader<'_>) -> Result<(), Damage> {
        let mut specs = Vec::new();
        for _ in 0..from.count()? {
            let original = Shared::<Vec<PodSet>>::read_from(from)?;
            let adjusted = if bool::read_from(from)? { Vec::read_from(from)? } else { original.to_vec() };
            let totals = Arc::<[Totals]>::read_from(from)?;
            let (misfit, original_misfit) = (Stored::read_from(from)?, Stored::read_from(from)?);
            let is_whole = adjusted.len() == original.len() && totals.len() == original.len();
            from.check(is_whole, "pod sets without their totals")?;
            let form = self.forms.id_of(self.form_keys(&adjusted)).0;
            let (number, resource_requests) = (self.n_specs, OnceLock::new());
            self.n_specs += 1;
            let spec = Spec { number, original, adjusted, totals, resource_requests, form, misfit, original_misfit };
            specs.push(Arc::new(spec));
        }
        from.set(Part::Specs, specs);
        let mut shapes = Vec::new();
        for index in 0..from.count()? {
            let form = match Option::<u32>::read_from(from)? {
                Some(spec) => {
                    let specs: Option<Arc<Spec>> = from.part(Part::Specs, spec as usize);
                    specs.ok_or_else(|| from.damage(format!("spec {spec}")))?.form
                }
                None => self.forms.id_of(Vec::read_from(from)?).0,
            };
            let (priority, sets, allowed_flavors) =
                (Stored::read_from(from)?, Stored::read_from(from)?, Stored::read_from(from)?);
            let shape = self.shapes.id_of(ShapeKey { form, priority, sets, allowed_flavors });
            from.check(shape.index() == index, "a duplicate shape")?;
            shapes.push(shape);
        }
        from.set(Part::Shapes, shapes);
        Ok(())
    }
}

fn put_at<T: Clone>(table: &mut Vec<Option<T>>, index: usize, item: T) {
    if table.len() <= index {
        table.resize(index + 1, None);
    }
    table[index] = Some(item);
}

impl Record {
    /// Writes the record without its key.
    pub(crate) fn store(&self, out: &mut Writer<'_>) {
        let Self {
            row: WorkloadRow { shape, queued_in, local_queue, .. },
            workload,
            spec,
            totals,
            devices,
            charge,
            resume,
            evaluated_generation,
            assigned,
        } = self;
        let Workload {
            meta: WorkloadMeta { key: _, created, generation, details },
            pod_sets: _,
            queue_name: _,
            priority_class,
            priority,
            active,
            maximum_execution_time_seconds,
            preemption_gates,
            status,
        } = workload;
        created.write_to(out);
        generation.write_to(out);
        details.write_to(out);
        priority_class.write_to(out);
        priority.write_to(out);
        active.write_to(out);
        maximum_execution_time_seconds.write_to(out);
        preemption_gates.write_to(out);
        status.write_to(out);
        spec.write_to(out);
        let others = (totals != &spec.totals).then_some(totals);
        others.is_some().write_to(out);
        others.into_iter().for_each(|totals| totals.write_to(out));
        devices.write_to(out);
        shape.write_to(out);
        local_queue.write_to(out);
        queued_in.write_to(out);
        resume.write_to(out);
        evaluated_generation.write_to(out);
        assigned.write_to(out);
        charge.is_some().write_to(out);
        if let Some(charge) = charge {
            charge.store(self.key(), out);
        }
    }

    /// Reads the record of the workload in a slot.
    pub(crate) fn restore(id: WorkloadId, key: &Key, rules: RowRules, from: &mut Reader<'_>) -> Result<Self, Damage> {
        let workload = Workload {
            meta: WorkloadMeta {
                key: key.clone(),
                created: Stored::read_from(from)?,
                generation: Stored::read_from(from)?,
                details: Stored::read_from(from)?,
            },
            pod_sets: Shared::default(),
            queue_name: Text::default(),
            priority_class: Stored::read_from(from)?,
            priority: Stored::read_from(from)?,
            active: Stored::read_from(from)?,
            maximum_execution_time_seconds: Stored::read_from(from)?,
            preemption_gates: Stored::read_from(from)?,
            status: Stored::read_from(from)?,
        };
        let spec = Arc::<Spec>::read_from(from)?;
        let totals = if bool::read_from(from)? { Stored::read_from(from)? } else { Arc::clone(&spec.totals) };
        let devices = Stored::read_from(from)?;
        let shape = Stored::read_from(from)?;
        let row = WorkloadRow::new(&workload, Stored::read_from(from)?, rules);
        let mut record = Self {
            row: WorkloadRow { shape, queued_in: Stored::read_from(from)?, ..row },
            workload,
            spec,
            totals,
            devices,
            resume: Stored::read_from(from)?,
            evaluated_generation: Stored::read_from(from)?,
            assigned: Stored::read_from(from)?,
            charge: None,
        };
        let (namespace, name) = &from.names.local_queues[record.row.local_queue];
        from.check(namespace == key.namespace(), "a workload in a LocalQueue of another namespace")?;
        record.workload.queue_name = name.clone();
        if bool::read_from(from)? {
            let mut charge = Charge::restore(id, key, from)?;
            for stand in Arc::make_mut(&mut charge.stands) {
                stand.share(&record.workload);
            }
            record.charge = Some(Arc::new(charge));
        }
        Ok(record)
    }
}

impl Charge {
    fn store(&self, own: &Key, out: &mut Writer<'_>) {
        let Self { queue, usage, admitted, local_queue, candidate, stands } = self;
        let CandidateKey { not_evicted, priority, reserved, uid_prefix: _, key, id: _, queue_time, uses } = candidate;
        queue.write_to(out);
        usage.write_to(out);
        admitted.write_to(out);
        local_queue.write_to(out);
        not_evicted.write_to(out);
        priority.write_to(out);
        reserved.0.write_to(out);
        store_key(key, own, out);
        queue_time.write_to(out);
        uses.write_to(out);
        out.list(stands.iter());
    }

    fn restore(id: WorkloadId, own: &Key, from: &mut Reader<'_>) -> Result<Self, Damage> {
        let (queue, usage) = (Stored::read_from(from)?, Stored::read_from(from)?);
        let (admitted, local_queue) = (Stored::read_from(from)?, Stored::read_from(from)?);
        let (not_evicted, priority) = (Stored::read_from(from)?, Stored::read_from(from)?);
        let reserved = Reverse(Time::read_from(from)?);
        let key = restore_key(own, from)?;
        let (queue_time, uses) = (Stored::read_from(from)?, Stored::read_from(from)?);
        let uid_prefix = key.uid_prefix();
        let candidate = CandidateKey { not_evicted, priority, reserved, uid_prefix, key, id, queue_time, uses };
        let stands = from.list(Stand::read_from)?.into();
        Ok(Self { queue, usage, admitted, local_queue, candidate, stands })
    }
}

/// Writes a key that mostly equals that of the workload itself.
pub(crate) fn store_key(key: &Key, own: &Key, out: &mut Writer<'_>) {
    let other = (!key.is_same(own)).then_some(key);
    other.is_some().write_to(out);
    other.into_iter().for_each(|key| key.write_to(out));
}

/// Reads what [`store_key`] wrote.
pub(crate) fn restore_key(own: &Key, from: &mut Reader<'_>) -> Result<Key, Damage> {
    if bool::read_from(from)? { Key::read_from(from) } else { Ok(own.clone()) }
}
