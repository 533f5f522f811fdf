//! What taking in objects reports: warnings, and objects that are not Kueue's.

use kueuecore_wire::decode::{Decoded, Door};

/// Warnings as (index, kind, namespace, name, field, message), foreign objects as (index, apiVersion, kind, namespace,
/// name).
pub type Report = (Vec<(usize, String, String, String, String, String)>, Vec<(usize, String, String, String, String)>);

pub fn report_of(decoded: &Decoded) -> Report {
    let warnings = decoded.warnings.iter().map(|w| {
        let object = w.object.clone();
        (w.index, object.kind, object.namespace, object.name, w.field.clone(), w.message.clone())
    });
    let foreign = decoded.foreign.iter().map(|f| {
        let f = f.clone();
        (f.index, f.api_version, f.kind, f.namespace, f.name)
    });
    (warnings.collect(), foreign.collect())
}

/// How strictly objects are taken.
pub fn door(trusted: bool) -> Door {
    if trusted { Door::Trusted } else { Door::People }
}
