//! Usage, progress and assignments as bytes ([`crate::snapshot`]).

use super::*;
use crate::snapshot::{Damage, Reader, Stored, Writer, stored};

stored!(struct Resume { tried, generation, cycle, shape });
stored!(struct PodSetAssignment { index, count, requests, flavors, reasons, error, attempts, place, delayed });
stored!(enum Delay { 0 = Pending, 1 = Ready });
stored!(struct FlavorChoice { resource, flavor, pair, mode, level, tried_index });
stored!(struct Attempt { flavor, mode, level, possibility, reasons, no_fit_reason });
stored!(enum Mode { 0 = NoFit, 1 = Preempt, 2 = DeferredFit, 3 = Fit });
stored!(enum Possibility { 0 = NoCandidates, 1 = Preempt, 2 = Reclaim });
stored!(enum NoFitReason {
    0 = None, 1 = TopologyPlacementFailed, 2 = WaitingForQuota, 3 = ExceedsMaxQuota, 4 = NoMatchingFlavor,
});

impl Stored for Usage {
    fn write_to(&self, out: &mut Writer<'_>) {
        out.list(self.iter());
    }

    fn read_from(from: &mut Reader<'_>) -> Result<Self, Damage> {
        let pairs = from.list(<(FlavorResourceId, Amount)>::read_from)?;
        from.check(pairs.is_sorted_by(|a, b| a.0 < b.0), "usage that is not in order")?;
        let mut usage = Usage::default();
        pairs.into_iter().for_each(|(pair, amount)| usage.change(pair, |_| amount));
        Ok(usage)
    }
}

/// In full form: the result of a plan is unfolded, since plans are rebuilt.
impl Stored for Assignment {
    fn write_to(&self, out: &mut Writer<'_>) {
        out.list(self.pod_sets().iter());
        self.usage.write_to(out);
        self.borrowing.write_to(out);
        self.no_fit_reason.write_to(out);
        self.mode().write_to(out);
        self.is_whole().write_to(out);
    }

    fn read_from(from: &mut Reader<'_>) -> Result<Self, Damage> {
        let (pod_sets, usage, borrowing) = (Vec::read_from(from)?, Usage::read_from(from)?, u32::read_from(from)?);
        let no_fit_reason = NoFitReason::read_from(from)?;
        let (mode, is_whole) = (Mode::read_from(from)?, bool::read_from(from)?);
        let mut assignment = Assignment::new(pod_sets, usage, borrowing).of_whole(is_whole).of_mode(mode);
        assignment.no_fit_reason = no_fit_reason;
        Ok(assignment)
    }
}
