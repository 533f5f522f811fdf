//! Messages as bytes ([`crate::snapshot`]): as codes, or as text if a code's ids are of another engine.

use std::sync::Arc;

use crate::base::names::{Lexicon, Names};
use crate::base::shared::Shared;
use crate::base::text::Text;
use crate::base::when_read::WhenRead;
use crate::objects::message::{Considered, Message, NoFit, Path, Preemption, Reason, Why};
use crate::snapshot::{Damage, Reader, Stored, Writer, pooled, stored};
use crate::status::activeness::{Activeness, QueueStatus};

stored!(struct Activeness { status, reason, message });
stored!(enum QueueStatus { 0 = Active, 1 = Pending, 2 = Terminating });

/// The engine never nests messages deeper than this.
const MAX_DEPTH: usize = 8;

impl Stored for Message {
    fn write_to(&self, out: &mut Writer<'_>) {
        write(self, out, MAX_DEPTH);
    }

    fn read_from(from: &mut Reader<'_>) -> Result<Self, Damage> {
        read(from, MAX_DEPTH)
    }
}

fn write(message: &Message, out: &mut Writer<'_>, depth: usize) {
    let is_known = match message {
        Message::NoFit(it) => it.is_known(out.names),
        Message::QuotaReservedAmong(it) => it.is_known(out.names),
        Message::Preempted(it) | Message::PreemptedWithPriorities(it) | Message::PreemptedFor(it) => {
            it.is_known(out.names)
        }
        _ => depth > 0,
    };
    if !is_known {
        out.byte(0);
        out.text(&message.text());
        return;
    }
    match message {
        Message::Text(text) => put(out, 0, &[text]),
        Message::QuotaReserved(queue) => put(out, 1, &[queue]),
        Message::QuotaReservedAfter { queue, wait_ns } => put(out, 2, &[queue, wait_ns]),
        Message::QuotaReservedAmong(considered) => put(out, 3, &[considered]),
        Message::AdmittedBy { queue, wait_ns } => put(out, 4, &[queue, wait_ns]),
        Message::NoFit(no_fit) => put(out, 5, &[no_fit]),
        Message::PendingPreemptions(what, n) => {
            out.byte(6);
            write(what, out, depth - 1);
            n.write_to(out);
        }
        Message::PendingMigration(what) => {
            out.byte(7);
            write(what, out, depth - 1);
        }
        Message::Blocked(queue, blocker) => put(out, 8, &[queue, blocker]),
        Message::GatedBy(by) => put(out, 9, &[by]),
        Message::NamespaceMissing(namespace) => put(out, 10, &[namespace]),
        Message::Preempted(it) => put(out, 11, &[it]),
        Message::PreemptedWithPriorities(it) => put(out, 12, &[it]),
        Message::PreemptedFor(it) => put(out, 13, &[it]),
        Message::Previously(what) => {
            out.byte(14);
            write(what, out, depth - 1);
        }
        Message::DeactivatedDueTo(what) => {
            out.byte(15);
            write(what, out, depth - 1);
        }
    }
}

/// Writes the number of a variant, and its fields.
fn put(out: &mut Writer<'_>, variant: u8, fields: &[&dyn Stored]) {
    out.byte(variant);
    fields.iter().for_each(|field| field.write_to(out));
}

fn read(from: &mut Reader<'_>, depth: usize) -> Result<Message, Damage> {
    from.check(depth > 0, "messages within messages")?;
    let inner = |from: &mut Reader<'_>| read(from, depth - 1).map(Arc::new);
    Ok(match from.byte()? {
        0 => Message::Text(Text::read_from(from)?),
        1 => Message::QuotaReserved(Stored::read_from(from)?),
        2 => Message::QuotaReservedAfter { queue: Stored::read_from(from)?, wait_ns: Stored::read_from(from)? },
        3 => Message::QuotaReservedAmong(Stored::read_from(from)?),
        4 => Message::AdmittedBy { queue: Stored::read_from(from)?, wait_ns: Stored::read_from(from)? },
        5 => Message::NoFit(Stored::read_from(from)?),
        6 => Message::PendingPreemptions(inner(from)?, usize::read_from(from)?),
        7 => Message::PendingMigration(inner(from)?),
        8 => Message::Blocked(Stored::read_from(from)?, Stored::read_from(from)?),
        9 => Message::GatedBy(Stored::read_from(from)?),
        10 => Message::NamespaceMissing(Stored::read_from(from)?),
        11 => Message::Preempted(Stored::read_from(from)?),
        12 => Message::PreemptedWithPriorities(Stored::read_from(from)?),
        13 => Message::PreemptedFor(Stored::read_from(from)?),
        14 => Message::Previously(inner(from)?),
        15 => Message::DeactivatedDueTo(inner(from)?),
        other => return Err(from.damage(format!("Message has no variant {other}"))),
    })
}

pooled! {
    Arc<NoFit>: Misfits,
    Arc<Considered>: Considered,
    Arc<Preemption>: Preemptions,
}

impl Stored for NoFit {
    fn write_to(&self, out: &mut Writer<'_>) {
        let Self { pod_sets, misfits, lexicon: _ } = self;
        pod_sets.write_to(out);
        misfits.write_to(out);
    }

