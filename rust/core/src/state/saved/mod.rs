//! The state as bytes ([`crate::snapshot`]).
//!
//! It writes the objects and what the tables add to them: ids, places, charges, sums, and rules that lag behind their
//! object. Everything derived from those is rebuilt, so that the tables are consistent whatever the bytes say. Left out
//! is what is recomputed with the same result: verdicts on heads, plans, and merged LimitRanges.

mod queues;

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::base::ids::{Id, IdVec, WorkloadId};
use crate::base::shared::Shared;
use crate::objects::config::Config;
use crate::objects::message::{Considered, NoFit, Preemption};
use crate::objects::{
    Admission, ClusterQueue, Cohort, LocalQueue, MetaDetails, PodSet, PodSetAssignments, PodSetRequest,
    PriorityClassRef, RareStatus, ResourceFlavor, StringMap, WorkloadStatus,
};
use crate::pods::devices::Devices;
use crate::pods::totals::Totals;
use crate::snapshot::{Damage, Reader, Stored, Writer, stored};
use crate::state::records::{FlushRequest, ReplacedSlice, StaleDefaults};
use crate::state::{Feeds, Ledger, Nodes, Objects, PendingWork, State};
use crate::workloads::Workloads;
use crate::workloads::assigned::Charged;
use crate::workloads::before::Unconfirmed;

stored!(struct StaleDefaults { everywhere, namespaces });
stored!(struct ReplacedSlice { key, status });
stored!(enum FlushRequest { 0 = Queue(queue), 1 = Tree(cohort) });

/// More cycles than will ever run.
const MAX_CYCLES: u64 = 1 << 62;

impl State {
    /// Writes the state. The forest is flushed.
    pub(crate) fn store<'a>(&'a self, out: &mut Writer<'a>) {
        let Self {
            config,
            names: _,
            objects,
            ledger,
            // Written by `queues`.
            queues: _,
            cohorts: _,
            local_queues: _,
            workloads,
            pending,
            nodes,
            feeds,
            evaluates_always,
            cycle,
            now,
        } = self;
        let Objects {
            flavors,
            topologies,
            checks,
            workload_priority_classes,
            namespaces,
            limit_ranges,
            // Merged again on demand.
            limit_summaries: _,
            stale_defaults,
            runtime_classes,
            claim_templates,
            device_classes,
            // Written by `queues`.
            rules: _,
        } = objects;
        let Ledger { forest: _, owners: _, unconfirmed, undelivered, replaced_slices } = ledger;
        let PendingWork {
            places: _,
            flush_requests,
            waiting: _,
            unready,
            has_waiting_cycle,
            second_passes,
            experiments,
        } = pending;
        let Nodes { sites, cluster, node_watch } = nodes;
        let Feeds { agenda, changed_queues, charges: _, node_changes: _, recorder: _ } = feeds;
        config.write_to(out);
        out.end_head();
        workloads.store(out);
        store_of_names(out.names.flavors.len(), flavors, out);
        store_of_names(out.names.namespaces.len(), namespaces, out);
        topologies.write_to(out);
        cluster.write_to(out);
        sites.write_to(out);
        second_passes.write_to(out);
        node_watch.write_to(out);
        checks.write_to(out);
        workload_priority_classes.write_to(out);
        limit_ranges.write_to(out);
        stale_defaults.write_to(out);
        runtime_classes.write_to(out);
        claim_templates.write_to(out);
        device_classes.write_to(out);
        self.store_queues(out);
        flush_requests.write_to(out);
        unready.write_to(out);
        has_waiting_cycle.write_to(out);
        experiments.write_to(out);
        store_unconfirmed(unconfirmed, out);
        undelivered.write_to(out);
        store_replaced_slices(replaced_slices, out);
        agenda.write_to(out);
        changed_queues.write_to(out);
        evaluates_always.write_to(out);
        cycle.write_to(out);
        now.write_to(out);
    }

    /// Reads a state.
    ///
    /// # Errors
    /// [`Damage`]: the bytes are not a saved state.
    pub(crate) fn restore(from: &mut Reader<'_>) -> Result<Self, Damage> {
        let names = from.names.clone();
        let mut state = Self { names, config: Config::read_from(from)?, ..Self::default() };
        // Whether two specs are one shape depends on it.
        state.workloads.follow(&state.config);
        restore_parts(&mut state.workloads, from)?;
        state.workloads.restore_slots(from)?;
        state.workloads.restore_records(from)?;
        state.objects.flavors = restore_of_names(state.names.flavors.len(), from)?;
        state.objects.namespaces = restore_of_names(state.names.namespaces.len(), from)?;
        state.objects.topologies = Stored::read_from(from)?;
        state.nodes.cluster = Stored::read_from(from)?;
        state.nodes.sites = Stored::read_from(from)?;
        state.pending.second_passes = Stored::read_from(from)?;
        state.nodes.node_watch = Stored::read_from(from)?;
        state.objects.checks = Stored::read_from(from)?;
        state.objects.workload_priority_classes = Stored::read_from(from)?;
        state.objects.limit_ranges = Stored::read_from(from)?;
        state.objects.stale_defaults = Stored::read_from(from)?;
        state.objects.runtime_classes = Stored::read_from(from)?;
        state.objects.claim_templates = Stored::read_from(from)?;
        state.objects.device_classes = Stored::read_from(from)?;
        state.restore_queues(from)?;
        state.pending.flush_requests = Stored::read_from(from)?;
        state.pending.unready = Stored::read_from(from)?;
        state.pending.has_waiting_cycle = Stored::read_from(from)?;
        state.pending.experiments = Stored::read_from(from)?;
        for _ in 0..from.count()? {
            let id = WorkloadId::read_from(from)?;
            let before = state.ledger.unconfirmed.insert(id, Stored::read_from(from)?);
            from.check(before.is_none(), "a workload that was twice before the cycle")?;
        }
        state.ledger.undelivered = Stored::read_from(from)?;
        for _ in 0..from.count()? {
            let id = WorkloadId(Stored::read_from(from)?);
            state.ledger.replaced_slices.insert(id, Stored::read_from(from)?);
        }
        state.feeds.agenda = Stored::read_from(from)?;
        state.feeds.changed_queues = Stored::read_from(from)?;
        state.evaluates_always = Stored::read_from(from)?;
        state.cycle = Stored::read_from(from)?;
        from.check(state.cycle <= MAX_CYCLES, "an impossible cycle number")?;
        state.now = Stored::read_from(from)?;
        state.restore_sites();
        state.restore_turns();
        Ok(state)
    }
}

