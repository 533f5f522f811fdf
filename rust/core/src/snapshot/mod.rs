//! Serializes values for the snapshot of an engine ([`crate::engine::save`]), or of a run with its engine.
//!
//! A type's writing and reading code are side by side, mostly in one line of [`stored!`]: a missing field does not
//! compile. Equal values give equal bytes: nothing depends on addresses, the order of a hash map, or how much was
//! shared. Equal shared parts are written once, into [pools](Pool), and are shared again after reading.
//!
//! Input may be any bytes: reading validates everything, needs memory in proportion to the bytes, and fails with
//! [`Damage`] if they are not a value.

mod basic;
mod envelope;
mod names;
mod reader;
mod writer;

pub(crate) use envelope::Format;
pub use envelope::LoadError;
pub(crate) use reader::Reader;
pub(crate) use writer::Writer;

use thiserror::Error;

/// A value that can be written and read back.
pub(crate) trait Stored {
    /// Writes the value.
    fn write_to(&self, out: &mut Writer<'_>);

    /// Reads a value.
    ///
    /// # Errors
    /// [`Damage`]: the bytes are not such a value.
    fn read_from(from: &mut Reader<'_>) -> Result<Self, Damage>
    where
        Self: Sized;
}

/// An error in bytes that are read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("byte {at}: {what}")]
pub struct Damage {
    pub at: usize,
    pub what: String,
}

/// A handle on a value in a pool.
pub(crate) trait Pooled: Clone + 'static {
    const POOL: Pool;

    /// Reads a value of the pool.
    fn read_part(from: &mut Reader<'_>) -> Result<Self, Damage>;
}

/// Where equal parts are stored once. A part refers only to parts of earlier pools, and pools are read in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pool {
    Texts,
    Details,
    PriorityClasses,
    NameLists,
    PodSets,
    Requests,
    Assignments,
    Admissions,
    RareStatuses,
    Misfits,
    Considered,
    Preemptions,
    Statuses,
    Totals,
    Charges,
    Devices,
    Labels,
    Flavors,
    ClusterQueues,
    Cohorts,
    LocalQueues,
    Specs,
    Shapes,
}

impl Pool {
    /// Number of pools.
    pub const COUNT: usize = Pool::Shapes as usize + 1;
}

/// Implements [`Stored`]: lists the fields of a struct in order, or the numbers of an enum's variants.
macro_rules! stored {
    (struct $name:ty { $($field:ident),* $(,)? }) => {
        impl $crate::snapshot::Stored for $name {
            fn write_to(&self, out: &mut $crate::snapshot::Writer<'_>) {
                let Self { $($field),* } = self;
                $($crate::snapshot::Stored::write_to($field, out);)*
            }

            fn read_from(from: &mut $crate::snapshot::Reader<'_>) -> Result<Self, $crate::snapshot::Damage> {
                Ok(Self { $($field: $crate::snapshot::Stored::read_from(from)?),* })
            }
        }
    };
    (enum $name:ident { $($tag:literal = $variant:ident $(($($item:ident),*))? $({ $($field:ident),* })?),* $(,)? }) => {
        impl $crate::snapshot::Stored for $name {
            fn write_to(&self, out: &mut $crate::snapshot::Writer<'_>) {
                match self {
                    $(Self::$variant $(($($item),*))? $({ $($field),* })? => {
                        out.byte($tag);
                        $($($crate::snapshot::Stored::write_to($item, out);)*)?
                        $($($crate::snapshot::Stored::write_to($field, out);)*)?
                    })*
                }
            }

            fn read_from(from: &mut $crate::snapshot::Reader<'_>) -> Result<Self, $crate::snapshot::Damage> {
                match from.byte()? {
                    $($tag => {
                        $($(let $item = $crate::snapshot::Stored::read_from(from)?;)*)?
                        $($(let $field = $crate::snapshot::Stored::read_from(from)?;)*)?
                        Ok(Self::$variant $(($($item),*))? $({ $($field),* })?)
                    })*
                    other => Err(from.damage(format!(concat!(stringify!($name), " has no variant {}"), other))),
                }
            }
        }
    };
}

/// Implements [`Stored`] for handles, which are written as indexes into their pool.
macro_rules! pooled {
    ($($handle:ty: $pool:ident),* $(,)?) => {$(
        impl $crate::snapshot::Pooled for $handle {
            const POOL: $crate::snapshot::Pool = $crate::snapshot::Pool::$pool;

            fn read_part(from: &mut $crate::snapshot::Reader<'_>) -> Result<Self, $crate::snapshot::Damage> {
                let value: <$handle as std::ops::Deref>::Target = $crate::snapshot::Stored::read_from(from)?;
                Ok(value.into())
            }
        }

        impl $crate::snapshot::Stored for $handle {
            fn write_to(&self, out: &mut $crate::snapshot::Writer<'_>) {
                let address = (&raw const **self).cast::<u8>() as usize;
                out.put($crate::snapshot::Pool::$pool, address, |out| (**self).write_to(out));
            }

            fn read_from(from: &mut $crate::snapshot::Reader<'_>) -> Result<Self, $crate::snapshot::Damage> {
                from.pooled($crate::snapshot::Pool::$pool)
            }
        }
    )*};
}

pub(crate) use {pooled, stored};

#[cfg(test)]
mod tests;
