//! Status conditions: how to find and set them (rules/05 §6.5, rules/07 §1).

use std::ops::Deref;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::fields::always;
use super::time::Time;
use super::words::words;
use crate::base::text::Text;
pub use crate::objects::condition_type::{
    ADMITTED, BLOCKED_ON_PREEMPTION_GATES, DEACTIVATION_TARGET, EVICTED, FINISHED, PODS_READY, PODS_SCHEDULED,
    PREEMPTED, QUOTA_RESERVED, REQUEUED, WAITING_FOR_REPLACEMENT_PODS,
};
use crate::objects::condition_type::{ConditionType, Known};
use crate::objects::message::Message;

/// Longest condition message, in bytes.
pub(crate) const MAX_CONDITION_MESSAGE: usize = 32 * 1024;
/// Longest event message, in bytes.
pub(crate) const MAX_EVENT_MESSAGE: usize = 1024;

/// A condition. `kind` is its `type`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Condition {
    #[serde(rename = "type", serialize_with = "always")]
    pub kind: ConditionType,
    pub status: ConditionStatus,
    #[serde(serialize_with = "always")]
    pub reason: Text,
    #[serde(serialize_with = "always")]
    pub message: Message,
    #[serde(rename = "lastTransitionTime")]
    pub last_transition: Time,
    pub observed_generation: i64,
}

/// `status` of a condition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConditionStatus {
    True,
    False,
    #[default]
    Unknown,
}

words! {
    ConditionStatus { True, False, Unknown }
}

/// Conditions in order of appearance, with the states of known types as bits: stages are read from those.
///
/// Only bad input has several of one type; the first one counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conditions {
    list: Vec<Condition>,
    /// Two bits per known type, see [`bits`]; 0: absent.
    states: u32,
}

/// The two bits for a status.
const fn bits(status: ConditionStatus) -> u32 {
    match status {
        ConditionStatus::True => 1,
        ConditionStatus::False => 2,
        ConditionStatus::Unknown => 3,
    }
}

impl Conditions {
    /// The bits of a type.
    fn state(&self, kind: Known) -> u32 {
        (self.states >> (2 * kind as u32)) & 3
    }

    fn note(&mut self, kind: Known, state: u32) {
        let at = 2 * kind as u32;
        self.states = (self.states & !(3 << at)) | (state << at);
    }

    /// The condition of this type, if it has this status.
    fn find_with(&self, kind: Known, status: ConditionStatus) -> Option<&Condition> {
        if self.state(kind) == bits(status) { self.list.iter().find(|c| c.kind == kind) } else { None }
    }

    /// Adds the condition, or updates the one of its type in place; returns whether anything changed.
    ///
    /// `new.last_transition` applies only with a new status; reason, message and observedGeneration always do.
    pub fn set(&mut self, new: Condition) -> bool {
        let changed = !self.list.iter().any(|old| old.kind == new.kind && says_the_same(old, &new));
        if changed {
            self.put(new);
        }
        changed
    }

    /// The same for a condition known to differ.
    pub(crate) fn put(&mut self, new: Condition) {
        if let Some(kind) = new.kind.known() {
            self.note(kind, bits(new.status));
        }
        match self.list.iter_mut().find(|old| old.kind == new.kind) {
            Some(old) => {
                let last_transition = if old.status == new.status { old.last_transition } else { new.last_transition };
                *old = Condition { last_transition, ..new };
            }
            None => self.list.push(new),
        }
    }

    /// Removes the condition of this type; returns whether there was one.
    pub fn remove(&mut self, kind: Known) -> bool {
        let was_there = self.state(kind) != 0;
        self.list.retain(|c| c.kind != kind);
        self.note(kind, 0);
        was_there
    }

    /// Reserves room for the conditions that nearly every workload with quota has.
    pub(crate) fn reserve_usual(&mut self) {
        if self.list.is_empty() {
            self.list.reserve_exact(2);
        }
    }
}

impl From<Vec<Condition>> for Conditions {
    fn from(list: Vec<Condition>) -> Self {
        let mut conditions = Self { list: Vec::new(), states: 0 };
        for condition in &list {
            if let Some(kind) = condition.kind.known().filter(|&kind| conditions.state(kind) == 0) {
                conditions.note(kind, bits(condition.status));
            }
        }
        Self { list, ..conditions }
    }
}

impl Serialize for Conditions {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl<'de> Deserialize<'de> for Conditions {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::deserialize(deserializer).map(Conditions::from)
    }
}

impl Deref for Conditions {
    type Target = [Condition];
    fn deref(&self) -> &[Condition] {
        &self.list
    }
}

/// The condition of this type.
#[must_use]
pub fn find(conditions: &Conditions, kind: Known) -> Option<&Condition> {
    if conditions.state(kind) == 0 { None } else { conditions.list.iter().find(|c| c.kind == kind) }
}

/// The condition of this type, if it is True.
#[must_use]
pub fn find_true(conditions: &Conditions, kind: Known) -> Option<&Condition> {
    conditions.find_with(kind, ConditionStatus::True)
}

