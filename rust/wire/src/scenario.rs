//! External events of a simulation: one JSON object per line.

use std::borrow::Cow;
use std::collections::BTreeSet;

use kueuecore::base::key::Key;
use kueuecore::objects::config::Config;
use kueuecore::objects::{Kind, Time};
use kueuecore::simulate::{Change, Happening, JobPlan, NodeLoss, PodsPlan};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::decode::{Door, decode_with};
use crate::defaults::storing;
use crate::field_error::{FieldError, ObjectRef, Rejection};
use crate::intake::require_names;

const SECOND_NS: f64 = 1e9;
/// Nothing can happen at the end of time, where the engine's times saturate.
const END_NS: i64 = i64::MAX;
const ONE_SPAN: &str = "must be 0 or more seconds and end before April 2262, where 64 bits of nanoseconds end";
const ONE_LOSS: &str = "must be RunsOn, Waits or StartsOver";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Line<'a> {
    /// Seconds after the beginning.
    at: f64,
    #[serde(borrow)]
    op: Cow<'a, str>,
    #[serde(borrow)]
    object: Option<&'a RawValue>,
    #[serde(borrow)]
    key: Option<Cow<'a, str>>,
    /// Kind of the deleted object; absent: a Workload.
    #[serde(borrow)]
    kind: Option<Cow<'a, str>>,
    run_seconds: Option<f64>,
    ready_seconds: Option<Vec<Option<f64>>>,
    fail_seconds: Option<f64>,
    recover_seconds: Option<f64>,
    linger_seconds: Option<f64>,
    #[serde(borrow)]
    node_loss: Option<Cow<'a, str>>,
    save_seconds: Option<f64>,
    #[serde(default)]
    ends_failed: bool,
    done_seconds: Option<f64>,
}

impl Line<'_> {
    /// What the job does that appears at `at`; or the field with a wrong value, and what would be right.
    fn job(&self, at: Time) -> Result<JobPlan, (String, &'static str)> {
        let span = |field: &str, seconds: Option<f64>| {
            seconds.map(|it| span_from(at, it).ok_or_else(|| (field.to_owned(), ONE_SPAN))).transpose()
        };
        let run_ns = span("runSeconds", self.run_seconds)?;
        let fails_ns = span("failSeconds", self.fail_seconds)?;
        let recovers_ns = span("recoverSeconds", self.recover_seconds)?;
        let lingers_ns = span("lingerSeconds", self.linger_seconds)?;
        let done_ns = span("doneSeconds", self.done_seconds)?.unwrap_or_default();
        let saves_ns = span("saveSeconds", self.save_seconds)?;
        if saves_ns == Some(0) {
            return Err(("saveSeconds".to_owned(), "must be more than 0"));
        }
        let pods = match &self.ready_seconds {
            None => None,
            Some(ready) => {
                let ready = ready.iter().enumerate();
                let ready_ns = ready.map(|(index, &it)| span(&format!("readySeconds[{index}]"), it));
                Some(Box::new(PodsPlan { ready_ns: ready_ns.collect::<Result<_, _>>()?, fails_ns, recovers_ns }))
            }
        };
        let node_loss = match &self.node_loss {
            None => NodeLoss::default(),
            Some(name) => NodeLoss::from_name(name).ok_or_else(|| ("nodeLoss".to_owned(), ONE_LOSS))?,
        };
        Ok(JobPlan { run_ns, pods, lingers_ns, node_loss, saves_ns, ends_failed: self.ends_failed, done_ns })
    }
}

/// Reads `{at, op, object | key, kind, runSeconds, readySeconds, failSeconds, recoverSeconds, lingerSeconds, nodeLoss,
/// saveSeconds, endsFailed, doneSeconds}`, one per line: `create` and `update` with an object, `finish` and `delete`
/// with the key `namespace/name` of a Workload, `delete` also with `kind` and key of another object. Times count from
/// `start`. `watched`: the kinds besides Kueue's that the caller uses.
///
/// # Errors
/// Every rejected object, by its position among the lines with an object; a line that is none of the above.
pub fn happenings(
    data: &[u8],
    door: Door,
    config: &Config,
    start: Time,
    watched: &[String],
) -> Result<Vec<Happening>, Vec<Rejection>> {
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
    let decoded = decode_with(&objects, door, config)?;
    require_names(&decoded)?;
    let n_objects = lines.iter().filter(|line| line.object.is_some()).count();
    let is_read = decoded.foreign.iter().all(|foreign| watched.contains(&foreign.kind));
    if !is_read || decoded.objects.len() + decoded.foreign.len() != n_objects {
        return Err(odd(0, "object", "an event needs exactly one object, of a kind that is read"));
    }
    let foreign: BTreeSet<usize> = decoded.foreign.iter().map(|foreign| foreign.index).collect();
    let mut objects = decoded.objects.into_iter().map(|(object, _)| object);
    let mut objects = (0..n_objects).map(|index| if foreign.contains(&index) { None } else { objects.next() });
    let happening = |(index, line): (usize, Line<'_>)| {
        let object = line.object.and_then(|_| objects.next());
        let is_watched = object == Some(None);
        let object = object.flatten();
        let Some(at_ns) = span_from(start, line.at) else { return Err(odd(index, "at", ONE_SPAN)) };
        let at = Time(start.0 + at_ns);
        let job = line.job(at).map_err(|(field, detail)| odd(index, &field, detail))?;
        // An empty key is an error next to an object, too.
        if let ("delete", Some(kind), Some(named), None) = (&*line.op, &line.kind, &line.key, &object) {
            let Some(kind) = Kind::kept(kind) else {
                return Err(odd(index, "kind", "must be a kind that is read"));
            };
            let (namespace, name) = named.split_once('/').unwrap_or(("", named));
            let (namespace, name) = (namespace.to_owned(), name.to_owned());
            return Ok(Happening { at, change: Change::Remove { kind, namespace, name } });
        }
        let key = line.key.as_deref().map(|text| key(text).ok_or(()));
        let change = match (&*line.op, object, key) {
            ("create", Some(mut object), None) => {
                if door == Door::People {
                    storing(None, &mut object, at);
                }
                Change::Create { object: Box::new(object), job }
            }
            ("update", Some(object), None) => Change::Update(Box::new(object)),
            ("create" | "update", None, None) if is_watched => Change::Watch,
            ("finish", None, Some(Ok(key))) => Change::Finish(key),
            ("delete", None, Some(Ok(key))) => Change::Delete(key),
            _ => {
                let detail = "must be create or update with an object, finish or delete with the key of a Workload";
                return Err(odd(index, "op", detail));
            }
        };
        Ok(Happening { at, change })
    };
    lines.into_iter().enumerate().map(happening).collect()
}

