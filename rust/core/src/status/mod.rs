//! What a status says and what is written into it, word for word: rules over objects alone.

pub mod activeness;
pub mod admissible;
pub mod checks;
pub mod eviction;
pub mod messages;
pub mod queue_time;
pub(crate) mod readiness;
pub mod reasons;
pub mod reservation;
pub mod stage;
mod stored;
