//! Reads and writes statuses, word for word as Kueue does: rules on single objects.

pub mod activeness;
pub mod admissible;
pub mod checks;
pub mod eviction;
pub mod messages;
pub(crate) mod own_timeouts;
pub mod queue_time;
pub(crate) mod readiness;
pub mod reasons;
pub mod reservation;
pub mod stage;
mod stored;