/// The condition of this type, if it is False.
#[must_use]
pub(crate) fn find_false(conditions: &Conditions, kind: Known) -> Option<&Condition> {
    conditions.find_with(kind, ConditionStatus::False)
}

/// Is the condition of this type present and True?
#[must_use]
pub fn is_true(conditions: &Conditions, kind: Known) -> bool {
    conditions.state(kind) == bits(ConditionStatus::True)
}

/// Are two conditions of one type equal, except for their transition times?
pub(crate) fn says_the_same(old: &Condition, new: &Condition) -> bool {
    (old.status, old.observed_generation) == (new.status, new.observed_generation)
        && old.reason == new.reason
        && old.message == new.message
}

/// Builds a condition. Its message is cut to [`MAX_CONDITION_MESSAGE`], a coded one when it becomes text.
#[must_use]
pub fn condition(
    kind: Known,
    status: ConditionStatus,
    reason: impl Into<Text>,
    message: impl Into<Message>,
    now: Time,
    generation: i64,
) -> Condition {
    Condition {
        kind: kind.into(),
        status,
        reason: reason.into(),
        message: match message.into() {
            Message::Text(text) => truncate(text, MAX_CONDITION_MESSAGE).into(),
            code => code,
        },
        last_transition: now,
        observed_generation: generation,
    }
}

/// `message` in at most `limit` bytes, with the cut marked by ` ...`.
///
/// A character that would be split is dropped, so that the result is valid text.
#[must_use]
pub(crate) fn truncate(message: impl Into<Text>, limit: usize) -> Text {
    const MARK: &str = " ...";
    let message = message.into();
    if message.len() <= limit {
        return message;
    }
    let mut end = limit.saturating_sub(MARK.len());
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}{MARK}", &message[..end]).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quota(status: ConditionStatus, message: &str, at: i64) -> Condition {
        condition(QUOTA_RESERVED, status, "R", Text::copied(message), Time(at), 1)
    }

    #[test]
    fn transition_time_moves_only_with_the_status() {
        let mut all = Conditions::from(vec![quota(ConditionStatus::False, "a", 1)]);
        assert!(all.set(quota(ConditionStatus::False, "b", 2)));
        assert_eq!(*all, [quota(ConditionStatus::False, "b", 1)]);
        assert!(all.set(quota(ConditionStatus::True, "b", 3)));
        assert_eq!(*all, [quota(ConditionStatus::True, "b", 3)]);
    }

    #[test]
    fn same_content_at_another_time_is_no_change() {
        let mut all = Conditions::from(vec![quota(ConditionStatus::True, "a", 1)]);
        assert!(!all.set(quota(ConditionStatus::True, "a", 2)));
        assert_eq!(all[0].last_transition, Time(1));
    }

    #[test]
    fn another_generation_is_a_change() {
        let mut all = Conditions::from(vec![quota(ConditionStatus::True, "a", 1)]);
        assert!(all.set(Condition { observed_generation: 2, ..quota(ConditionStatus::True, "a", 1) }));
    }

    #[test]
    fn absent_and_unknown_are_not_true() {
        let unknown = Conditions::from(vec![quota(ConditionStatus::Unknown, "", 0)]);
        assert!(!is_true(&Conditions::default(), EVICTED) && !is_true(&unknown, QUOTA_RESERVED));
    }

    #[test]
    fn states_of_known_types_follow_every_change() {
        let mut all = Conditions::from(vec![Condition { kind: "Other".into(), ..Condition::default() }]);
        for (status, n) in [(ConditionStatus::False, 2), (ConditionStatus::True, 2), (ConditionStatus::Unknown, 2)] {
            all.set(quota(status, "", 1));
            let says = [find_true(&all, QUOTA_RESERVED), find_false(&all, QUOTA_RESERVED)].map(|c| c.map(|c| c.status));
            assert_eq!(
                says,
                [ConditionStatus::True, ConditionStatus::False].map(|it| (it == status).then_some(status))
            );
            assert_eq!((all.len(), find(&all, QUOTA_RESERVED).map(|c| c.status)), (n, Some(status)));
            assert_eq!(Conditions::from(all.to_vec()), all);
        }
        assert!(all.remove(QUOTA_RESERVED) && !all.remove(QUOTA_RESERVED));
        assert!(find(&all, QUOTA_RESERVED).is_none() && all.len() == 1);
    }

    #[test]
    fn the_first_condition_of_a_type_counts() {
        let both = [ConditionStatus::False, ConditionStatus::True].map(|status| quota(status, "", 1));
        let all = Conditions::from(both.to_vec());
        assert_eq!((find_false(&all, QUOTA_RESERVED), find_true(&all, QUOTA_RESERVED)), (Some(&both[0]), None));
    }

    #[test]
    fn long_messages_are_cut_and_marked() {
        assert_eq!(truncate("12345678", 8), "12345678");
        assert_eq!(truncate("123456789", 8), "1234 ...");
        // The two bytes of `é` would be the fourth and fifth.
        assert_eq!(truncate("123é56789", 8), "123 ...");
    }
}
