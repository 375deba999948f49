//! How comments and strings look in a language, as far as one must know it to tell them from code.
//!
//! A language that is not known here has neither: then all of its text counts as code.

/// The comments and strings of a family of languages.
#[derive(Debug, PartialEq, Eq)]
pub struct Language {
    pub(crate) line_comments: &'static [&'static str],
    /// The way in which a comment of many lines begins and ends.
    pub(crate) block_comments: &'static [(&'static str, &'static str)],
    /// The longest opening comes first: `"""` before `"`.
    pub(crate) strings: &'static [Quote],
    /// An apostrophe may also begin a lifetime or a label, and `r#"` a string.
    pub(crate) is_rust: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Quote {
    pub open: &'static str,
    pub close: &'static str,
    /// A backslash takes the next character into the string.
    pub has_escapes: bool,
    /// The string may continue in the next line. If it may not, an open one ends with its line, so
    /// that a stray apostrophe costs one line and not the rest of the file.
    pub has_lines: bool,
}

const fn quote(open: &'static str, has_escapes: bool, has_lines: bool) -> Quote {
    Quote { open, close: open, has_escapes, has_lines }
}

const QUOTES: &[Quote] = &[quote("\"", true, false), quote("'", true, false)];
const BLOCK: &[(&str, &str)] = &[("/*", "*/")];

const fn language(
    line_comments: &'static [&'static str],
    block_comments: &'static [(&'static str, &'static str)],
    strings: &'static [Quote],
) -> Language {
    Language { line_comments, block_comments, strings, is_rust: false }
}

static C: Language = language(&["//"], BLOCK, QUOTES);
static GO: Language = language(
    &["//"],
    BLOCK,
    &[quote("\"", true, false), quote("'", true, false), quote("`", false, true)],
);
static SCRIPT: Language = language(
    &["//"],
    BLOCK,
    &[quote("\"", true, false), quote("'", true, false), quote("`", true, true)],
);
static TRIPLE: Language = language(
    &["//"],
    BLOCK,
    &[quote("\"\"\"", false, true), quote("\"", true, false), quote("'", true, false)],
);
static RUST: Language = Language {
    line_comments: &["//"],
    block_comments: BLOCK,
    strings: &[quote("\"", true, true), quote("'", true, false)],
    is_rust: true,
};
static PYTHON: Language = language(
    &["#"],
    &[],
    &[
        quote("\"\"\"", true, true),
        quote("'''", true, true),
        quote("\"", true, false),
        quote("'", true, false),
    ],
);
static HASH: Language = language(&["#"], &[], QUOTES);
static PHP: Language = language(&["//", "#"], BLOCK, QUOTES);
static CSS: Language = language(&[], BLOCK, QUOTES);
static LUA: Language = language(
    &["--"],
    &[("--[[", "]]")],
    &[
        Quote { open: "[[", close: "]]", has_escapes: false, has_lines: true },
        quote("\"", true, false),
        quote("'", true, false),
    ],
);
static DASHES: Language =
    language(&["--"], &[("{-", "-}"), ("/*", "*/")], &[quote("\"", true, false)]);
static LISP: Language = language(&[";"], &[], &[quote("\"", true, true)]);
static MARKUP: Language = language(&[], &[("<!--", "-->")], &[quote("\"", false, false)]);
static PLAIN: Language = language(&[], &[], &[]);

/// The names of a family: the protocol's language ids, and the endings of files.
const NAMES: &[(&Language, &str)] = &[
    (
        &C,
        "c cc cpp cxx h hpp hh objective-c objective-cpp m mm java cs csharp zig proto proto3 \
        glsl cuda-cpp cu jsonc",
    ),
    (&GO, "go v odin"),
    (
        &SCRIPT,
        "js javascript jsx javascriptreact mjs cjs ts typescript tsx typescriptreact mts cts",
    ),
    (&TRIPLE, "kt kotlin kts swift scala dart groovy gradle"),
    (&RUST, "rs rust"),
    (&PYTHON, "py python pyi starlark bzl"),
    (
        &HASH,
        "rb ruby sh shellscript bash zsh fish pl perl r jl julia ex exs elixir toml yaml yml \
        dockerfile makefile mk cmake nix tcl just ini tf terraform",
    ),
    (&PHP, "php"),
    (&CSS, "css scss less"),
    (&LUA, "lua luau"),
    (&DASHES, "sql hs haskell elm ada"),
    (&LISP, "clj clojure lisp el scm scheme racket rkt"),
    (&MARKUP, "html xml vue svelte svg"),
];

impl Language {
    /// The language with this name: one of the protocol's ids, or the ending of a file without its
    /// dot.
    pub fn named(name: &str) -> &'static Language {
        let lower = name.to_ascii_lowercase();
        let found = NAMES.iter().find(|(_, names)| names.split(' ').any(|name| name == lower));
        found.map_or(&PLAIN, |(language, _)| language)
    }
}
