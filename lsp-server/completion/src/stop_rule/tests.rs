use super::*;
use crate::prompt::LINE_CHARS;

const SETTING: MultilineSetting = MultilineSetting { multiline: Multiline::Invoked, max_lines: 8 };

/// The stop rule at the cursor, which `|` marks.
fn stop_rule(language: &str, marked: &str, invoked: bool, setting: MultilineSetting) -> StopRule {
    let cursor = marked.chars().position(|c| c == '|').unwrap();
    let text = Rope::from_str(&marked.replacen('|', "", 1));
    StopRule::at(&text, cursor, language, invoked, setting)
}

fn lines(language: &str, marked: &str, invoked: bool, multiline: Multiline) -> usize {
    stop_rule(language, marked, invoked, MultilineSetting { multiline, max_lines: 8 }).lines()
}

/// The part of `answer` that is shown where the user invokes the completion.
fn within<'a>(language: &str, marked: &str, answer: &'a str) -> &'a str {
    let stop_rule = stop_rule(language, marked, true, SETTING);
    std::str::from_utf8(stop_rule.within(answer.as_bytes())).unwrap().trim_end()
}

#[test]
fn only_an_invoked_completion_has_several_lines() {
    let place = "fn a() {\n    |\n}\n";
    for (multiline, invoked) in [(Multiline::Never, 1), (Multiline::Invoked, 8)] {
        assert_eq!(lines("rust", place, false, multiline), 1, "{multiline:?}");
        assert_eq!(lines("rust", place, true, multiline), invoked, "{multiline:?}");
    }
}

#[test]
fn an_invoked_completion_before_text_gets_one_line() {
    let invoked = |place| lines("rust", place, true, Multiline::Invoked);
    assert_eq!(invoked("fn a() {\n    b(|)\n}\n"), 1);
    assert_eq!(invoked("fn a() {\n    b|();\n}\n"), 1);
    assert_eq!(invoked("fn a() {|}\n"), 8, "the brace that the editor closed");
    assert_eq!(invoked("fn a() {\n    let b = |  \n}\n"), 8);
    let minified = format!("{}|\n", "x=1;".repeat(LINE_CHARS));
    assert_eq!(invoked(&minified), 1);
}

/// A line break of the file is one for the model too, unless it is a lone `\r`.
#[test]
fn a_file_with_crlf_gets_several_lines() {
    assert_eq!(lines("rust", "fn a() {\r\n    |\r\n}\r\n", true, Multiline::Invoked), 8);
    assert_eq!(lines("rust", "fn a() {|\r\n}", true, Multiline::Invoked), 8);
    assert_eq!(lines("rust", "fn a() {\r    |\r}\r", true, Multiline::Invoked), 1);
}

#[test]
fn a_body_ends_before_the_bracket_that_closes_it() {
    for (language, place, answer, shown) in [
        ("rust", "fn a() {\n    |\n}\n", "b();\n    c();\n}\n\nfn d() {", "b();\n    c();"),
        ("rust", "fn a() {|\n}\n", "\n    b();\n}\n\nfn d() {", "\n    b();"),
        (
            "rust",
            "fn a() {\n    |\n}\n",
            "if b {\n        c();\n    }\n}\n",
            "if b {\n        c();\n    }",
        ),
        ("rust", "fn a() {\n    |\n}\n", "b(\"}\");\n    c(); }\n}", "b(\"}\");\n    c();"),
        ("rust", "fn a() {\n    |\n}\n", "b();\n    }\n", "b();"),
        ("rust", "fn a() {\n    |\n}\n", "b(r\"\n}\n\");\n}", "b(r\"\n}\n\");"),
        ("c", "void a(void)\n{\n\t|\n}\n", "b('}');\n\tc();\n}\n", "b('}');\n\tc();"),
        (
            "c",
            "void a(void)\n{\n\tswitch (b) {\n\t|\n\t}\n}\n",
            "case 1:\n\t\tc();\n\t}\n",
            "case 1:\n\t\tc();",
        ),
        ("go", "func a() {\n\t|\n}\n", "b := `\n}\n`\n}\n", "b := `\n}\n`"),
        ("javascript", "a(() => {\n  |\n});\n", "b();\n});\nc();", "b();"),
        ("swift", "func a() {\n    |\n}\n", "b()\n    c()\n}\n", "b()\n    c()"),
        ("lua", "if a then\n  |\nend\n", "b()\n  c()\nend\nd()", "b()\n  c()"),
    ] {
        assert_eq!(within(language, place, answer), shown, "{language}: {place}");
    }
}

