//! `hone team` says whether the next round finds enough to learn from.

use tests::buffer::{WEEK, accept_one};
use tests::{Home, Model, QUICK};

#[test]
fn the_status_counts_the_labels_that_wait_for_a_contribution() {
    let home = Home::with(Model::Smol, QUICK);
    home.output(&["team", "join", "127.0.0.1:9"]);
    assert!(home.output(&["team"]).contains("waiting   not known, because no daemon"));
    let told = || -> serde_json::Value {
        serde_json::from_str(&home.output(&["team", "--json"])).unwrap()
    };
    assert_eq!(told()["labels"], serde_json::Value::Null);
    assert_eq!(home.output(&["team", "status"]), home.output(&["team"]), "for scripts");

    let editor = home.editor();
    accept_one(&editor, "week.rs", WEEK);
    let said = home.output(&["team"]);
    assert!(said.contains("waiting   1 label; a contribution takes 8"), "{said}");
    assert_eq!((&told()["labels"], &told()["labels_min"]), (&1.into(), &8.into()));
}
