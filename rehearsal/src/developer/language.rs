//! Which files a developer types by hand, and what the protocol calls them.

/// Folders whose content somebody else wrote or a tool generated.
const FOREIGN_FOLDERS: &[&str] = &[
    "node_modules",
    "vendor",
    "vendored",
    "third_party",
    "third-party",
    "thirdparty",
    "external",
    "dist",
    "target",
    "generated",
    "__generated__",
    "snapshots",
    "__snapshots__",
];

/// Endings of generated or minified files within the languages below.
const GENERATED_ENDINGS: &[&str] = &[
    ".min.js",
    ".min.css",
    ".bundle.js",
    "_pb2.py",
    "_pb2_grpc.py",
    ".pb.go",
    ".pb.cc",
    ".pb.h",
    ".g.dart",
    ".generated.cs",
];

/// File extension → LSP language id.
const LANGUAGES: &[(&str, &str)] = &[
    ("bash", "shellscript"),
    ("c", "c"),
    ("cc", "cpp"),
    ("cpp", "cpp"),
    ("cs", "csharp"),
    ("css", "css"),
    ("cxx", "cpp"),
    ("dart", "dart"),
    ("ex", "elixir"),
    ("exs", "elixir"),
    ("go", "go"),
    ("h", "c"),
    ("hpp", "cpp"),
    ("hs", "haskell"),
    ("java", "java"),
    ("jl", "julia"),
    ("js", "javascript"),
    ("jsx", "javascriptreact"),
    ("kt", "kotlin"),
    ("lua", "lua"),
    ("mjs", "javascript"),
    ("ml", "ocaml"),
    ("php", "php"),
    ("pl", "perl"),
    ("py", "python"),
    ("pyi", "python"),
    ("r", "r"),
    ("rb", "ruby"),
    ("rs", "rust"),
    ("scala", "scala"),
    ("scss", "scss"),
    ("sh", "shellscript"),
    ("sql", "sql"),
    ("svelte", "svelte"),
    ("swift", "swift"),
    ("ts", "typescript"),
    ("tsx", "typescriptreact"),
    ("vue", "vue"),
    ("zig", "zig"),
];

/// The language id of a file somebody plausibly types, by its path alone.
pub fn of_path(path: &str) -> Option<&'static str> {
    let mut parts = path.rsplit('/');
    let name = parts.next()?;
    if parts.any(|folder| FOREIGN_FOLDERS.contains(&folder)) {
        return None;
    }
    let name = name.to_ascii_lowercase();
    if GENERATED_ENDINGS.iter().any(|ending| name.ends_with(ending)) {
        return None;
    }
    let (stem, extension) = name.rsplit_once('.')?;
    if stem.is_empty() {
        return None;
    }
    LANGUAGES.iter().find(|(known, _)| *known == extension).map(|(_, language)| *language)
}

#[cfg(test)]
mod tests {
    use super::of_path;

    #[test]
    fn code_has_a_language_and_the_rest_has_none() {
        assert_eq!(of_path("src/lib.rs"), Some("rust"));
        assert_eq!(of_path("App.TSX"), Some("typescriptreact"));
        for path in [
            "Cargo.lock",
            "package-lock.json",
            "README.md",
            "web/app.min.js",
            "api/v1/types.pb.go",
            "vendor/lib/a.c",
            "x/node_modules/y/index.js",
            "Makefile",
            ".py",
        ] {
            assert_eq!(of_path(path), None, "{path}");
        }
    }
}
