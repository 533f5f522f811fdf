//! The question that a search for targets asks: do the pods have a place once some workloads are gone?

use std::cell::RefCell;

use super::{Need, Placer, Wanted};
use crate::assign::Assignment;
use crate::preempt::Placing;
use crate::topology::rooms::Rooms;
use crate::workloads::charge::Target;

impl<'a> Placer<'a> {
    /// The question that a search for targets asks.
    pub fn asks_for_place(&self, assignment: &Assignment) -> AsksForPlace<'_, 'a> {
        let needs = self.needs(&assignment.pod_sets()).into_iter();
        let wanted = needs.filter_map(|(_, need)| match need {
            Need::Place(wanted) => Some(wanted),
            Need::Later | Need::Error(_) => None,
        });
        AsksForPlace::new(self, wanted.collect())
    }
}

/// Is there a place once some workloads are gone?
pub(crate) struct AsksForPlace<'b, 'a> {
    placer: &'b Placer<'a>,
    wanted: Vec<Wanted>,
    /// For a single pod set without a placement: what fits without the workloads that are gone.
    rooms: RefCell<Option<Rooms<'b>>>,
}

impl<'b, 'a> AsksForPlace<'b, 'a> {
    fn new(placer: &'b Placer<'a>, wanted: Vec<Wanted>) -> Self {
        let rooms = match &wanted[..] {
            [only] if placer.unhealthy().is_none() => placer.state.sites.ground(only.flavor).and_then(|ground| {
                let gates = placer.state.config.gates;
                let mut seen = placer.seen.borrow_mut();
                let tables = &mut seen.entry(only.flavor).or_default().tables;
                ground.rooms(placer.ask(only, ground.tolerations), gates, tables)
            }),
            _ => None,
        };
        Self { placer, wanted, rooms: RefCell::new(rooms) }
    }

    fn finds_place_without(&self, gone: &[Target]) -> bool {
        self.placer.find(&self.wanted, false, gone).failure.is_none()
    }
}

impl Placing for AsksForPlace<'_, '_> {
    fn note(&self, target: &Target, is_gone: bool) {
        let Some(rooms) = &mut *self.rooms.borrow_mut() else { return };
        for (stand, id, n) in self.placer.domains_of(self.wanted[0].flavor, target) {
            rooms.give_back(&id, &stand.per_pod, if is_gone { n } else { -n });
        }
    }

    fn has_place(&self, gone: &dyn Fn() -> Vec<Target>) -> bool {
        let Some(rooms) = &*self.rooms.borrow() else { return self.finds_place_without(&gone()) };
        let has_place = rooms.have_place();
        debug_assert_eq!(has_place, self.finds_place_without(&gone()), "the quick answer is that of a placement");
        has_place
    }
}