#[test]
fn a_body_by_indentation_ends_where_a_line_is_less_deep() {
    for (place, answer, shown) in [
        ("def a():\n    |\n", "b()\n\n    c()\n\nd = 1\n", "b()\n\n    c()"),
        (
            "def a():\n    |\n",
            "\"\"\"Says\n\nmore.\n\"\"\"\n    b()\nc",
            "\"\"\"Says\n\nmore.\n\"\"\"\n    b()",
        ),
        ("def a():|\n", "\n    b(\n  c,\n    )\nd", "\n    b(\n  c,\n    )"),
        (
            "def a():|\nb = 1\n",
            "\n    if c:\n        d()\n    else:\n        e()\nf",
            "\n    if c:\n        d()\n    else:\n        e()",
        ),
    ] {
        assert_eq!(within("python", place, answer), shown, "{place}");
    }
}

#[test]
fn a_block_includes_its_closing_bracket_if_it_is_not_written_yet() {
    for (place, answer, shown) in [
        ("fn a() {|", "\n    b();\n}\n\nfn c", "\n    b();\n}"),
        ("fn a() {\n    |\n\nfn c() {}\n", "b();\n}\n\nfn d", "b();\n}"),
        ("impl A {\n    fn a() {|\n}\n", "\n        b();\n    }\n}\n", "\n        b();\n    }"),
    ] {
        assert_eq!(within("rust", place, answer), shown, "{place}");
    }
}

#[test]
fn a_statement_ends_with_the_block_it_opens() {
    for (language, place, answer, shown) in [
        ("rust", "|\nfn b() {}\n", "fn a() {\n    c();\n}\n\nfn d() {", "fn a() {\n    c();\n}"),
        ("rust", "|\n", "#[test]\n/// Does.\nfn a() {\n}\nfn d", "#[test]\n/// Does.\nfn a() {\n}"),
        (
            "rust",
            "    if b |\n",
            "{\n        c();\n    } else {\n        d();\n    }\n    e",
            "{\n        c();\n    } else {\n        d();\n    }",
        ),
        (
            "rust",
            "    let b = |\n",
            "c\n        .d()\n        .e();\n    f",
            "c\n        .d()\n        .e();",
        ),
        ("rust", "    b(c,|\n", "\n        d,\n    );\n    e", "\n        d,\n    );"),
        (
            "rust",
            "    b();|\n",
            "\n    c(\n        d,\n    );\n    e",
            "\n    c(\n        d,\n    );",
        ),
        ("rust", "    b();|\n}\n", "\n}\n", ""),
        ("c", "void a(void)|\n", "\n{\n\tb();\n}\n\nvoid", "\n{\n\tb();\n}"),
        ("python", "if a|\n", ":\n    b()\nelif c:\n    d()\ne()", ":\n    b()\nelif c:\n    d()"),
        ("lua", "if a |\n", "then\n  b()\nend\nc()", "then\n  b()\nend"),
        ("swift", "|\n", "func a() {\n    b()\n}\nc()", "func a() {\n    b()\n}"),
    ] {
        assert_eq!(within(language, place, answer), shown, "{language}: {place}");
    }
}

#[test]
fn an_answer_has_at_most_the_lines_that_are_set() {
    let setting = MultilineSetting { max_lines: 2, ..SETTING };
    let of = |place, answer: &'static str| {
        let stop_rule = stop_rule("rust", place, true, setting);
        std::str::from_utf8(stop_rule.within(answer.as_bytes())).unwrap()
    };
    assert_eq!(of("fn a() {\n    |\n}\n", "b();\n    c();\n    d();\n"), "b();\n    c();");
    assert_eq!(of("fn a() {|\n}\n", "\n    b();\n    c();\n    d();\n"), "\n    b();\n    c();");
}

/// The part of an answer that its limit of lines leaves, and the part of it that is offered.
fn cut_to(max_lines: usize, language: &str, marked: &str, answer: &str) -> (String, String) {
    let rule = stop_rule(language, marked, true, MultilineSetting { max_lines, ..SETTING });
    let end = rule.within(answer.as_bytes()).len();
    let cut = answer[..end].trim_end();
    (cut.to_owned(), rule.whole(cut, &answer.as_bytes()[cut.len()..]).to_owned())
}

