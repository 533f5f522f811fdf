//! Numbers, texts, lists, and the types of [`crate::base`].

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use smallvec::{Array, SmallVec};

use super::{Damage, Pool, Pooled, Reader, Stored, Writer};
use crate::base::amount::Amount;
use crate::base::changes::{Change, Changes};
use crate::base::gates::{Gate, Gates};
use crate::base::ids::{
    CohortId, FlavorId, FlavorResourceId, Id, IdSet, LocalQueueId, NamespaceId, QueueId, ResourceId, ShapeId,
    WorkloadId,
};
use crate::base::key::Key;
use crate::base::quantity::{Family, Quantity};
use crate::base::releases::Release;
use crate::base::text::Text;

macro_rules! integers {
    ($($method:ident $as:ident: $($type:ident),*;)*) => {$($(
        impl Stored for $type {
            fn write_to(&self, out: &mut Writer<'_>) {
                out.$method(*self as $as);
            }

            fn read_from(from: &mut Reader<'_>) -> Result<Self, Damage> {
                let number = from.$method()?;
                number.try_into().map_err(|_| from.damage(format!("{number} as {}", stringify!($type))))
            }
        }
    )*)*};
}

integers! {
    number u128: u8, u32, u64, usize;
    signed i128: i32, i64, i128;
}

impl Stored for bool {
    fn write_to(&self, out: &mut Writer<'_>) {
        out.byte(u8::from(*self));
    }

    fn read_from(from: &mut Reader<'_>) -> Result<Self, Damage> {
        match from.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(from.damage(format!("{other} as false or true"))),
        }
    }
}

impl Stored for f64 {
    fn write_to(&self, out: &mut Writer<'_>) {
        out.raw(&self.to_bits().to_le_bytes());
    }

    fn read_from(from: &mut Reader<'_>) -> Result<Self, Damage> {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(from.raw(8)?);
        Ok(f64::from_bits(u64::from_le_bytes(bytes)))
    }
}

impl Stored for String {
    fn write_to(&self, out: &mut Writer<'_>) {
        out.string(self);
    }

    fn read_from(from: &mut Reader<'_>) -> Result<Self, Damage> {
        let n = from.count()?;
        let bytes = from.raw(n)?;
        std::str::from_utf8(bytes).map(str::to_owned).map_err(|_| from.damage("text that is not UTF-8"))
    }
}

/// A fixed word of the program.
impl Stored for &'static str {
    fn write_to(&self, out: &mut Writer<'_>) {
        out.text(self);
    }

    fn read_from(from: &mut Reader<'_>) -> Result<Self, Damage> {
        from.word()
    }
}

impl Stored for Arc<str> {
    fn write_to(&self, out: &mut Writer<'_>) {
        out.text(self);
    }

    fn read_from(from: &mut Reader<'_>) -> Result<Self, Damage> {
        from.pooled(Pool::Texts)
    }
}

impl Pooled for Arc<str> {
    const POOL: Pool = Pool::Texts;

    fn read_part(from: &mut Reader<'_>) -> Result<Self, Damage> {
        String::read_from(from).map(Arc::from)
    }
}

impl Stored for Text {
    fn write_to(&self, out: &mut Writer<'_>) {
        out.text(self);
    }

    fn read_from(from: &mut Reader<'_>) -> Result<Self, Damage> {
        from.pooled(Pool::Texts).map(Text::Shared)
    }
}

impl<T: Stored> Stored for Option<T> {
    fn write_to(&self, out: &mut Writer<'_>) {
        self.is_some().write_to(out);
        if let Some(it) = self {
            it.write_to(out);
        }
    }

    fn read_from(from: &mut Reader<'_>) -> Result<Self, Damage> {
        if bool::read_from(from)? { T::read_from(from).map(Some) } else { Ok(None) }
    }
}

impl<T: Stored> Stored for Box<T> {
    fn write_to(&self, out: &mut Writer<'_>) {
        (**self).write_to(out);
    }

    fn read_from(from: &mut Reader<'_>) -> Result<Self, Damage> {
        T::read_from(from).map(Box::new)
    }
}

impl<T: Stored> Stored for Vec<T> {
    fn write_to(&self, out: &mut Writer<'_>) {
        out.list(self.iter());
    }

    fn read_from(from: &mut Reader<'_>) -> Result<Self, Damage> {
        from.list(T::read_from)
    }
}

