//! What commands print for people, in terminals of several widths and in a pipe. Where there is no
//! terminal, `COLUMNS` states its width.

use tests::buffer::{Buffer, WEEK};
use tests::{Home, Model, QUICK, learn};

const SCREENS: [&str; 12] = [
    "--help",
    "status",
    "why --all",
    "doctor",
    "report",
    "gate",
    "adapter show",
    "events --help",
    "model list",
    "adapter",
    "adapter show 1",
    "team",
];

/// A name next to a text, and what is no words, such as a path or the beginning of a long one.
const UNBREAKABLE: usize = 20;

/// In 80 columns `hone model list` wrapped every row, and the tables of `hone report` lost their
/// frames. Every row of `hone status` was padded to the longest, also in a pipe.
#[test]
fn every_screen_has_the_width_of_the_terminal() {
    let home = Home::with(Model::Smol, &format!("{QUICK}lab.trial = true\n"));
    let editor = home.editor();
    let mut week = Buffer::open(&editor, "week.rs", WEEK);
    let item = week.offer();
    week.accept(&item);
    learn(&editor);
    for columns in ["", "40", "60", "80", "120"] {
        for screen in SCREENS {
            let mut hone = home.hone();
            let output = hone.env("COLUMNS", columns).args(screen.split(' ')).output().unwrap();
            let text = String::from_utf8(output.stdout).unwrap();
            assert!(!text.is_empty(), "hone {screen} prints nothing");
            for line in text.lines() {
                let place = format!("hone {screen} in {columns:?} columns: {line:?}");
                assert_eq!(line, line.trim_end(), "{place}");
                let length = line.chars().count();
                let longest = line.split(' ').map(|word| word.chars().count()).max().unwrap_or(0);
                let width: usize = columns.parse().unwrap_or(usize::MAX);
                assert!(length <= width || longest + UNBREAKABLE > width, "{place}");
            }
        }
    }
    let all = home.output(&["model", "list"]);
    assert!(all.contains("licence") && !all.contains("by --json"), "nothing goes in a pipe: {all}");
}
