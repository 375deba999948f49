//! `hone model quantize` makes a variant of a model that a CPU reads faster. It can be listed,
//! served and learned from as every model can.

use tests::buffer::{Buffer, WEEK};
use tests::{Home, Model, QUICK, learn};

#[test]
fn a_q4_0_variant_is_made_listed_served_and_learned_from() {
    let home = Home::with(Model::Smol, QUICK);
    let said = home.output(&["model", "quantize"]);
    assert!(said.contains("`hone model use smollm2-135m-q4_0` serves it"), "{said}");
    let listed = home.output(&["model", "list"]);
    let row = listed.lines().find(|line| line.contains("smollm2-135m-q4_0"));
    assert!(row.is_some_and(|row| row.trim_end().ends_with("yes")), "{listed}");
    home.output(&["model", "use", "smollm2-135m-q4_0"]);

    let editor = home.editor();
    assert_eq!(home.status()["model"]["name"], "smollm2-135m-q4_0");
    let mut week = Buffer::open(&editor, "week.rs", WEEK);
    let offer = week.offer();
    assert!(offer.insert_text.starts_with("Thursday"), "{}", offer.insert_text);
    week.accept(&offer);
    assert_eq!(learn(&editor)["adapter"]["active"], 1, "the learner reads the variant too");

    // A second run replaces the variant, and a failed run leaves no file.
    home.output(&["model", "quantize", "smollm2-135m"]);
    let missing = home.error(&["model", "quantize", "qwen2.5-coder-7b"]);
    assert!(missing.contains("hone model pull qwen2.5-coder-7b"), "{missing}");
    let left = std::fs::read_dir(home.path().join("models")).unwrap();
    let left: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().ends_with(".part")), "{left:?}");
}