/// Always the same length.
impl<T: Stored + Copy + Default, const N: usize> Stored for [T; N] {
    fn write_to(&self, out: &mut Writer<'_>) {
        self.iter().for_each(|item| item.write_to(out));
    }

    fn read_from(from: &mut Reader<'_>) -> Result<Self, Damage> {
        let mut items = [T::default(); N];
        for item in &mut items {
            *item = T::read_from(from)?;
        }
        Ok(items)
    }
}

impl<A: Array<Item: Stored>> Stored for SmallVec<A> {
    fn write_to(&self, out: &mut Writer<'_>) {
        out.list(self.iter());
    }

    fn read_from(from: &mut Reader<'_>) -> Result<Self, Damage> {
        from.list(A::Item::read_from).map(SmallVec::from_vec)
    }
}

impl<T: Stored + Ord> Stored for BTreeSet<T> {
    fn write_to(&self, out: &mut Writer<'_>) {
        out.list(self.iter());
    }

    fn read_from(from: &mut Reader<'_>) -> Result<Self, Damage> {
        let items = from.list(T::read_from)?;
        from.check(items.is_sorted_by(|a, b| a < b), "a set that is not in order")?;
        Ok(items.into_iter().collect())
    }
}

impl<K: Stored + Ord, V: Stored> Stored for BTreeMap<K, V> {
    fn write_to(&self, out: &mut Writer<'_>) {
        out.count(self.len());
        for (key, value) in self {
            key.write_to(out);
            value.write_to(out);
        }
    }

    fn read_from(from: &mut Reader<'_>) -> Result<Self, Damage> {
        let items = from.list(<(K, V)>::read_from)?;
        from.check(items.is_sorted_by(|a, b| a.0 < b.0), "a map that is not in order")?;
        Ok(items.into_iter().collect())
    }
}

impl<A: Stored, B: Stored> Stored for (A, B) {
    fn write_to(&self, out: &mut Writer<'_>) {
        self.0.write_to(out);
        self.1.write_to(out);
    }

    fn read_from(from: &mut Reader<'_>) -> Result<Self, Damage> {
        Ok((A::read_from(from)?, B::read_from(from)?))
    }
}

impl Stored for Amount {
    fn write_to(&self, out: &mut Writer<'_>) {
        self.get().write_to(out);
    }

    fn read_from(from: &mut Reader<'_>) -> Result<Self, Damage> {
        i64::read_from(from).map(Amount::new)
    }
}

/// Digits and exponent unchanged: its approximate float depends on them.
impl Stored for Quantity {
    fn write_to(&self, out: &mut Writer<'_>) {
        let (digits, exponent, family, text) = self.parts();
        out.byte(family as u8 | u8::from(text.is_some()) << 2);
        digits.write_to(out);
        exponent.write_to(out);
        if let Some(text) = text {
            out.string(text);
        }
    }

    fn read_from(from: &mut Reader<'_>) -> Result<Self, Damage> {
        let kind = from.byte()?;
        let family = match kind & 3 {
            0 => Family::DecimalSi,
            1 => Family::BinarySi,
            2 => Family::DecimalExponent,
            other => return Err(from.damage(format!("{other} as a family of quantities"))),
        };
        from.check(kind < 8, "a quantity of no kind")?;
        let (digits, exponent) = (i128::read_from(from)?, i32::read_from(from)?);
        let text = if kind & 4 == 0 { None } else { Some(String::read_from(from)?) };
        let quantity = Quantity::from_parts(digits, exponent, family, text.as_deref());
        from.check(quantity.parts().0 == digits && quantity.parts().1 == exponent, "a quantity with too many digits")?;
        Ok(quantity)
    }
}

impl Stored for Release {
    fn write_to(&self, out: &mut Writer<'_>) {
        out.string(&self.to_string());
    }

    fn read_from(from: &mut Reader<'_>) -> Result<Self, Damage> {
        let name = String::read_from(from)?;
        Release::from_name(&name).ok_or_else(|| from.damage(format!("no release of Kueue: {name:?}")))
    }
}

/// The gates that are not as in the newest release, by name: a newer kueuecore may have more.
impl Stored for Gates {
    fn write_to(&self, out: &mut Writer<'_>) {
        let differences: Vec<(Gate, bool)> = self.differences(Release::default()).collect();
        out.count(differences.len());
        for (gate, on) in differences {
            out.string(gate.name());
            on.write_to(out);
        }
    }

