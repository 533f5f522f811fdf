//! A batch on its way into an engine: decoded, then defaulted and checked against the engine's objects.

use std::collections::BTreeMap;

use kueuecore::engine::Engine;
use kueuecore::objects::{Object, Time};

use crate::decode::{Decoded, Door, add_warnings, decode_with};
use crate::defaults::storing;
use crate::field_error::{FieldError, Rejection, object_ref};
use crate::kinds::names_of;
use crate::validate;

/// Reads a batch that is about to be applied to an engine at `now`; nothing changes yet. At [`Door::People`] the
/// objects are stored one by one, as by an API server with Kueue's webhooks: fields are filled in, and changes of
/// immutable fields are refused, also of an object that came earlier in the batch.
///
/// # Errors
/// Every rejected object with all its errors.
///
/// ```
/// use kueuecore::engine::Engine;
/// use kueuecore::objects::Time;
/// use kueuecore_wire::decode::Door;
/// use kueuecore_wire::intake::intake;
///
/// let mut engine = Engine::default();
/// let flavor = br#"{"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ResourceFlavor", "metadata": {"name": "spot"}}"#;
/// let read = intake(&engine, flavor, Door::People, Time(0)).expect("a flavor");
/// engine.apply(read.objects.into_iter().map(|(object, _)| object).collect(), Time(0));
/// ```
pub fn intake(engine: &Engine, data: &[u8], door: Door, now: Time) -> Result<Decoded, Vec<Rejection>> {
    let mut decoded = decode_with(data, door, &engine.state.config)?;
    require_names(&decoded)?;
    if door == Door::People {
        store(engine, &mut decoded, now)?;
    }
    Ok(decoded)
}

/// Objects are identified by name, and nothing generates names here.
///
/// # Errors
/// Every object without a name, of a kind that is kept.
pub(crate) fn require_names(decoded: &Decoded) -> Result<(), Vec<Rejection>> {
    // A pod that is not bound yet takes no room: it either belongs to a Workload or does not matter here.
    let may_be_unnamed = |object: &Object| match object {
        Object::Pod(pod) => pod.node_name.is_empty(),
        Object::ProvisioningRequestConfig(_)
        | Object::MultiKueueConfig(_)
        | Object::MultiKueueCluster(_)
        | Object::PreemptionConfig(_) => true,
        _ => false,
    };
    let is_unnamed = |object: &Object| names_of(object).1.is_empty() && !may_be_unnamed(object);
    let unnamed = decoded.objects.iter().filter(|(object, _)| is_unnamed(object));
    let rejections = unnamed.map(|(object, index)| {
        let detail = "give a name: only an API server makes one up for generateName";
        let errors = vec![FieldError::required("metadata.name", detail)];
        Rejection { index: *index, object: object_ref(object), errors, warnings: Vec::new() }
    });
    refused(rejections.collect(), decoded)
}

fn refused(mut rejections: Vec<Rejection>, decoded: &Decoded) -> Result<(), Vec<Rejection>> {
    add_warnings(&mut rejections, &decoded.warnings);
    if rejections.is_empty() { Ok(()) } else { Err(rejections) }
}

fn store(engine: &Engine, decoded: &mut Decoded, now: Time) -> Result<(), Vec<Rejection>> {
    let config = &engine.state.config;
    let mut rejections = Vec::new();
    let mut earlier: BTreeMap<(String, String, String), usize> = BTreeMap::new();
    for position in 0..decoded.objects.len() {
        let (before, rest) = decoded.objects.split_at_mut(position);
        let (object, index) = &mut rest[0];
        let reference = object_ref(object);
        let key = (reference.kind.clone(), reference.namespace.clone(), reference.name.clone());
        let old = earlier.insert(key, position).map(|position| before[position].0.clone());
        let old = old.or_else(|| engine.stored(object));
        storing(old.as_ref(), object, now);
        let errors = old.map(|old| validate::update(&old, object, config)).unwrap_or_default();
        if !errors.is_empty() {
            rejections.push(Rejection { index: *index, object: reference, errors, warnings: Vec::new() });
        }
    }
    refused(rejections, decoded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_need_a_name() {
        let workload = r#"{"apiVersion":"kueue.x-k8s.io/v1beta2","kind":"Workload","metadata":{"generateName":"w-"},
            "spec":{"podSets":[{"count":1,"template":{"spec":{"containers":[{"name":"c"}]}}}]}}"#;
        for door in [Door::People, Door::Trusted] {
            let refused = intake(&Engine::default(), workload.as_bytes(), door, Time(0)).expect_err("it has no name");
            let text = "Workload (object 0) is invalid: metadata.name: Required value: give a name: only an API server \
                        makes one up for generateName";
            assert_eq!(refused[0].to_string(), text);
        }
    }

    #[test]
    fn only_bound_pods_need_a_name() {
        let pod = |spec: &str| {
            let containers = r#""containers":[{"name":"c"}]"#;
            let metadata = r#"{"generateName":"p-","namespace":"n"}"#;
            format!(r#"{{"apiVersion":"v1","kind":"Pod","metadata":{metadata},"spec":{{{containers}{spec}}}}}"#)
        };
        for door in [Door::People, Door::Trusted] {
            let mut engine = Engine::default();
            let read = intake(&engine, pod("").as_bytes(), door, Time(0)).expect("it is not bound");
            engine.apply(read.objects.into_iter().map(|(object, _)| object).collect(), Time(0));
            assert!(engine.state.nodes.cluster.pod("n", "").is_none());
            let refused =
                intake(&engine, pod(r#","nodeName":"n1""#).as_bytes(), door, Time(0)).expect_err("it is bound");
            assert_eq!(refused[0].errors[0].path, "metadata.name");
        }
    }
}