    fn read_from(from: &mut Reader<'_>) -> Result<Self, Damage> {
        let lexicon = Arc::clone(&from.lexicon);
        let it = Self { pod_sets: Stored::read_from(from)?, misfits: Stored::read_from(from)?, lexicon };
        from.check(it.misfits.iter().all(|misfit| misfit.pod_set < it.pod_sets.len()), "a pod set that is not there")?;
        Ok(it)
    }
}

impl Stored for Considered {
    fn write_to(&self, out: &mut Writer<'_>) {
        let Self { queue, wait_ns, pod_sets, flavors, lexicon: _ } = self;
        queue.write_to(out);
        wait_ns.write_to(out);
        pod_sets.write_to(out);
        flavors.write_to(out);
    }

    fn read_from(from: &mut Reader<'_>) -> Result<Self, Damage> {
        let (queue, wait_ns) = (Stored::read_from(from)?, Stored::read_from(from)?);
        let (pod_sets, flavors): (Shared<Vec<_>>, Vec<(usize, _)>) =
            (Stored::read_from(from)?, Stored::read_from(from)?);
        from.check(flavors.iter().all(|(index, _)| *index < pod_sets.len()), "a pod set that is not there")?;
        let flavors = WhenRead::new(Box::new(|| flavors));
        Ok(Self { queue, wait_ns, pod_sets, flavors, lexicon: Arc::clone(&from.lexicon) })
    }
}

impl Stored for Preemption {
    fn write_to(&self, out: &mut Writer<'_>) {
        let Self {
            preemptor,
            preemptor_details,
            preemptee,
            reason,
            preemptor_path,
            preemptee_path,
            preemptor_priorities,
            preemptee_priorities,
            lexicon: _,
        } = self;
        preemptor.write_to(out);
        preemptor_details.write_to(out);
        preemptee.write_to(out);
        reason.write_to(out);
        preemptor_path.write_to(out);
        preemptee_path.write_to(out);
        preemptor_priorities.write_to(out);
        preemptee_priorities.write_to(out);
    }

    fn read_from(from: &mut Reader<'_>) -> Result<Self, Damage> {
        Ok(Self {
            lexicon: Arc::clone(&from.lexicon),
            preemptor: Stored::read_from(from)?,
            preemptor_details: Stored::read_from(from)?,
            preemptee: Stored::read_from(from)?,
            reason: Stored::read_from(from)?,
            preemptor_path: Stored::read_from(from)?,
            preemptee_path: Stored::read_from(from)?,
            preemptor_priorities: Stored::read_from(from)?,
            preemptee_priorities: Stored::read_from(from)?,
        })
    }
}

// A copy of an engine assigns its own ids, so a message may come from an engine with other ids.

impl NoFit {
    fn is_known(&self, names: &Names) -> bool {
        let reasons = self.misfits.iter().flat_map(|misfit| match &misfit.why {
            Why::Error(_) => [].iter(),
            Why::Reasons(reasons) => reasons.iter(),
        });
        are_known(reasons, &self.lexicon, names)
    }
}

impl Considered {
    fn is_known(&self, names: &Names) -> bool {
        let same_flavor = |id| names.flavors.find(self.lexicon.flavor(id)) == Some(id);
        self.lexicon.is_of(names)
            || (self.flavors.iter().all(|(_, it)| same_flavor(it.flavor))
                && are_known(self.flavors.iter().flat_map(|(_, it)| &it.reasons), &self.lexicon, names))
    }
}

impl Preemption {
    fn is_known(&self, names: &Names) -> bool {
        let lexicon = &self.lexicon;
        let is_same = |path: &Path| {
            let mut cohorts = path.cohorts.iter().flatten();
            names.queues.find(lexicon.queue(path.queue)) == Some(path.queue)
                && cohorts.all(|id| names.cohorts.find(lexicon.cohort(*id)) == Some(*id))
        };
        lexicon.is_of(names) || (is_same(&self.preemptor_path) && is_same(&self.preemptee_path))
    }
}

fn are_known<'a>(mut reasons: impl Iterator<Item = &'a Reason>, lexicon: &Lexicon, names: &Names) -> bool {
    let flavor = |id| names.flavors.find(lexicon.flavor(id)) == Some(id);
    let resource = |id| names.find_resource(lexicon.resource(id)) == Some(id);
    let pair = |id| {
        let (of_flavor, of_resource) = lexicon.parts(id);
        flavor(of_flavor) && resource(of_resource) && names.find_flavor_resource(of_flavor, of_resource) == Some(id)
    };
    lexicon.is_of(names)
        || reasons.all(|reason| match *reason {
            Reason::ResourceUnavailable(id) => resource(id),
            Reason::FlavorNotFound(id)
            | Reason::NotAllowed(id)
            | Reason::TopologyUnsupported(id)
            | Reason::TopologyOnly(id)
            | Reason::TopologyUnknown(id)
            | Reason::LevelUnknown(id)
            | Reason::UntoleratedTaint(id, _)
            | Reason::AffinityMismatch(id) => flavor(id),
            Reason::NotNominated(of_flavor, of_resource) | Reason::ResourceNotProvided(of_flavor, of_resource) => {
                flavor(of_flavor) && resource(of_resource)
            }
            Reason::ExceedsMaximum { fr, .. } | Reason::Insufficient { fr, .. } | Reason::BorrowingWaits(fr) => {
                pair(fr)
            }
            Reason::NoPlace(_) => true,
            Reason::ReplacedSliceFlavor(id, other) => flavor(id) && other.is_none_or(flavor),
        })
}
