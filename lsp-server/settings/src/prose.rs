//! The languages in which people write prose. Editors name one language in many ways: by ids of VS
//! Code, file types of Vim, modes of Emacs, or names that are shown to people.

/// The languages in lower case, without blanks, `-` and `_`.
const PROSE: &[&str] = &[
    // Markdown and its dialects.
    "gfm",
    "markdoc",
    "markdown",
    "mdx",
    "myst",
    "pandoc",
    "qmd",
    "quarto",
    "rmarkdown",
    "rmd",
    // Other markup.
    "adoc",
    "asciidoc",
    "asciidoctor",
    "creole",
    "djot",
    "gemtext",
    "mediawiki",
    "neorg",
    "norg",
    "org",
    "orgmode",
    "pod",
    "rdoc",
    "restructuredtext",
    "rst",
    "textile",
    "tiddlywiki",
    "typst",
    "vimwiki",
    "wiki",
    "wikitext",
    "zimwiki",
    // TeX.
    "bibtex",
    "context",
    "doctex",
    "latex",
    "plaintex",
    "tex",
    "texinfo",
    // Plain text, and what is read as such.
    "changelog",
    "debchangelog",
    "fountain",
    "groff",
    "help",
    "man",
    "nroff",
    "plain",
    "plaintext",
    "text",
    "troff",
    "txt",
    "vimdoc",
    // Messages to people, and to models.
    "chatagent",
    "chatmode",
    "email",
    "eml",
    "instructions",
    "mail",
    "message",
    "prompt",
    "skill",
    // Messages of version control.
    "cvs",
    "gitcommit",
    "gitcommitmessage",
    "gitrebase",
    "gitsendemail",
    "gittag",
    "hgcommit",
    "jj",
    "jjdescription",
    "scminput",
    "svn",
    "svncommit",
];

/// Returns true if people write prose in this language. Vim joins several types by dots
/// (`markdown.mdx`), and one of prose is enough.
pub fn is_prose(language: &str) -> bool {
    let plain = |part: &str| {
        let kept = part.chars().filter(|c| !matches!(c, ' ' | '-' | '_'));
        kept.flat_map(char::to_lowercase).collect::<String>()
    };
    language.split('.').any(|part| PROSE.contains(&plain(part).as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prose_is_known_by_the_names_of_all_editors() {
        let names = [
            "markdown",
            "Markdown",
            "gfm",
            "markdown.mdx",
            "rst",
            "reStructuredText",
            "plaintext",
            "Plain Text",
            "text",
            "git-commit",
            "gitcommit",
            "git commit",
            "Git Commit Message",
            "git-rebase",
            "org",
            "norg",
            "plaintex",
            "message",
            "prompt",
            "vimwiki",
        ];
        for name in names {
            assert!(is_prose(name), "{name}");
        }
        for name in ["rust", "c", "html", "", "typescript.tsx", "markdownlint", "textproto", "sql"]
        {
            assert!(!is_prose(name), "{name}");
        }
    }
}
