//! Stores one object as an API server with Kueue's webhooks does, or says who refuses it and why.

use kueuecore::objects::config::Config;
use serde_json::Value;

use crate::decode::Manifest;
use crate::defaults;
use crate::field_error::FieldError;
use crate::kinds::Kind;
use crate::validate;

/// An object as it is stored.
#[derive(Clone, Debug, PartialEq)]
pub struct Stored {
    /// The object in the preferred version, without what the server itself sets (UID, times, versions).
    pub object: Value,
    /// Fields that were ignored, by their paths, and why.
    pub warnings: Vec<(String, String)>,
}

/// Who refuses an object, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Is it Kueue's validating webhook? Else it is the schema of the kind.
    pub by_webhook: bool,
    /// At least one error.
    pub errors: Vec<FieldError>,
    /// Fields that were ignored, by their paths, and why.
    pub warnings: Vec<(String, String)>,
}

/// Admits or refuses an object that is created, or that replaces `old`, by the gates and changes of `config`.
///
/// # Errors
/// The object is refused; `old` counts as stored, and is refused only if it cannot be read.
pub fn admit(kind: Kind, new: (&str, &str), old: Option<(&str, &str)>, config: &Config) -> Result<Stored, Refused> {
    let refused = |by_webhook, errors| Refused { by_webhook, errors, warnings: Vec::new() };
    let by_schema = |error| refused(false, vec![error]);
    let (api_version, text) = new;
    let mut manifest = Manifest::prepare(text, kind, api_version, config.changes).map_err(by_schema)?;
    let warnings = std::mem::take(&mut manifest.warnings);
    let with_warnings = |refused: Refused| Refused { warnings: warnings.clone(), ..refused };
    if old.is_none() {
        defaults::webhooks(kind, &mut manifest.value, &config.gates);
    }
    manifest.check().map_err(|errors| with_warnings(refused(false, errors)))?;
    manifest.convert();
    let object = manifest.read().map_err(|error| with_warnings(by_schema(error)))?;
    let (of_schema, of_webhook) = match old {
        None => (Vec::new(), validate::create(&object, config)),
        Some((api_version, text)) => {
            let mut old = Manifest::prepare(text, kind, api_version, config.changes).map_err(by_schema)?;
            old.convert();
            let old = old.read().map_err(by_schema)?;
            let of_schema = validate::update_schema(&old, &object, config.changes);
            (of_schema, validate::update_webhook(&old, &object, config))
        }
    };
    match () {
        () if !of_schema.is_empty() => Err(with_warnings(refused(false, of_schema))),
        () if !of_webhook.is_empty() => Err(with_warnings(refused(true, of_webhook))),
        () => Ok(Stored { object: manifest.value, warnings }),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const V1BETA2: &str = "kueue.x-k8s.io/v1beta2";

    fn created(kind: Kind, api_version: &str, object: &Value) -> Result<Stored, Refused> {
        admit(kind, (api_version, &object.to_string()), None, &Config::default())
    }

    #[test]
    fn a_new_cluster_queue_gets_defaults_and_a_finalizer() {
        let queue = json!({"apiVersion": V1BETA2, "kind": "ClusterQueue", "metadata": {"name": "q"}, "spec": {"x": 1}});
        let stored = created(Kind::ClusterQueue, V1BETA2, &queue).expect("it is valid");
        assert_eq!(stored.object["metadata"]["finalizers"], json!(["kueue.x-k8s.io/resource-in-use"]));
        assert_eq!(stored.object["spec"]["stopPolicy"], "None");
        assert_eq!(stored.warnings, [("spec.x".to_owned(), "unknown field \"spec.x\"".to_owned())]);
        let again = created(Kind::ClusterQueue, V1BETA2, &stored.object).expect("it is valid");
        assert_eq!(again.object, stored.object);
    }

    #[test]
    fn the_schema_comes_before_the_webhook() {
        let queue = |mode: &str, weight: &str| {
            json!({"apiVersion": V1BETA2, "kind": "ClusterQueue", "metadata": {"name": "q"},
                   "spec": {"stopPolicy": mode, "fairSharing": {"weight": weight}}})
        };
        let refused = created(Kind::ClusterQueue, V1BETA2, &queue("Sometimes", "-1")).expect_err("it is wrong");
        assert!(!refused.by_webhook);
        let refused = created(Kind::ClusterQueue, V1BETA2, &queue("None", "-1")).expect_err("it is wrong");
        assert!(refused.by_webhook);
        assert_eq!(refused.errors[0].path, "spec.fairSharing");
    }

    #[test]
    fn an_older_version_is_stored_as_the_newest() {
        let queue = json!({"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "ClusterQueue", "metadata": {"name": "q"},
                           "spec": {"cohort": "all"}});
        let stored = created(Kind::ClusterQueue, "kueue.x-k8s.io/v1beta1", &queue).expect("it is valid");
        assert_eq!(stored.object["apiVersion"], V1BETA2);
        assert_eq!(stored.object["spec"]["cohortName"], "all");
    }

    #[test]
    fn what_may_not_change_is_refused_by_the_schema_or_by_the_webhook() {
        let queue = |cluster_queue: &str| {
            json!({"apiVersion": V1BETA2, "kind": "LocalQueue", "metadata": {"name": "q", "namespace": "n"},
                   "spec": {"clusterQueue": cluster_queue}})
            .to_string()
        };
        let changed = |kind, new: &str, old: &str| {
            admit(kind, (V1BETA2, new), Some((V1BETA2, old)), &Config::default()).map(|_| ())
        };
        let refused = changed(Kind::LocalQueue, &queue("b"), &queue("a")).expect_err("it may not change");
        assert!(!refused.by_webhook);
        assert_eq!(changed(Kind::LocalQueue, &queue("a"), &queue("a")), Ok(()));
        let policy = |mode: &str| {
            json!({"apiVersion": V1BETA2, "kind": "ClusterQueue", "metadata": {"name": "q"},
                   "spec": {"concurrentAdmissionPolicy": {"migration": {"mode": mode}}}})
            .to_string()
        };
        let (new, old) = (policy("RetainFirstAdmission"), policy("TryPreferredFlavors"));
        assert!(changed(Kind::ClusterQueue, &new, &old).expect_err("it may not change").by_webhook);
    }
}