    fn read_from(from: &mut Reader<'_>) -> Result<Self, Damage> {
        let mut gates = Gates::default();
        for (name, on) in from.list(<(String, bool)>::read_from)? {
            let gate = Gate::from_name(&name);
            let gate = gate.ok_or_else(|| from.damage(format!("no feature gate: {name:?}")))?;
            gates = gates.with(gate, on);
        }
        Ok(gates)
    }
}

/// The changes that are not in effect, by name.
impl Stored for Changes {
    fn write_to(&self, out: &mut Writer<'_>) {
        let absent: Vec<Change> = Change::ALL.into_iter().filter(|&it| !self.has(it)).collect();
        out.count(absent.len());
        for change in absent {
            out.string(change.name());
        }
    }

    fn read_from(from: &mut Reader<'_>) -> Result<Self, Damage> {
        let mut changes = Changes::default();
        for name in from.list(String::read_from)? {
            let change = Change::from_name(&name);
            let change = change.ok_or_else(|| from.damage(format!("no change of Kueue: {name:?}")))?;
            changes = changes.with(change, false);
        }
        Ok(changes)
    }
}

impl Stored for Key {
    fn write_to(&self, out: &mut Writer<'_>) {
        out.text(self.namespace());
        out.string(self.name());
        let is_name = self.uid() == self.name();
        is_name.write_to(out);
        if !is_name {
            out.string(self.uid());
        }
    }

    fn read_from(from: &mut Reader<'_>) -> Result<Self, Damage> {
        let namespace = Arc::<str>::read_from(from)?;
        let name = String::read_from(from)?;
        if bool::read_from(from)? {
            return Ok(Key::new(&namespace, &name, &name));
        }
        let uid = String::read_from(from)?;
        Ok(Key::new(&namespace, &name, &uid))
    }
}

macro_rules! ids {
    ($($type:ident, $of:literal, $n:expr;)*) => {$(
        impl Stored for $type {
            fn write_to(&self, out: &mut Writer<'_>) {
                out.count(self.index());
            }

            fn read_from(from: &mut Reader<'_>) -> Result<Self, Damage> {
                let n: fn(&Reader<'_>) -> usize = $n;
                let n = n(from);
                from.id(n, $of)
            }
        }
    )*};
}

ids! {
    QueueId, "ClusterQueue", |from| from.names.queues.len();
    CohortId, "Cohort", |from| from.names.cohorts.len();
    LocalQueueId, "LocalQueue", |from| from.names.local_queues.len();
    FlavorId, "flavor", |from| from.names.flavors.len();
    NamespaceId, "namespace", |from| from.names.namespaces.len();
    ResourceId, "resource", |from| from.names.n_resources();
    FlavorResourceId, "flavor and resource", |from| from.names.n_flavor_resources();
}

/// How many ids there can be: one fewer where indices have 32 bits, as in WebAssembly.
const N_IDS: usize = (u32::MAX as usize).saturating_add(1);

/// An existing workload.
impl Stored for WorkloadId {
    fn write_to(&self, out: &mut Writer<'_>) {
        out.count(self.index());
    }

    fn read_from(from: &mut Reader<'_>) -> Result<Self, Damage> {
        let id = from.id(N_IDS, "workload")?;
        from.check(from.live.contains(id), "an unknown workload")?;
        Ok(id)
    }
}

impl Stored for ShapeId {
    fn write_to(&self, out: &mut Writer<'_>) {
        let shape = out.shapes[self.index()].expect("a shape in use is kept");
        out.put(Pool::Shapes, self.index(), |out| shape.write_to(out));
    }

    fn read_from(from: &mut Reader<'_>) -> Result<Self, Damage> {
        from.pooled(Pool::Shapes)
    }
}

/// As differences to the previous one.
impl<I: Id> Stored for IdSet<I> {
    fn write_to(&self, out: &mut Writer<'_>) {
        out.count(self.iter().count());
        let mut next = 0;
        for id in self.iter() {
            out.count(id.index() - next);
            next = id.index() + 1;
        }
    }

    fn read_from(from: &mut Reader<'_>) -> Result<Self, Damage> {
        let mut ids = IdSet::default();
        let mut next = 0;
        for _ in 0..from.count()? {
            let index = from.index(N_IDS - next, "id")? + next;
            ids.insert(I::from_index(index));
            next = index + 1;
        }
        Ok(ids)
    }
}
