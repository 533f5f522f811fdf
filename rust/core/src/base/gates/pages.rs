//! What is written from the table: `docs/feature-gates.md`, and the table of releases that Python reads.

use super::super::changes;
use super::super::releases::{Release, json_text};
use super::State;
use super::table::{Row, TABLE};

/// The table of all gates as Markdown.
fn markdown() -> String {
    let releases: Vec<Release> = Release::newest().collect();
    let heads: Vec<String> = releases.iter().map(Release::to_string).collect();
    let mut page = String::from(
        "# Feature gates\n\n\
         Kueue's feature gates with their defaults in each release that kueuecore follows, each in its newest patch;\n\
         rules/11 §4 says more about each. `-`: the release has no such gate; *on*: what it turns on is always on there.\n\
         A gate that is on while one that it needs is off is an error. `AllAlpha` and `AllBeta` set every gate of\n\
         their stage that is not named itself.\n\n",
    );
    page.push_str(&format!("| Gate | {} | Stage | Needs | When on |\n", heads.join(" | ")));
    page.push_str(&format!("|---|{}---|---|---|\n", "---|".repeat(releases.len())));
    for row in &TABLE {
        let mut newest_stage = "gone";
        let cells: Vec<&str> = releases
            .iter()
            .map(|&release| match row.gate.state(release) {
                State::Known { stage, default, locked } => {
                    newest_stage = stage.name();
                    match (default, locked) {
                        (true, false) => "on",
                        (true, true) => "on, locked",
                        (false, false) => "off",
                        (false, true) => "off, locked",
                    }
                }
                State::Absent { on, remedy } => {
                    newest_stage = if remedy.is_empty() { newest_stage } else { "gone" };
                    if on { "*on*" } else { "-" }
                }
            })
            .collect();
        let needs = row.needs.iter().map(|gate| gate.name()).collect::<Vec<_>>().join(", ");
        let (name, what) = (row.name, row.what);
        page.push_str(&format!("| {name} | {} | {newest_stage} | {needs} | {what} |\n", cells.join(" | ")));
    }
    page
}

/// A gate as JSON: name, needs, what it does, and its history.
fn json(row: &Row) -> String {
    let past = row.history.iter().map(|(since, state)| {
        let since = json_text(&since.to_string());
        match state {
            State::Known { stage, default, locked } => {
                format!(r#"[{since}, {}, {default}, {locked}, ""]"#, json_text(stage.name()))
            }
            State::Absent { on, remedy } => format!(r#"[{since}, "", {on}, true, {}]"#, json_text(remedy)),
        }
    });
    let needs: Vec<String> = row.needs.iter().map(|gate| json_text(gate.name())).collect();
    format!(
        r#"{{"name": {}, "history": [{}], "needs": [{}], "what": {}}}"#,
        json_text(row.name),
        past.collect::<Vec<_>>().join(", "),
        needs.join(", "),
        json_text(row.what),
    )
}

/// All releases, gates and changes, one a line.
fn table_of_releases() -> String {
    let releases = Release::all().map(|it| {
        let commit = json_text(it.commit().unwrap_or_default());
        format!(r#"{{"name": {}, "line": {}, "commit": {commit}}}"#, json_text(&it.to_string()), json_text(&it.line()))
    });
    let part = |name: &str, rows: Vec<String>| format!("{}: [\n{}\n]", json_text(name), rows.join(",\n"));
    let parts = [
        part("releases", releases.collect()),
        part("gates", TABLE.iter().map(json).collect()),
        part("changes", changes::json()),
    ];
    format!("{{\n{}\n}}\n", parts.join(",\n"))
}

#[test]
fn files_show_the_table() {
    for (file, text) in
        [("docs/feature-gates.md", markdown()), ("python/kueuecore/releases/table.json", table_of_releases())]
    {
        let path = format!("{}/../../{file}", env!("CARGO_MANIFEST_DIR"));
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(&path, &text).expect("the folder is there");
        }
        let written = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(written == text, "{file} is stale: run UPDATE_DOCS=1 cargo test -p kueuecore gates");
    }
}
