//! Pending workloads as bytes ([`crate::snapshot`]), in the order of their ids.

use super::*;
use crate::snapshot::{Damage, Reader, Stored, Writer, stored};
use crate::workloads::stored::{restore_key, store_key};

stored!(enum RequeueReason {
    0 = Generic, 1 = NamespaceMismatch, 2 = NoFit, 3 = PreemptionNoCandidates, 4 = PreemptionGated,
    5 = PendingPreemption, 6 = PendingMigration, 7 = PreemptionFailed, 8 = FailedAfterNomination,
});

/// More cycles than will ever run.
const MAX_CYCLES: i64 = 1 << 62;

impl Pending {
    /// Writes the queue. `item` is a workload's current queue item: most are stored only as that.
    pub(crate) fn store(&self, places: &Places, item: impl Fn(WorkloadId) -> Item, out: &mut Writer<'_>) {
        self.is_usage_based.write_to(out);
        self.pop_cycle.write_to(out);
        self.flush_cycle.write_to(out);
        self.inflight.write_to(out);
        self.preemptor.is_some().write_to(out);
        if let Some(Preemptor { id, generation, sticky }) = self.preemptor {
            id.0.write_to(out);
            generation.write_to(out);
            sticky.write_to(out);
        }
        let mut marked: Vec<_> = self.parked_shapes.iter().map(|(id, reason)| (out.shape(*id), *id, *reason)).collect();
        marked.sort();
        out.count(marked.len());
        for (_, id, reason) in marked {
            id.write_to(out);
            reason.write_to(out);
        }
        let in_heap = self.buckets.iter().flat_map(|it| it.active.keys().iter().map(|key| (key, Stands::InHeap)));
        let parked = self.buckets.iter().flat_map(|it| it.parked.keys().iter().map(|key| (key, Stands::Parked)));
        let held = self.held.iter().map(|key| (key, Stands::Held));
        let mut members: Vec<_> = in_heap.chain(parked).chain(held).collect();
        members.sort_unstable_by_key(|(key, _)| key.id);
        out.count(members.len());
        let mut next = 0;
        for (key, stands) in members {
            let index = key.id.0;
            (index - next).write_to(out);
            next = index + 1;
            let item = item(key.id);
            let bucket = places.get(key.id).expect("whoever stands in a queue has a place").bucket;
            let usual = self.key(&item);
            let is_usual = bucket == (item.shape, item.local_queue)
                && (usual.not_sticky, usual.negated_priority, usual.time)
                    == (key.not_sticky, key.negated_priority, key.time)
                && usual.key.is_same(&key.key);
            out.byte(stands as u8 | u8::from(!is_usual) << 2);
            if !is_usual {
                bucket.write_to(out);
                key.not_sticky.write_to(out);
                key.negated_priority.write_to(out);
                key.time.write_to(out);
                store_key(&key.key, &item.key, out);
            }
        }
    }

    /// Reads the queue, and puts its workloads in their places. `waits`: does a workload wait in this queue?
    pub(crate) fn restore(
        strategy: QueueingStrategy,
        places: &mut Places,
        item: impl Fn(WorkloadId) -> Item,
        waits: impl Fn(WorkloadId) -> bool,
        from: &mut Reader<'_>,
    ) -> Result<Self, Damage> {
        let mut pending = Self { strategy, is_usage_based: bool::read_from(from)?, ..Self::default() };
        (pending.pop_cycle, pending.flush_cycle) = (i64::read_from(from)?, i64::read_from(from)?);
        let cycles = 0..=MAX_CYCLES;
        let are_cycles =
            cycles.contains(&pending.pop_cycle) && cycles.contains(&(pending.flush_cycle.saturating_add(1)));
        from.check(are_cycles, "an impossible cycle number")?;
        pending.inflight = Stored::read_from(from)?;
        from.check(pending.inflight.is_none_or(&waits), "a head that waits elsewhere")?;
        if bool::read_from(from)? {
            let id = WorkloadId(u32::read_from(from)?);
            let (generation, sticky) = (Stored::read_from(from)?, Stored::read_from(from)?);
            pending.preemptor = Some(Preemptor { id, generation, sticky });
        }
        for _ in 0..from.count()? {
            pending.parked_shapes.insert(Stored::read_from(from)?, Stored::read_from(from)?);
        }
        let mut groups: BTreeMap<BucketId, [Vec<OrderKey>; 2]> = BTreeMap::new();
        let mut held = Vec::new();
        let mut next = 0u32;
        for _ in 0..from.count()? {
            let index = u32::read_from(from)?.checked_add(next);
            let id = WorkloadId(index.ok_or_else(|| from.damage("a workload of more than 32 bits"))?);
            next = id.0.saturating_add(1);
            let stands_here = from.live.contains(id) && waits(id) && places.get(id).is_none();
            from.check(stands_here && pending.inflight != Some(id), "a workload that waits elsewhere")?;
            let (bucket, key, stands) = pending.restore_place(&item(id), from)?;
            places.put(id, Place::new(bucket, &key));
            pending.n_waiting += 1;
            if stands == Stands::InHeap {
                places.count(mark_of(id));
            } else {
                places.count(mark_of(id).wrapping_mul(PARKED));
                pending.n_parked += 1;
            }
            match stands {
                Stands::InHeap => groups.entry(bucket).or_default()[0].push(key),
                Stands::Parked => groups.entry(bucket).or_default()[1].push(key),
                Stands::Held => held.push(key),
            }
        }
        pending.held.extend(held);
        for (id, [active, parked]) in groups {
            pending.change(id, |bucket| {
                bucket.active.insert_all(active);
                bucket.parked.insert_all(parked);
            });
        }
        Ok(pending)
    }

    /// Reads where a workload stands: usually where its item belongs.
    fn restore_place(&self, item: &Item, from: &mut Reader<'_>) -> Result<(BucketId, OrderKey, Stands), Damage> {
        let kind = from.byte()?;
        let (bucket, key) = if kind & 4 == 0 {
            ((item.shape, item.local_queue), self.key(item))
        } else {
            let bucket = Stored::read_from(from)?;
            let (not_sticky, negated_priority) = (Stored::read_from(from)?, Stored::read_from(from)?);
            let time = Stored::read_from(from)?;
            let (key, id) = (restore_key(&item.key, from)?, item.id);
            (bucket, OrderKey { not_sticky, negated_priority, time, uid_prefix: key.uid_prefix(), key, id })
        };
        let stands = match kind & !4 {
            0 => Stands::InHeap,
            1 => Stands::Parked,
            2 => Stands::Held,
            other => return Err(from.damage(format!("{other} as a place in a queue"))),
        };
        Ok((bucket, key, stands))
    }
}
