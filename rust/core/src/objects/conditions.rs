//! Status conditions: how they are found, and what changes when one is set (rules/05 §6.5, rules/07 §1).

use crate::base::text::Text;
use crate::objects::condition_type::Known;
pub use crate::objects::condition_type::{
    ADMITTED, BLOCKED_ON_PREEMPTION_GATES, DEACTIVATION_TARGET, EVICTED, FINISHED, PODS_READY, PREEMPTED,
    QUOTA_RESERVED, REQUEUED, WAITING_FOR_REPLACEMENT_PODS,
};
use crate::objects::message::Message;
use crate::objects::{Condition, ConditionStatus, Time};

/// Longest condition message, in bytes.
pub(crate) const MAX_CONDITION_MESSAGE: usize = 32 * 1024;
/// Longest event message, in bytes.
pub(crate) const MAX_EVENT_MESSAGE: usize = 1024;

/// The condition of this type.
#[must_use]
pub fn find(conditions: &[Condition], kind: Known) -> Option<&Condition> {
    conditions.iter().find(|c| c.kind == kind)
}

/// The condition of this type, if it is True.
#[must_use]
pub(crate) fn find_true(conditions: &[Condition], kind: Known) -> Option<&Condition> {
    find(conditions, kind).filter(|c| c.status == ConditionStatus::True)
}

/// The condition of this type, if it is False.
#[must_use]
pub(crate) fn find_false(conditions: &[Condition], kind: Known) -> Option<&Condition> {
    find(conditions, kind).filter(|c| c.status == ConditionStatus::False)
}

/// Is the condition of this type there and True?
#[must_use]
pub fn is_true(conditions: &[Condition], kind: Known) -> bool {
    find_true(conditions, kind).is_some()
}

/// Adds the condition, or updates the one of its type where it stands; says whether anything changed.
///
/// `new.last_transition` is taken over only with a new status; reason, message and observedGeneration always are.
pub fn set(conditions: &mut Vec<Condition>, new: Condition) -> bool {
    let changed = !conditions.iter().any(|old| old.kind == new.kind && says_the_same(old, &new));
    if changed {
        put(conditions, new);
    }
    changed
}

/// Do two conditions of one type say the same, whenever they began to?
pub(crate) fn says_the_same(old: &Condition, new: &Condition) -> bool {
    (old.status, old.observed_generation) == (new.status, new.observed_generation)
        && old.reason == new.reason
        && old.message == new.message
}

/// Adds a condition that says something new, or writes it over the one of its type.
pub(crate) fn put(conditions: &mut Vec<Condition>, new: Condition) {
    match conditions.iter_mut().find(|c| c.kind == new.kind) {
        Some(old) => {
            let last_transition = if old.status == new.status { old.last_transition } else { new.last_transition };
            *old = Condition { last_transition, ..new };
        }
        None => conditions.push(new),
    }
}

/// Removes the condition of this type; says whether there was one.
pub fn remove(conditions: &mut Vec<Condition>, kind: Known) -> bool {
    let before = conditions.len();
    conditions.retain(|c| c.kind != kind);
    conditions.len() != before
}

/// A condition. Its message is cut to [`MAX_CONDITION_MESSAGE`], that of a code where it becomes text.
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

impl Condition {
    /// Its message, as it is shown.
    pub fn text(&self) -> Text {
        self.message.cut(MAX_CONDITION_MESSAGE)
    }
}

/// `message` in at most `limit` bytes, the cut marked with ` ...`.
///
/// A character that would be cut in two is left out, so that the result is text.
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
        let mut all = vec![quota(ConditionStatus::False, "a", 1)];
        assert!(set(&mut all, quota(ConditionStatus::False, "b", 2)));
        assert_eq!(all, vec![quota(ConditionStatus::False, "b", 1)]);
        assert!(set(&mut all, quota(ConditionStatus::True, "b", 3)));
        assert_eq!(all, vec![quota(ConditionStatus::True, "b", 3)]);
    }

    #[test]
    fn same_content_at_another_time_is_no_change() {
        let mut all = vec![quota(ConditionStatus::True, "a", 1)];
        assert!(!set(&mut all, quota(ConditionStatus::True, "a", 2)));
        assert_eq!(all[0].last_transition, Time(1));
    }

    #[test]
    fn another_generation_is_a_change() {
        let mut all = vec![quota(ConditionStatus::True, "a", 1)];
        assert!(set(&mut all, Condition { observed_generation: 2, ..quota(ConditionStatus::True, "a", 1) }));
    }

    #[test]
    fn absent_and_unknown_are_not_true() {
        let unknown = [quota(ConditionStatus::Unknown, "", 0)];
        assert!(!is_true(&[], EVICTED) && !is_true(&unknown, QUOTA_RESERVED));
    }

    #[test]
    fn long_messages_are_cut_and_marked() {
        assert_eq!(truncate("12345678", 8), "12345678");
        assert_eq!(truncate("123456789", 8), "1234 ...");
        // The two bytes of `é` would be the fourth and the fifth.
        assert_eq!(truncate("123é56789", 8), "123 ...");
    }
}