/// The limit of lines ended an offer in Python on `if shape.area() > largest_area:`, so that Tab
/// made a program that cannot be read.
#[test]
fn an_offer_that_the_limit_of_lines_cuts_does_not_end_on_the_header_of_a_block() {
    let block = "fn a() {\n    |\n}\n";
    for (language, place, answer, whole) in [
        ("python", "def a():\n    |\n", "b()\n    if c:\n        d()\n", "b()"),
        ("python", "def a():\n    |\n", "b()\n    try:\n\n        d()\n", "b()"),
        ("python", "class A:\n    |\n", "b = 1\n\n    @property\n    def c(self):\n", "b = 1"),
        ("rust", block, "b();\n    if c {\n        d();\n", "b();"),
        ("rust", block, "b();\n    let c = || {\n        d();\n", "b();"),
        ("rust", "impl A {\n    |\n}\n", "fn b() {}\n    #[test]\n    fn c() {\n", "fn b() {}"),
        ("c", "void a(void)\n{\n\t|\n}\n", "b();\n\tif (c)\n\t\td();\n", "b();"),
        ("cpp", "namespace a {\n  |\n}\n", "int b;\n  void c()\n  {\n    d();\n", "int b;"),
        ("cpp", "void a() {\n  |\n}\n", "b();\n  for (auto c : d) {\n    e();\n", "b();"),
        ("go", "func a() {\n\t|\n}\n", "b()\n\tif c {\n\t\td()\n", "b()"),
        ("javascript", "a(() => {\n  |\n});\n", "b();\n  c(() => {\n    d();\n", "b();"),
        ("javascript", "if (a) {\n  |\n}\n", "b();\n  if (c)\n    d();\n", "b();"),
        ("typescript", "class A {\n  |\n}\n", "b = 1;\n  c(): void {\n    d();\n", "b = 1;"),
        ("typescriptreact", "function A() {\n  |\n}\n", "b();\n  return (\n    <c/>\n", "b();"),
        ("java", "void a() {\n  |\n}\n", "b();\n  if (c) {\n    d();\n", "b();"),
        ("csharp", "class A\n{\n    |\n}\n", "int b;\n    void C()\n    {\n", "int b;"),
        (
            "php",
            "function a() {\n    |\n}\n",
            "b();\n    foreach ($c as $d):\n        e();",
            "b();",
        ),
        ("kotlin", "fun a() {\n    |\n}\n", "b()\n    c.forEach {\n        d()\n", "b()"),
        ("swift", "func a() {\n    |\n}\n", "b()\n    guard c else {\n        return\n", "b()"),
        ("scala", "def a =\n  |\n", "b()\n  if c then\n    d()\n", "b()"),
        ("ruby", "def a\n  |\nend\n", "b\n  if c\n    d\n", "b"),
        ("ruby", "def a\n  |\nend\n", "b\n  c.each do |d|\n    e\n", "b"),
        ("lua", "if a then\n  |\nend\n", "b()\n  local function c()\n    d()\n", "b()"),
        ("shellscript", "a() {\n  |\n}\n", "b\n  for c in d; do\n    e\n", "b"),
        ("fish", "function a\n    |\nend\n", "b\n    if c\n        d\n", "b"),
        ("elixir", "def a do\n  |\nend\n", "b()\n  case c do\n    1 -> d\n", "b()"),
        ("julia", "function a()\n    |\nend\n", "b()\n    while c\n        d()\n", "b()"),
        ("haskell", "a = do\n  |\n", "b\n  when c $ do\n    d\n", "b"),
        ("coffeescript", "a = ->\n  |\n", "b()\n  if c\n    d()\n", "b()"),
        ("yaml", "a:\n  |\n", "b: 1\n  c:\n    d: 2\n", "b: 1"),
        ("html", "<a>\n  |\n</a>\n", "<b/>\n  <c>\n    d\n", "<b/>"),
    ] {
        // Of the last line only its indentation is known.
        let (cut, offered) = cut_to(answer.lines().count() - 1, language, place, answer);
        assert_ne!(cut, whole, "{language}: the limit ends it on a header");
        assert_eq!(offered, whole, "{language}: {answer}");
    }
}

