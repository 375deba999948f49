use super::*;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// The chunks of a text, each by its lines without the ends.
fn texts(text: &str) -> Vec<&str> {
    cut(text).into_iter().map(|chunk| text[chunk.bytes].trim_end()).collect()
}

#[test]
fn each_function_is_a_chunk_with_what_stands_above_it() {
    let first = "/// Adds.\nfn add(a: u32) {\n    let b = 1;\n\n    a + b\n}";
    let second = "#[test]\nfn adds() {\n    let sum = add(1);\n    assert_eq!(sum, 2);\n}";
    let text = format!("{first}\n{second}\n");
    assert_eq!(texts(&text), [first, second]);
}

#[test]
fn a_long_type_falls_into_its_methods() {
    let method = |name: &str| format!("    def {name}(self):\n{}", "        go()\n".repeat(25));
    let text = format!("class A:\n{}\n{}\n{}", method("a"), method("b"), method("c"));
    let starts: Vec<&str> =
        texts(&text).iter().map(|chunk| chunk.lines().next().unwrap().trim()).collect();
    assert_eq!(starts, ["class A:", "def b(self):", "def c(self):"]);
}

#[test]
fn imports_and_constants_are_put_together() {
    let text = "use a;\n\nuse b;\n\nconst C: u32 = 1;\n";
    assert_eq!(texts(text).len(), 1);
}

#[test]
fn lines_that_a_machine_wrote_are_in_no_chunk() {
    let text = format!("fn a() {{}}\n{}\nfn b() {{}}\n", "x();".repeat(1000));
    assert_eq!(texts(&text), ["fn a() {}", "fn b() {}"]);
    assert!(cut(&"1".repeat(5_000_000)).is_empty());
}

/// Whatever the text is, every line that is not blank and not too long is in one chunk.
#[test]
fn chunks_hold_every_line_once_and_keep_their_limits() {
    let pieces = ["\n", "fn a() {\n", "    b();\n", "}\n", "\tx\n", "  \n", "é", "        c\r\n"];
    for seed in 0..300 {
        let mut draws = StdRng::seed_from_u64(seed);
        let length = draws.random_range(0..400);
        let text: String =
            (0..length).map(|_| pieces[draws.random_range(0..pieces.len())]).collect();
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        let mut held = vec![0; lines.len()];
        for chunk in cut(&text) {
            assert!(chunk.lines.len() <= CHUNK_LINES_MAX && chunk.bytes.len() <= CHUNK_BYTES_MAX);
            assert_eq!(text[chunk.bytes.clone()], lines[chunk.lines.clone()].concat());
            chunk.lines.for_each(|line| held[line] += 1);
        }
        for (line, held) in lines.iter().zip(held) {
            let is_wanted = !line.trim().is_empty() && line.len() <= LINE_BYTES_MAX;
            assert!(if is_wanted { held == 1 } else { held <= 1 }, "seed {seed}: {line:?}");
        }
    }
}
