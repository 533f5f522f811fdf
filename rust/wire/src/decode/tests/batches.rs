//! Several objects in one text.

use serde_json::json;

use super::*;

#[test]
fn a_batch_may_be_an_object_a_list_an_array_or_lines() {
    let a = r#"{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"a"}}"#;
    let b = r#"{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"b","namespace":"ns"}}"#;
    let bare = r#"{"metadata":{"name":"c"}}"#;
    let batches = [
        format!("{a}\n{b}\n{a}"),
        format!("[{a},{b},{a}]"),
        format!(r#"{{"kind":"List","apiVersion":"v1","items":[{a},{b},{a}]}}"#),
        format!("[{a},[{b}]] {a}"),
    ];
    for batch in batches {
        let decoded = decode(batch.as_bytes(), Door::Trusted).expect("well formed");
        assert_eq!(decoded.objects.iter().map(|(_, index)| *index).collect::<Vec<_>>(), [0, 2], "{batch}");
        assert_eq!(decoded.foreign[0].index, 1);
        assert_eq!((decoded.foreign[0].kind.as_str(), decoded.foreign[0].name.as_str()), ("Deployment", "b"));
    }
    let inherited = format!(r#"{{"kind":"NamespaceList","apiVersion":"v1","items":[{bare}]}}"#);
    assert_eq!(decode(inherited.as_bytes(), Door::Trusted).expect("well formed").objects.len(), 1);
    assert_eq!(decode(b" \n", Door::Trusted), Ok(Decoded::default()));
}

#[test]
fn every_refused_object_of_a_batch_is_reported() {
    let found = refusal(
        r#"[{"kind":"a"},{"apiVersion":"v1","kind":"Namespace"},{"apiVersion":"kueue.x-k8s.io/v1beta2","kind":"Queue"}] x"#,
    );
    assert!(found.contains("a (object 0) is invalid: apiVersion: Required value"), "{found}");
    assert!(found.contains("Queue (object 2) is invalid: kind: Unsupported value: \"Queue\""), "{found}");
    assert!(found.contains("object 3 is invalid: Invalid value: not JSON"), "{found}");
}

#[test]
fn a_batch_with_a_refused_object_reports_all_of_them_at_both_doors() {
    let batch = json!([
        {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Cohort", "metadata": {"name": "a"}, "spec": {"parentName": 3}},
        {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Cohort", "metadata": {"name": "b"}},
        {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Cohort", "metadata": {"name": "c"}, "spec": {"resourceGroups": {}}},
    ]);
    for door in [Door::People, Door::Trusted] {
        let rejections = decode(batch.to_string().as_bytes(), door).expect_err("must be refused");
        let found: Vec<(usize, &str)> = rejections.iter().map(|r| (r.index, r.object.name.as_str())).collect();
        assert_eq!(found, [(0, "a"), (2, "c")], "{door:?}");
    }
}