#[test]
fn an_offer_that_is_cut_ends_with_a_whole_statement() {
    let block = "fn a() {\n    |\n}\n";
    for (language, place, limit, answer, whole) in [
        ("rust", block, 3, "b();\n    c(\n        d,\n        e,\n    );\n", "b();"),
        ("rust", block, 2, "b();\n    let c =\n        d();\n", "b();"),
        ("rust", block, 3, "b();\n    c();\n    d();\n    e();\n", "b();\n    c();\n    d();"),
        (
            "rust",
            block,
            3,
            "if b {\n        c();\n        d();\n        e();\n    }\n",
            "if b {\n        c();\n        d();",
        ),
        ("python", "def a():\n    |\n", 2, "b = [\n        1,\n        2,\n", "b = [\n        1,"),
        ("python", "def a():\n    |\n", 2, "'''B\n    c:\n        d\n", "'''B\n    c:"),
        ("python", "def a():\n    |\n        b()\n", 2, "c()\n    if d:\n    e", "c()\n    if d:"),
        ("javascript", "a = {\n  |\n};\n", 3, "b: 1,\n  c: [\n    2,\n    3,\n", "b: 1,"),
        (
            "javascript",
            "|\n",
            3,
            "a(() => {\n  b();\n  c();\n  d();\n});\n",
            "a(() => {\n  b();\n  c();",
        ),
        ("text", "  |\n", 2, "a\n  # Note:\n  b\n", "a\n  # Note:"),
        ("python", "def a():\n    |\n", 2, "if b:\n        if c:\n            d", "if b:"),
    ] {
        let (_, offered) = cut_to(limit, language, place, answer);
        assert_eq!(offered, whole, "{language}: {answer}");
    }
    let line = StopRule::LINE;
    assert_eq!(line.whole("if a:", b"\n  b()"), "if a:", "a line may be a header");
}

#[test]
fn an_answer_that_leaves_the_blank_line_is_empty() {
    assert_eq!(within("rust", "fn a() {\n    |\n}\n", "\n    b();\n"), "");
}

/// Feeds an answer to the stop rule piece by piece, as tokens come. Returns the index of the piece
/// that ends it.
fn stopped(place: &str, pieces: &[&str]) -> (usize, Option<StopReason>) {
    stopped_in("rust", place, pieces)
}

fn stopped_in(language: &str, place: &str, pieces: &[&str]) -> (usize, Option<StopReason>) {
    let stop_rule = stop_rule(language, place, true, SETTING);
    let mut answer = vec![];
    for (index, piece) in pieces.iter().enumerate() {
        answer.extend_from_slice(piece.as_bytes());
        if let Some(stop) = stop_rule.stop(&answer, piece.as_bytes()) {
            return (index, Some(stop));
        }
    }
    (pieces.len(), None)
}

#[test]
fn decoding_ends_with_the_token_that_shows_the_end() {
    let place = "fn a() {\n    |\n}\n";
    let end = Some(StopReason::BlockEnd);
    assert_eq!(stopped(place, &["b", "();\n", "   ", " c();", "\n", "}", "\n"]), (5, end));
    assert_eq!(stopped(place, &["b();\n    c();\n}\n"]), (0, end));
    assert_eq!(stopped(place, &["b", "();", "\n   ", " c("]), (4, None));
    let pieces = ["b", ":\n", "   ", " c()\n", "el", "se", ":\n", "    d()\n", "e", " = 1", "\n"];
    assert_eq!(stopped_in("python", "if a |\n", &pieces), (10, end), "`e` may be an `else`");
    let many: Vec<&str> = [" b();\n"].repeat(9);
    let last = Some(StopReason::MaxLines);
    assert_eq!(stopped("fn a() {\n|\n}\n", &many), (8, last), "the next line's indentation");
    let one = StopRule::LINE;
    assert_eq!(one.stop(b"b();\n", b"\n"), Some(StopReason::Newline));
    assert_eq!(one.stop(b"b();", b";"), None);
}

/// Any text, cut at any byte, must neither cause a panic nor end behind its own end.
#[test]
fn the_end_lies_in_the_answer_for_any_text() {
    let answer = "größe();\n\tif a {\n\u{a0} b(\"}\n\");\n\n}\r\n]) else {\n'''\n";
    let places = ["|", "fn ä() {\n\t|\n}\n", "\n\n  |", "if a:|\n\tb", "}}}\n  ) x |\n"];
    for language in ["rust", "python", "c", "go", "typescript", "markdown"] {
        for place in places {
            let stop_rule = stop_rule(language, place, true, SETTING);
            for end in 0..=answer.len() {
                let answer = &answer.as_bytes()[..end];
                let shown = stop_rule.within(answer);
                assert!(answer.starts_with(shown), "{language}: {place}");
                let (text, next) = (valid_utf8_prefix(shown), &answer[shown.len()..]);
                assert!(text.starts_with(stop_rule.whole(text, next)), "{language}: {place}");
                stop_rule.stop(answer, &answer[end.saturating_sub(3)..]);
            }
        }
    }
}
