//! Totals and devices as bytes ([`crate::snapshot`]).

use std::sync::Arc;

use super::devices::{Devices, Refusal};
use super::totals::{DeviceRequests, Totals};
use crate::snapshot::{Damage, Pool, Pooled, Reader, Stored, Writer, pooled, stored};

stored!(struct Totals { count, requests, flavors });
stored!(struct DeviceRequests { added, replaced });
stored!(struct Refusal { message, requeued_message });
stored!(enum Devices { 0 = Charged(requests), 1 = Refused(refusal), 2 = Undecided { field, message } });

pooled! {
    Arc<Devices>: Devices,
}

impl Pooled for Arc<[Totals]> {
    const POOL: Pool = Pool::Totals;

    fn read_part(from: &mut Reader<'_>) -> Result<Self, Damage> {
        from.list(Totals::read_from).map(Arc::from)
    }
}

impl Stored for Arc<[Totals]> {
    fn write_to(&self, out: &mut Writer<'_>) {
        out.put(Pool::Totals, self.as_ptr() as usize, |out| out.list(self.iter()));
    }

    fn read_from(from: &mut Reader<'_>) -> Result<Self, Damage> {
        from.pooled(Pool::Totals)
    }
}
