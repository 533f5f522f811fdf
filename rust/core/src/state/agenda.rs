//! Which workloads need a reconciler pass: those that were touched since the last one, and those whose time has come.

use std::collections::{BTreeMap, BTreeSet};

use crate::base::ids::{IdSet, LocalQueueId, QueueId, ShapeId, WorkloadId};
use crate::objects::Time;
use crate::snapshot::{Damage, Reader, Stored, Writer};
use crate::state::State;

/// The workloads to reconcile, so that no others need a pass.
#[derive(Clone, Debug, Default)]
pub struct Agenda {
    touched: IdSet<WorkloadId>,
    /// Workloads parked in one step, by ClusterQueue and shape.
    parked: BTreeSet<(QueueId, ShapeId)>,
    alarms: BTreeSet<(Time, WorkloadId)>,
    alarm_of: BTreeMap<WorkloadId, Time>,
    /// What was touched since the last call of `take_followed`; `None`: it was never called.
    followed: Option<IdSet<WorkloadId>>,
}

impl Agenda {
    /// Something has changed that may change the workload's status.
    pub(crate) fn touch(&mut self, id: WorkloadId) {
        self.touched.insert(id);
        if let Some(followed) = &mut self.followed {
            followed.insert(id);
        }
    }

    /// Takes what was touched since the last call; recording starts with the first call.
    pub(crate) fn take_followed(&mut self) -> IdSet<WorkloadId> {
        self.followed.replace(IdSet::default()).unwrap_or_default()
    }

    /// Does a caller follow what was touched?
    pub(crate) fn is_followed(&self) -> bool {
        self.followed.is_some()
    }

    /// The workloads of a shape were parked in one step.
    pub(crate) fn touch_parked(&mut self, queue: QueueId, shape: ShapeId) {
        self.parked.insert((queue, shape));
    }

    /// The shapes of workloads that were parked in one step.
    pub(crate) fn parked_shapes(&self) -> impl Iterator<Item = ShapeId> + '_ {
        self.parked.iter().map(|(_, shape)| *shape)
    }

    /// Takes which workloads were parked in one step.
    pub(crate) fn take_parked(&mut self) -> BTreeSet<(QueueId, ShapeId)> {
        std::mem::take(&mut self.parked)
    }

    /// The workload is gone.
    pub fn forget(&mut self, id: WorkloadId) {
        self.settled(id, None);
        if let Some(followed) = &mut self.followed {
            followed.remove(id);
        }
    }

    /// The workload was reconciled; time alone changes something at `wake`.
    pub(crate) fn settled(&mut self, id: WorkloadId, wake: Option<Time>) {
        self.touched.remove(id);
        if let Some(old) = self.alarm_of.remove(&id) {
            self.alarms.remove(&(old, id));
        }
        if let Some(at) = wake {
            self.alarm_of.insert(id, at);
            self.alarms.insert((at, id));
        }
    }

    /// Touches the workloads whose alarm is due at `now`.
    pub(crate) fn ring(&mut self, now: Time) {
        for (_, id) in self.alarms.iter().take_while(|(at, _)| *at <= now) {
            self.touched.insert(*id);
        }
    }

    /// The first alarm, past or not.
    pub(crate) fn first_alarm(&self) -> Option<Time> {
        self.alarms.first().map(|(at, _)| *at)
    }

    /// The workloads that were touched.
    pub(crate) fn touched(&self) -> impl Iterator<Item = WorkloadId> + '_ {
        self.touched.iter()
    }

    /// The first alarm after `now` of a workload that was not touched.
    pub(crate) fn next_alarm(&self, now: Time) -> Option<Time> {
        self.alarms.iter().find(|(at, id)| *at > now && !self.touched.contains(*id)).map(|(at, _)| *at)
    }
}

impl Stored for Agenda {
    fn write_to(&self, out: &mut Writer<'_>) {
        let Self { touched, parked, alarms: _, alarm_of, followed } = self;
        touched.write_to(out);
        // Shapes have no order of their own, so sort by something that has.
        let mut parked: Vec<_> = parked.iter().map(|&(queue, shape)| (queue, out.shape(shape), shape)).collect();
        parked.sort();
        out.count(parked.len());
        parked.into_iter().for_each(|(queue, _, shape)| (queue, shape).write_to(out));
        alarm_of.write_to(out);
        followed.write_to(out);
    }

    fn read_from(from: &mut Reader<'_>) -> Result<Self, Damage> {
        let touched = from.live_workloads()?;
        let parked = from.list(Stored::read_from)?.into_iter().collect();
        let alarm_of = BTreeMap::<WorkloadId, Time>::read_from(from)?;
        let alarms = alarm_of.iter().map(|(&id, &at)| (at, id)).collect();
        let followed = if bool::read_from(from)? { Some(from.live_workloads()?) } else { None };
        Ok(Self { touched, parked, alarms, alarm_of, followed })
    }
}

impl State {
    /// Something has changed for all workloads of a LocalQueue.
    pub(crate) fn touch_local_queue(&mut self, id: LocalQueueId) {
        for workload in self.local_queues[id].workloads.iter() {
            self.feeds.agenda.touch(workload);
        }
    }

    /// Something has changed for all workloads that wait for a ClusterQueue or hold its quota.
    pub(crate) fn touch_cluster_queue(&mut self, id: QueueId) {
        for local_queue in self.queues[id].local_queues.clone() {
            self.touch_local_queue(local_queue);
        }
    }

    /// Something has changed for all workloads of a namespace.
    pub(crate) fn touch_namespace(&mut self, name: &str) {
        for (id, record) in self.workloads.iter() {
            if record.key().namespace() == name {
                self.feeds.agenda.touch(id);
            }
        }
    }
}