/// Reads an event with a key for the object: which workload was created otherwise, and what its job does.
///
/// # Errors
/// It is not such an event.
pub fn created(data: &[u8], start: Time) -> Result<(Key, JobPlan), Vec<Rejection>> {
    let line: Line<'_> = serde_json::from_slice(data).map_err(|error| odd(0, "", &error.to_string()))?;
    let key = line.key.as_deref().and_then(key).ok_or_else(|| odd(0, "key", "must be namespace/name"))?;
    let job = line.job(start).map_err(|(field, detail)| odd(0, &field, detail))?;
    Ok((key, job))
}

/// Seconds after `begin` as rounded nanoseconds; `None` if negative, NaN or past the end of time.
#[allow(clippy::cast_possible_truncation)]
fn span_from(begin: Time, seconds: f64) -> Option<i64> {
    // What does not fit saturates, and the addition then overflows.
    let span_ns = (seconds * SECOND_NS).round() as i64;
    let is_within = begin.0.checked_add(span_ns).is_some_and(|end| end < END_NS);
    (seconds >= 0.0 && is_within).then_some(span_ns)
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
        happenings(text.as_bytes(), Door::People, &Config::default(), Time(1), &[])
            .map_err(|rejections| rejections[0].errors[0].to_string())
    }

    #[test]
    fn times_end_with_64_bits() {
        let line = r#"{"at": 9e9, "op": "finish", "key": "ns/w"}"#;
        assert!(read(line).is_ok(), "from 1970");
        let refused =
            happenings(line.as_bytes(), Door::People, &Config::default(), Time(1_767_225_600_000_000_000), &[]);
        assert!(refused.expect_err("from 2026")[0].to_string().contains("end before April 2262"));
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
    fn invalid_or_overflowing_spans_are_rejected_by_field() {
        for (fields, path) in [
            (r#""at": -1, "op": "finish""#, "at"),
            (r#""at": 1e10, "op": "finish""#, "at"),
            (r#""at": 1, "op": "finish", "runSeconds": -0.5"#, "runSeconds"),
            (r#""at": 9e9, "op": "finish", "runSeconds": 9e9"#, "runSeconds"),
            (r#""at": 1, "op": "finish", "readySeconds": [0, null, 1e300]"#, "readySeconds[2]"),
            (r#""at": 1, "op": "finish", "failSeconds": 9.3e9"#, "failSeconds"),
            (r#""at": 1, "op": "finish", "recoverSeconds": 9.3e9"#, "recoverSeconds"),
            (r#""at": 1, "op": "finish", "saveSeconds": 0"#, "saveSeconds"),
            (r#""at": 1, "op": "finish", "doneSeconds": -1"#, "doneSeconds"),
        ] {
            let error = read(&format!(r#"{{{fields}, "key": "ns/w"}}"#)).expect_err(fields);
            assert_eq!(error.split(':').next(), Some(path), "{error}");
        }
        assert!(read(r#"{"at": 9e9, "op": "finish", "key": "ns/w"}"#).is_ok());
    }

    #[test]
    fn odd_lines_are_refused() {
        for line in [
            r#"{"at": 1, "op": "finish", "key": "w"}"#,
            r#"{"at": 1, "op": "create", "key": "ns/w"}"#,
            r#"{"at": 1, "op": "create", "key": "", "object": {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}}}"#,
            r#"{"at": 1, "op": "finish", "key": "ns/w", "runSecond": 5}"#,
            r#"{"at": 1, "op": "stop", "key": "ns/w"}"#,
            r#"{"op": "finish", "key": "ns/w"}"#,
            r#"{"at": -1, "op": "finish", "key": "ns/w"}"#,
            r#"{"at": 1e10, "op": "finish", "key": "ns/w"}"#,
            r#"{"at": 1, "op": "finish", "key": "ns/w", "runSeconds": -0.5}"#,
            r#"{"at": 1, "op": "finish", "key": "ns/w", "failSeconds": -1}"#,
            r#"{"at": 1, "op": "finish", "key": "ns/w", "recoverSeconds": -1}"#,
            r#"{"at": 1, "op": "finish", "key": "ns/w", "readySeconds": [1, null, -1]}"#,
            r#"{"at": 1, "op": "finish", "key": "ns/w", "nodeLoss": "waits"}"#,
            r#"{"at": 1, "op": "create", "object": {"apiVersion": "apps/v1", "kind": "Deployment"}}"#,
        ] {
            assert!(read(line).is_err(), "{line}");
        }
    }
}
