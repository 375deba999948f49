//! Languages by the names that editors give them, and the endings of their files.

/// Endings, and the languages of files that have them. The first ending of a language is the one
/// that a file in it gets.
const ENDINGS: &[(&str, &str)] = &[
    ("c", "c"),
    ("cc", "cpp"),
    ("cpp", "cpp"),
    ("cs", "csharp"),
    ("css", "css"),
    ("env", "dotenv"),
    ("fs", "fsharp"),
    ("go", "go"),
    ("h", "c"),
    ("hpp", "cpp"),
    ("html", "html"),
    ("java", "java"),
    ("jl", "julia"),
    ("js", "javascript"),
    ("json", "json"),
    ("jsx", "javascriptreact"),
    ("kt", "kotlin"),
    ("lua", "lua"),
    ("md", "markdown"),
    ("php", "php"),
    ("py", "python"),
    ("r", "r"),
    ("rb", "ruby"),
    ("rs", "rust"),
    ("scala", "scala"),
    ("sh", "shellscript"),
    ("sql", "sql"),
    ("swift", "swift"),
    ("toml", "toml"),
    ("ts", "typescript"),
    ("tsx", "typescriptreact"),
    ("txt", "plaintext"),
    ("yaml", "yaml"),
    ("yml", "yaml"),
];

/// Returns the language of files with this ending, which is in lower case and without its dot.
pub fn of_ending(ending: &str) -> Option<&'static str> {
    ENDINGS.iter().find(|(known, _)| *known == ending).map(|(_, language)| *language)
}

/// Returns the ending of files in a language.
pub fn ending(language: &str) -> Option<&'static str> {
    ENDINGS.iter().find(|(_, of)| *of == language).map(|(ending, _)| *ending)
}

/// Returns the language of this name, if there is one.
pub fn known(name: &str) -> Option<&'static str> {
    ENDINGS.iter().map(|(_, language)| *language).find(|language| *language == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ending_leads_to_its_language_and_back() {
        assert_eq!((of_ending("hpp"), ending("cpp")), (Some("cpp"), Some("cc")));
        assert_eq!((of_ending("klingon"), ending("klingon"), known("klingon")), (None, None, None));
        for (_, language) in ENDINGS {
            assert_eq!(ending(language).and_then(of_ending), Some(*language));
            assert_eq!(known(language), Some(*language));
        }
    }
}
