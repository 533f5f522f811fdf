//! A log of quota taken and released, in columns.

use crate::base::ids::Id;
use crate::objects::Time;
use crate::state::State;
use crate::state::charges::ChargeChange;

/// No ClusterQueue.
pub(super) const NONE: u32 = u32::MAX;

/// The changes of usage in a run, in order of time. Change `i` has the amounts from `ends[i - 1]` up to `ends[i]`.
#[derive(Clone, Debug, Default)]
pub struct UsageLog {
    /// When, in nanoseconds since 1970.
    pub times: Vec<i64>,
    /// Which workload, by its number in the run.
    pub workloads: Vec<u32>,
    /// Which ClusterQueue, as an index into `queue_names`.
    pub queues: Vec<u32>,
    /// 1: quota was taken; 0: it was released.
    pub adds: Vec<u8>,
    /// Where the amounts of each change end.
    pub ends: Vec<u32>,
    /// Flavor and resource of each amount, as an index into `pair_names`.
    pub pairs: Vec<u32>,
    /// How much, in the units of the resource.
    pub amounts: Vec<i64>,
    /// Names of ClusterQueues.
    pub queue_names: Vec<String>,
    /// Names of flavors and resources.
    pub pair_names: Vec<(String, String)>,
    /// The ClusterQueue of each workload by number, the last one it was in; `u32::MAX`: none.
    pub homes: Vec<u32>,
}

impl UsageLog {
    pub(super) fn push(&mut self, state: &State, time: Time, number: u32, change: &ChargeChange) {
        let queue = self.queue(state, change.queue.index());
        self.put_home(number, queue);
        self.times.push(time.0);
        self.workloads.push(number);
        self.queues.push(queue);
        self.adds.push(u8::from(change.adds));
        for (pair, amount) in change.usage.iter() {
            let pair = self.pair(state, pair.index());
            self.pairs.push(pair);
            self.amounts.push(amount.get());
        }
        self.ends.push(index(self.pairs.len()));
    }

    /// Records that the workload with this number belongs to its LocalQueue's ClusterQueue.
    pub(super) fn found_home(&mut self, state: &State, number: u32, queue: Option<impl Id>) {
        let queue = queue.map_or(NONE, |queue| self.queue(state, queue.index()));
        self.put_home(number, queue);
    }

    pub(super) fn put_home(&mut self, number: u32, queue: u32) {
        let number = number as usize;
        if self.homes.len() <= number {
            self.homes.resize(number + 1, NONE);
        }
        self.homes[number] = queue;
    }

    pub(super) fn queue(&mut self, state: &State, id: usize) -> u32 {
        for known in self.queue_names.len()..=id {
            self.queue_names.push(state.names.queues[Id::from_index(known)].to_string());
        }
        index(id)
    }

    pub(super) fn pair(&mut self, state: &State, id: usize) -> u32 {
        for known in self.pair_names.len()..=id {
            let (flavor, resource) = state.names.parts(Id::from_index(known));
            let resource = state.names.resource_text(resource).to_owned();
            self.pair_names.push((state.names.flavors[flavor].to_string(), resource));
        }
        index(id)
    }
}

fn index(n: usize) -> u32 {
    u32::try_from(n).expect("fewer than 2^32 amounts")
}

#[cfg(test)]
mod tests;
