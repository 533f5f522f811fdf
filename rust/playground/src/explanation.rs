//! What `kueuecore explain -o json` writes, without the sentences that Python makes of it: `obstacles`, `why`, `whyAhead`.

use kueuecore::engine::Engine;
use kueuecore::objects::Time;
use kueuecore_wire::{explain, report};
use serde_json::Value;

use crate::document::head;
use crate::json::{Json, items, ordered, text_at};

const TRIAL: [&str; 6] = ["flavor", "mode", "isChosen", "borrowingLevel", "preemption", "reasons"];
const ASKED: [&str; 4] = ["resource", "amount", "potential", "verdict"];
const LEVEL: [&str; 11] = [
    "kind",
    "name",
    "nominal",
    "borrowingLimit",
    "lendingLimit",
    "subtreeQuota",
    "usage",
    "needed",
    "available",
    "missing",
    "binds",
];

/// Why the workload `namespace/name` waits, or where it would go now; `None` if there is no such workload.
pub fn explanation(engine: &mut Engine, key: &str, now: Time) -> Option<Json> {
    let (namespace, name) = key.split_once('/')?;
    let id = engine.state.workloads.find(namespace, name)?;
    let row = report::workload_row(&engine.state, id);
    let found = engine.explain(namespace, name, now)?;
    let explained = explain::explanation(&found);
    let own = |field: &'static str, of: &str| (field, Json::Plain(row[of].clone()));
    let mut fields = head(now);
    fields.extend([
        (
            "workload",
            Json::Object(vec![
                own("namespace", "namespace"),
                own("name", "name"),
                own("status", "stage"),
                own("clusterQueue", "clusterQueue"),
                own("reason", "reason"),
                own("message", "message"),
            ]),
        ),
        ("would", Json::from(found.what_if.outcome.name())),
        ("reason", Json::from(found.what_if.reason.as_str())),
        ("message", Json::from(found.what_if.message.as_str())),
        ("podSets", items(&explained["podSets"]).iter().map(pod_set).collect()),
        ("searches", items(&explained["searches"]).iter().map(search).collect()),
    ]);
    Some(Json::Object(fields))
}

fn pod_set(pod_set: &Value) -> Json {
    let field = |name: &'static str| (name, Json::Plain(pod_set[name].clone()));
    let flavors = items(&pod_set["trials"]).iter().map(|trial| {
        let asked = items(&trial["asked"]).iter().map(|asked| {
            let levels = items(&asked["levels"]).iter().map(|level| ordered(level, &LEVEL)).collect();
            let kept = items(&asked["kept"]).iter().map(|kept| ordered(kept, &["kind", "name", "free"])).collect();
            with(ordered(asked, &ASKED), [("levels", levels), ("kept", kept)])
        });
        with(ordered(trial, &TRIAL), [("asked", asked.collect())])
    });
    Json::Object(vec![
        field("index"),
        field("reasons"),
        field("notTried"),
        field("unavailable"),
        ("flavors", flavors.collect()),
    ])
}

fn search(search: &Value) -> Json {
    let pair =
        |it: &Value| Json::Object(vec![("flavor", Json::from(it[0].clone())), ("resource", Json::from(it[1].clone()))]);
    let holders = items(&search["holders"]).iter().map(|holder| {
        let uses = items(&holder["uses"]).iter().map(|it| with(pair(it), [("amount", Json::from(it[2].clone()))]));
        with(
            ordered(holder, &["namespace", "name", "clusterQueue", "priority"]),
            [("uses", uses.collect()), ("verdict", Json::from(text_at(holder, &["fate"])))],
        )
    });
    Json::Object(vec![
        ("contested", items(&search["contested"]).iter().map(pair).collect()),
        ("isFound", Json::Plain(search["isFound"].clone())),
        ("asksForPlace", Json::Plain(search["asksForPlace"].clone())),
        ("holders", holders.collect()),
    ])
}

fn with<const N: usize>(object: Json, more: [(&'static str, Json); N]) -> Json {
    match object {
        Json::Object(mut fields) => {
            fields.extend(more);
            Json::Object(fields)
        }
        other => other,
    }
}
