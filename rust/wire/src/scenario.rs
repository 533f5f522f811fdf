//! What happens from outside in a run through time: one JSON object a line.

use std::borrow::Cow;

use kueuecore::decision::Key;
use kueuecore::gates::Gates;
use kueuecore::objects::Time;
use kueuecore::simulate::{Change, Happening, JobPlan, PodsPlan};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::decode::{Door, decode_with};
use crate::defaults::storing;
use crate::field_error::{FieldError, ObjectRef, Rejection};
use crate::intake::require_names;

const SECOND_NS: f64 = 1e9;

/// One line.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line<'a> {
    /// Seconds after the beginning.
    at: f64,
    #[serde(borrow)]
    op: Cow<'a, str>,
    #[serde(borrow)]
    object: Option<&'a RawValue>,
    #[serde(borrow)]
    key: Option<Cow<'a, str>>,
    run_seconds: Option<f64>,
    ready_seconds: Option<Vec<Option<f64>>>,
    fail_seconds: Option<f64>,
    recover_seconds: Option<f64>,
}

impl Line<'_> {
    fn job(&self) -> JobPlan {
        let pods = self.ready_seconds.as_ref().map(|ready| {
            Box::new(PodsPlan {
                ready_ns: ready.iter().map(|seconds| seconds.map(nanoseconds)).collect(),
                fails_ns: self.fail_seconds.map(nanoseconds),
                recovers_ns: self.recover_seconds.map(nanoseconds),
            })
        });
        JobPlan { run_ns: self.run_seconds.map(nanoseconds), pods }
    }
}

/// Reads `{at, op, object | key, runSeconds, readySeconds, failSeconds, recoverSeconds}`, one a line: `create` and `update` with an object, `finish` and `delete`
/// with the key `namespace/name` of a Workload. Times count from `start`.
///
/// # Errors
/// Every object that is refused, by its position among the lines with an object; a line that is none of the above.
pub fn happenings(data: &[u8], door: Door, gates: &Gates, start: Time) -> Result<Vec<Happening>, Vec<Rejection>> {
    let mut lines = Vec::new();
    let mut objects = Vec::new();
    for (index, line) in serde_json::Deserializer::from_slice(data).into_iter::<Line<'_>>().enumerate() {
        let line = line.map_err(|error| odd(index, "", &error.to_string()))?;
        if let Some(object) = line.object {
            objects.extend_from_slice(object.get().as_bytes());
            objects.push(b'\n');
        }
        lines.push(line);
    }
    let decoded = decode_with(&objects, door, gates)?;
    require_names(&decoded)?;
    let n_objects = lines.iter().filter(|line| line.object.is_some()).count();
    if decoded.objects.len() != n_objects {
        return Err(odd(0, "object", "an event needs exactly one object, of a kind that is read"));
    }
    let mut objects = decoded.objects.into_iter().map(|(object, _)| object);
    let happening = |(index, line): (usize, Line<'_>)| {
        let at = Time(start.0.saturating_add(nanoseconds(line.at)));
        let object = line.object.and_then(|_| objects.next());
        let job = line.job();
        let change = match (&*line.op, object, line.key.as_deref().and_then(key)) {
            ("create", Some(mut object), _) => {
                if door == Door::People {
                    storing(None, &mut object, at);
                }
                Change::Create { object: Box::new(object), job }
            }
            ("update", Some(object), _) => Change::Update(Box::new(object)),
            ("finish", None, Some(key)) => Change::Finish(key),
            ("delete", None, Some(key)) => Change::Delete(key),
            _ => {
                let detail = "must be create or update with an object, finish or delete with the key of a Workload";
                return Err(odd(index, "op", detail));
            }
        };
        Ok(Happening { at, change })
    };
    lines.into_iter().enumerate().map(happening).collect()
}

/// Saturates; a fraction of a nanosecond is rounded.
#[allow(clippy::cast_possible_truncation)]
fn nanoseconds(seconds: f64) -> i64 {
    (seconds * SECOND_NS).round() as i64
}

fn key(text: &str) -> Option<Key> {
    let (namespace, name) = text.split_once('/')?;
    Some(Key::new(namespace, name, ""))
}

fn odd(index: usize, path: &str, detail: &str) -> Vec<Rejection> {
    let errors = vec![FieldError::unshown(path, detail.to_owned())];
    vec![Rejection { index, object: ObjectRef::default(), errors, warnings: Vec::new() }]
}

#[cfg(test)]
mod tests {
    use kueuecore::objects::Object;

    use super::*;

    fn read(text: &str) -> Result<Vec<Happening>, String> {
        happenings(text.as_bytes(), Door::People, &Gates::default(), Time(1))
            .map_err(|rejections| rejections[0].errors[0].to_string())
    }

    #[test]
    fn times_count_from_the_beginning_in_fractions_of_seconds() {
        let read = read(r#"{"at": 1.5, "op": "finish", "key": "ns/w"} {"at": 0, "op": "delete", "key": "ns/w"}"#);
        let read = read.expect("two events");
        assert_eq!(read[0].at, Time(1_500_000_001));
        assert!(matches!(&read[1].change, Change::Delete(key) if key.name() == "w"));
    }

    #[test]
    fn a_new_workload_is_created_when_it_appears() {
        let object = r#"{"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload", "metadata": {"name": "w"},
            "spec": {"podSets": [{"count": 1, "template": {"spec": {"containers": [{"name": "c"}]}}}]}}"#;
        let line = format!(r#"{{"at": 7, "op": "create", "object": {object}, "runSeconds": 2}}"#);
        let read = read(&line).expect("a manifest");
        let Change::Create { object, job } = &read[0].change else { panic!("it is created") };
        let Object::Workload(workload) = &**object else { panic!("it is a Workload") };
        assert_eq!((workload.meta.created, job.run_ns), (Time(7_000_000_000), Some(2_000_000_000)));
    }

    #[test]
    fn odd_lines_are_refused() {
        for line in [
            r#"{"at": 1, "op": "finish", "key": "w"}"#,
            r#"{"at": 1, "op": "create", "key": "ns/w"}"#,
            r#"{"at": 1, "op": "stop", "key": "ns/w"}"#,
            r#"{"op": "finish", "key": "ns/w"}"#,
            r#"{"at": 1, "op": "create", "object": {"apiVersion": "apps/v1", "kind": "Deployment"}}"#,
        ] {
            assert!(read(line).is_err(), "{line}");
        }
    }
}