/// Writes one entry for each name.
fn store_of_names<I: Id, T: Stored + Clone>(n: usize, all: &IdVec<I, Option<T>>, out: &mut Writer<'_>) {
    for index in 0..n {
        all.get(I::from_index(index)).cloned().flatten().write_to(out);
    }
}

fn store_unconfirmed(unconfirmed: &FxHashMap<WorkloadId, Unconfirmed>, out: &mut Writer<'_>) {
    let mut before: Vec<(&WorkloadId, &Unconfirmed)> = unconfirmed.iter().collect();
    before.sort_unstable_by_key(|(id, _)| **id);
    out.count(before.len());
    for (id, before) in before {
        id.write_to(out);
        before.write_to(out);
    }
}

fn store_replaced_slices(replaced_slices: &BTreeMap<WorkloadId, ReplacedSlice>, out: &mut Writer<'_>) {
    out.count(replaced_slices.len());
    for (id, slice) in replaced_slices {
        // The replacement may be gone.
        id.0.write_to(out);
        slice.write_to(out);
    }
}

/// Reads one entry for each name.
fn restore_of_names<I: Id, T: Stored>(n: usize, from: &mut Reader<'_>) -> Result<IdVec<I, T>, Damage> {
    let mut all = IdVec::default();
    for _ in 0..n {
        all.push(T::read_from(from)?);
    }
    Ok(all)
}

/// Reads the shared parts, in the order of [`crate::snapshot::Pool`].
fn restore_parts(workloads: &mut Workloads, from: &mut Reader<'_>) -> Result<(), Damage> {
    from.fill::<Arc<str>>()?;
    from.fill::<Shared<MetaDetails>>()?;
    from.fill::<Shared<PriorityClassRef>>()?;
    from.fill::<Shared<Vec<String>>>()?;
    from.fill::<Shared<Vec<PodSet>>>()?;
    from.fill::<Shared<Vec<PodSetRequest>>>()?;
    from.fill::<PodSetAssignments>()?;
    from.fill::<Shared<Admission>>()?;
    from.fill::<Shared<RareStatus>>()?;
    from.fill::<Arc<NoFit>>()?;
    from.fill::<Arc<Considered>>()?;
    from.fill::<Arc<Preemption>>()?;
    from.fill::<Shared<WorkloadStatus>>()?;
    from.fill::<Arc<[Totals]>>()?;
    from.fill::<Charged>()?;
    from.fill::<Arc<Devices>>()?;
    from.fill::<Arc<StringMap>>()?;
    from.fill::<Arc<ResourceFlavor>>()?;
    from.fill::<Arc<ClusterQueue>>()?;
    from.fill::<Arc<Cohort>>()?;
    from.fill::<Arc<LocalQueue>>()?;
    workloads.restore_specs(from)
}
