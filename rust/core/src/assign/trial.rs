//! The quota check of one flavor-resource (rules/03 §4.1).

use super::modes::{GranularMode, PreemptionMode};
use super::reasons::NoFitReason;
use super::{Amount, FlavorResourceId, Oracle, Reason, Row, Tree};

/// The request for a flavor-resource.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ask {
    pub fr: FlavorResourceId,
    /// What earlier pod sets take.
    pub assumed: Amount,
    /// The request of this pod set (group).
    pub requested: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Trial {
    /// The missing amount; or the maximum, if the request exceeds that.
    amount: Amount,
    /// Borrowing level.
    pub level: u32,
    pub preemption: PreemptionMode,
    exceeds_maximum: bool,
    /// It would borrow, and has to wait with that.
    waits_to_borrow: bool,
}

impl Trial {
    const FIT: Trial = Trial {
        amount: Amount::ZERO,
        level: 0,
        preemption: PreemptionMode::Fit,
        exceeds_maximum: false,
        waits_to_borrow: false,
    };

    /// Checks what a ClusterQueue can use.
    pub fn new(ask: Ask, place: (&mut Tree, Row), preempts_while_borrowing: bool, oracle: &mut dyn Oracle) -> Trial {
        let trial = Self::of_quota(ask, place, preempts_while_borrowing, oracle);
        if trial.level > 0 && trial.preemption != PreemptionMode::NoFit && !oracle.may_borrow(ask.fr) {
            return Trial { preemption: PreemptionMode::NoFit, waits_to_borrow: true, ..trial };
        }
        trial
    }

    fn of_quota(
        ask: Ask,
        (tree, row): (&mut Tree, Row),
        preempts_while_borrowing: bool,
        oracle: &mut dyn Oracle,
    ) -> Trial {
        let amount = ask.assumed.plus_units(ask.requested);
        let column = tree.column(ask.fr);
        let maximum = column.map_or(Amount::ZERO, |column| tree.potential_available(row, column));
        if amount > maximum {
            return Trial { amount: maximum, preemption: PreemptionMode::NoFit, exceeds_maximum: true, ..Trial::FIT };
        }
        // Without a column there is no quota anywhere, and nothing is requested.
        let Some(column) = column else { return Trial::FIT };
        let room = tree.room(row, column, amount);
        let available = room.available.max(Amount::ZERO);
        if amount <= available {
            return Trial { level: room.level, ..Trial::FIT };
        }
        let may_preempt = tree.nominal(row, column) >= amount || room.is_inside || preempts_while_borrowing;
        let (preemption, level) = if may_preempt {
            let (possibility, level) = oracle.simulate(tree, row, column, amount, room.level);
            (possibility.into(), level)
        } else {
            (PreemptionMode::NoFit, room.level)
        };
        Trial { amount: amount.minus(available), level, preemption, ..Trial::FIT }
    }

    pub fn mode(self) -> GranularMode {
        GranularMode { preemption: self.preemption, level: self.level }
    }

    /// The reason against it.
    pub fn reason(self, Ask { fr, assumed, requested }: Ask) -> Option<Reason> {
        if self.exceeds_maximum {
            return Some(Reason::ExceedsMaximum { fr, assumed, requested, maximum: self.amount });
        }
        if self.waits_to_borrow {
            return Some(Reason::BorrowingWaits(fr));
        }
        let fits = self.preemption == PreemptionMode::Fit;
        (!fits).then_some(Reason::Insufficient { fr, missing: self.amount })
    }

    /// Why it does not fit at all, if so.
    pub fn no_fit_reason(self) -> NoFitReason {
        match self.preemption {
            _ if self.exceeds_maximum => NoFitReason::ExceedsMaxQuota,
            PreemptionMode::NoFit => NoFitReason::WaitingForQuota,
            _ => NoFitReason::None,
        }
    }
}
