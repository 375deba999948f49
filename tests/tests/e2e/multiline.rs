//! An invoked completion in an empty block has the block's lines, up to the brace below. A
//! completion while the user types has one line, unless the settings want more.

use feedback::event::{Evidence, Outcome, StopReason};
use tests::buffer::Buffer;
use tests::{Home, Model, PATIENT};

const EMPTY: &str = "\
/// The largest of the values.
fn largest(values: &[i32]) -> i32 {
    let mut largest = values[0];
    for value in values {
        |
    }
    largest
}

fn main() {
    println!(\"{}\", largest(&[1, 2, 3]));
}
";

const SHAPES: &str = "\
class Shape:
    def area(self):
        return self.width * self.height


def largest(shapes):
    largest_area = 0
    largest_shape = None
    |
    return largest_shape
";

#[test]
fn an_invoked_completion_in_an_empty_block_has_its_lines() {
    let home = Home::with(Model::Qwen, PATIENT);
    let editor = home.editor();
    let typed = Buffer::open(&editor, "typed.rs", EMPTY).complete().expect("an offer");
    assert!(!typed.insert_text.contains('\n'), "{typed:?}");

    let mut buffer = Buffer::open(&editor, "asked.rs", EMPTY);
    let asked = buffer.ask();
    let body = &asked[0].insert_text;
    let lines: Vec<&str> = body.lines().collect();
    assert!((2..=8).contains(&lines.len()), "{body}");
    let deep = |line: &&str| line.is_empty() || line.starts_with("        ");
    assert!(lines[1..].iter().all(deep), "nothing beyond the block: {body}");
    assert_eq!(body.matches('{').count(), body.matches('}').count(), "{body}");
    let texts: Vec<_> = asked.iter().map(|item| &item.insert_text).collect();
    assert!(texts.iter().all(|text| texts.iter().filter(|one| one == &text).count() == 1));

    buffer.accept(&asked[0]);
    editor.status().expect("a status");
    let accepted = vec![(Outcome::Accepted, Evidence::Document)];
    assert_eq!(home.outcomes(&asked[0].id), accepted);
    let made = home.completions();
    let made = made.iter().find(|made| made.id == asked[0].id).expect("its record");
    assert_eq!(&made.shown, body);
    // The model ends at the block's end, or by its stop token.
    assert!(matches!(made.stop, StopReason::BlockEnd | StopReason::StopToken), "{made:?}");
}

/// A model that is not trained to fill in does not know of the brace below. It writes the brace
/// again, and a function after it.
#[test]
fn what_a_model_says_beyond_the_block_is_not_shown() {
    let home = Home::with(Model::Smol, PATIENT);
    let editor = home.editor();
    let asked = Buffer::open(&editor, "asked.rs", EMPTY).ask();
    assert!(!asked.is_empty());
    for item in &asked {
        let mut depth = 0;
        for c in item.insert_text.chars() {
            depth += i32::from(c == '{') - i32::from(c == '}');
            assert!(depth >= 0, "closes what it did not open: {}", item.insert_text);
        }
    }
}

#[test]
fn several_lines_can_be_switched_off() {
    let config = format!("{PATIENT}completion.multiline = \"never\"\n");
    let home = Home::with(Model::Smol, &config);
    let editor = home.editor();
    let asked = Buffer::open(&editor, "asked.rs", EMPTY).ask();
    assert!(asked.iter().all(|item| !item.insert_text.contains('\n')), "{asked:?}");
}

/// The second line of the loop is the header of a block. Where it was the last one that was shown,
/// Tab made a program that cannot be read.
#[test]
fn an_offer_that_is_cut_does_not_end_on_the_header_of_a_block() {
    let config = format!("{PATIENT}lab.max_lines = 2\n");
    let home = Home::with(Model::Qwen, &config);
    let editor = home.editor();
    let asked = Buffer::open(&editor, "largest.py", SHAPES).ask();
    let first = &asked[0];
    assert_eq!(first.insert_text, "for shape in shapes:", "one line, as any offer may be");
    for item in &asked {
        let several = item.insert_text.contains('\n');
        assert!(!several || !item.insert_text.ends_with(':'), "{}", item.insert_text);
    }
    let made = home.completions();
    let made = made.iter().find(|made| made.id == first.id).expect("its record");
    assert_eq!(made.stop, StopReason::MaxLines, "the limit ended it");
}

#[test]
fn a_block_is_taken_line_by_line_and_what_is_left_stays() {
    let home = Home::with(Model::Qwen, PATIENT);
    let editor = home.editor();
    let mut buffer = Buffer::open(&editor, "typed.rs", EMPTY);
    let offer = buffer.ask().swap_remove(0);
    let (first, rest) = offer.insert_text.split_once('\n').expect("several lines");
    buffer.insert(first);
    let length = first.encode_utf16().count() as u32;
    editor.did_partially_accept(&offer, length).expect("didPartiallyAccept is sent");
    let blanks = rest.len() - rest.trim_start_matches(' ').len();
    buffer.insert(&format!("\n{}", &rest[..blanks]));
    let left = buffer.complete().expect("the rest stays");
    assert_eq!((&left.id, left.insert_text.as_str()), (&offer.id, &rest[blanks..]));
    buffer.accept(&left);
    editor.status().expect("a status");
    let accepted = vec![(Outcome::Accepted, Evidence::Document)];
    assert_eq!(home.outcomes(&offer.id), accepted);
}
