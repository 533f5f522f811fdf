//! Labels of metrics: the priority classes of workloads, and the causes of evictions.

use super::usage::NONE;
use crate::snapshot::{Damage, Reader, stored};

/// Labels in columns; repeated words are stored once.
#[derive(Clone, Debug, Default)]
pub struct LabelLog {
    /// The priority class of each workload that has appeared, in the order of [`super::Log::named`]; an index.
    pub classes: Vec<u32>,
    /// Names of priority classes; empty: none.
    pub class_names: Vec<String>,
    /// Evictions, in order of time.
    pub evictions: Vec<Eviction>,
    /// Reasons of evictions with their underlying causes.
    pub causes: Vec<(String, String)>,
}

/// A workload was evicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Eviction {
    pub workload: u32,
    /// Why, as an index into [`LabelLog::causes`].
    pub cause: u32,
    /// Where it held quota, as an index into [`super::UsageLog::queue_names`]; `u32::MAX`: nowhere.
    pub queue: u32,
}

stored!(struct Eviction { workload, cause, queue });

/// A position in a log.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LabelMark {
    n_classes: usize,
    n_class_names: usize,
    n_evictions: usize,
    n_causes: usize,
}

stored!(struct LabelLog { classes, class_names, evictions, causes });

impl LabelLog {
    pub(super) fn push_class(&mut self, name: &str) {
        let class = index_of(&mut self.class_names, |known| known == name, || name.to_owned());
        self.classes.push(class);
    }

    pub(super) fn push_eviction(&mut self, workload: u32, queue: u32, (reason, cause): (&str, &str)) {
        let cause = index_of(
            &mut self.causes,
            |known| known.0 == reason && known.1 == cause,
            || (reason.to_owned(), cause.to_owned()),
        );
        self.evictions.push(Eviction { workload, cause, queue });
    }

    /// The current position.
    pub(super) fn mark(&self) -> LabelMark {
        LabelMark {
            n_classes: self.classes.len(),
            n_class_names: self.class_names.len(),
            n_evictions: self.evictions.len(),
            n_causes: self.causes.len(),
        }
    }

    /// What was added since a mark.
    pub(super) fn part(&self, since: LabelMark) -> Self {
        Self {
            classes: self.classes[since.n_classes..].to_vec(),
            class_names: self.class_names[since.n_class_names..].to_vec(),
            evictions: self.evictions[since.n_evictions..].to_vec(),
            causes: self.causes[since.n_causes..].to_vec(),
        }
    }

    /// Appends a part.
    ///
    /// # Errors
    /// [`Damage`]: it does not match the number of workloads and ClusterQueues of the run.
    pub(super) fn add(
        &mut self,
        part: Self,
        n_workloads: usize,
        n_named: usize,
        n_queues: usize,
        from: &Reader<'_>,
    ) -> Result<(), Damage> {
        let Self { classes, class_names, evictions, causes } = part;
        self.class_names.extend(class_names);
        self.causes.extend(causes);
        let is_eviction = |it: &Eviction| {
            (it.workload as usize) < n_workloads
                && (it.cause as usize) < self.causes.len()
                && (it.queue == NONE || (it.queue as usize) < n_queues)
        };
        let is_known = self.classes.len() + classes.len() == n_named
            && classes.iter().all(|class| (*class as usize) < self.class_names.len())
            && evictions.iter().all(is_eviction);
        from.check(is_known, "labels of something unknown")?;
        self.classes.extend(classes);
        self.evictions.extend(evictions);
        Ok(())
    }
}

/// The index of an entry in a short list, appended if it is new.
fn index_of<T>(words: &mut Vec<T>, is_it: impl Fn(&T) -> bool, word: impl FnOnce() -> T) -> u32 {
    let place = words.iter().position(is_it).unwrap_or_else(|| {
        words.push(word());
        words.len() - 1
    });
    u32::try_from(place).expect("fewer than 2^32 words")
}
