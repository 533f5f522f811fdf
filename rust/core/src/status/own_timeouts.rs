//! The timeouts for its pods that a workload has of its own, in an annotation (rules/07 §6).

use crate::objects::Workload;
use crate::objects::config::WaitForPodsReady;

const ANNOTATION: &str = "kueue.x-k8s.io/wait-for-pods-ready";
const SECOND_NS: i64 = 1_000_000_000;

/// The configuration with the timeouts of a workload; `None`: it has none, or they cannot be read.
pub(crate) fn with_own_timeouts(workload: &Workload, config: &WaitForPodsReady) -> Option<WaitForPodsReady> {
    let (timeout, recovery) = read(workload.meta.details.annotations.get(ANNOTATION)?)?;
    let mut own = config.clone();
    if let Some(seconds) = timeout {
        own.timeout_ns = seconds.saturating_mul(SECOND_NS);
        own.recovery_timeout_ns = Some(own.timeout_ns);
    }
    if let Some(seconds) = recovery {
        // Zero turns the recovery timeout off.
        own.recovery_timeout_ns = Some(seconds.saturating_mul(SECOND_NS)).filter(|&ns| ns != 0);
    }
    Some(own)
}

/// Reads an object of whole numbers, as `{"timeoutSeconds": 30, "recoveryTimeoutSeconds": 40}`.
fn read(text: &str) -> Option<(Option<i64>, Option<i64>)> {
    let fields = text.trim().strip_prefix('{')?.strip_suffix('}')?.trim();
    let (mut timeout, mut recovery) = (None, None);
    for field in fields.split(',').filter(|_| !fields.is_empty()) {
        let (key, value) = field.split_once(':')?;
        let seconds = value.trim().parse::<i64>().ok()?;
        match key.trim() {
            "\"timeoutSeconds\"" if seconds > 0 => timeout = Some(seconds),
            "\"recoveryTimeoutSeconds\"" if seconds >= 0 => recovery = Some(seconds),
            _ => return None,
        }
    }
    Some((timeout, recovery))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_seconds_are_read() {
        for (text, expected) in [
            (r#"{"timeoutSeconds": 30, "recoveryTimeoutSeconds": 40}"#, Some((Some(30), Some(40)))),
            (r#" {"recoveryTimeoutSeconds":0} "#, Some((None, Some(0)))),
            (r#"{"timeoutSeconds":30}"#, Some((Some(30), None))),
            ("{}", Some((None, None))),
            ("", None),
            ("30", None),
            (r#"{"timeoutSeconds": 0}"#, None),
            (r#"{"timeoutSeconds": "30"}"#, None),
            (r#"{"timeoutSeconds": 1.5}"#, None),
            (r#"{"timeout": 30}"#, None),
        ] {
            assert_eq!(read(text), expected, "{text}");
        }
    }
}
