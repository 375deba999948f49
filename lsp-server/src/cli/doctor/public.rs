//! Text that may be made public. The home folder is `~`, passwords of addresses go, and a path
//! that is neither Hone's, an editor's nor the system's is left out, because it may name a client
//! or a project.

use crate::cli::surroundings::Surroundings;
use host::addresses::name_of_file;
use host::paths::Paths;
use host::platform::files::HAS_DRIVES;
use std::path::Path;

/// Folders that are the same on every machine.
const SYSTEM: [&str; 7] = ["/usr/", "/dev/", "/proc/", "/sys/", "/etc/", "/opt/", "/Applications/"];

/// What stands for a path that is left out.
const LEFT_OUT: &str = "<path>";

/// Characters that a path may begin behind.
const BEFORE: [char; 9] = [' ', '\t', '\n', '"', '\'', '`', '(', '=', '['];

pub struct Public {
    /// The user's home folder; empty if there is none.
    home: String,
    /// The folders that are shown.
    own: Vec<String>,
}

impl Public {
    pub fn new(home: &Paths, around: &Surroundings) -> Public {
        let text = |path: &Path| name_of_file(path).into_owned();
        let program = around.program.parent().map(text);
        let editors = super::editors::folders(around);
        let mut own = vec![text(&home.paths().home)];
        own.extend(program);
        own.extend(editors.iter().map(|folder| text(folder)));
        own.retain(|folder| folder.len() > 1);
        Public { home: text(&around.home).trim_end_matches('/').to_owned(), own }
    }

    /// The text with what is private taken out of it.
    pub fn text(&self, text: &str) -> String {
        let mut text = without_passwords(text);
        if HAS_DRIVES {
            text = with_slashes(&text);
        }
        let mut shown = String::with_capacity(text.len());
        let mut rest = text.as_str();
        while let Some(at) = path_start(rest, shown.chars().next_back()) {
            shown.push_str(&rest[..at]);
            let (path, behind) = self.path(&rest[at..]);
            shown.push_str(&path);
            rest = behind;
        }
        shown + rest
    }

    /// The path with which a text begins, as it is shown, and what follows it.
    fn path<'t>(&self, text: &'t str) -> (String, &'t str) {
        if let Some(rest) = text.strip_prefix("file://") {
            return self.path(rest);
        }
        let own = self.own.iter().find(|folder| begins_with_folder(text, folder));
        if let Some(folder) = own {
            return (self.shortened(folder), &text[folder.len()..]);
        }
        // A path that is shown already has `~`.
        let shortened = self.own.iter().map(|folder| self.shortened(folder));
        let shortened = shortened.filter(|folder| begins_with_folder(text, folder)).max();
        if let Some(folder) = shortened {
            let length = folder.len();
            return (folder, &text[length..]);
        }
        if let Some(folder) = SYSTEM.iter().find(|folder| text.starts_with(**folder)) {
            return ((*folder).to_owned(), &text[folder.len()..]);
        }
        let mut words = text.split(|c: char| c.is_whitespace() || "\"'`,;)".contains(c));
        let word = words.next().unwrap_or_default();
        if word.ends_with("/hone") || word.ends_with("/hone.exe") {
            return (self.shortened(word), &text[word.len()..]);
        }
        // A name may have blanks, so the path continues to what cannot be a part of it.
        let end = [": ", ";", ", ", "\"", "'", "`", ")", "\n"];
        let end = end.iter().filter_map(|mark| text.find(mark)).min().unwrap_or(text.len());
        (LEFT_OUT.to_owned(), &text[end..])
    }

    fn shortened(&self, folder: &str) -> String {
        match folder.strip_prefix(&self.home) {
            Some(rest) if !self.home.is_empty() && (rest.is_empty() || rest.starts_with('/')) => {
                format!("~{rest}")
            }
            _ => folder.to_owned(),
        }
    }
}

fn begins_with_folder(text: &str, folder: &str) -> bool {
    let rest = text.strip_prefix(folder);
    rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || "-_.".contains(c)))
}

fn begins_with_drive(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic()) && text.get(1..3) == Some(":/")
}

/// The text with its paths as [`name_of_file`] writes them.
fn with_slashes(text: &str) -> String {
    let text = text.replace('\\', "/").replace("//?/", "");
    let mut parts = text.split(":/");
    let mut shown = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        // The letter before the colon is a drive, or the end of a scheme, which is small anyway.
        if let Some(letter) = shown.pop() {
            shown.push(letter.to_ascii_lowercase());
        }
        shown.push_str(":/");
        shown.push_str(part);
    }
    shown
}

/// Returns where the next path begins. `before` is the character before the text.
fn path_start(text: &str, before: Option<char>) -> Option<usize> {
    let mut before = before;
    for (at, c) in text.char_indices() {
        let rest = &text[at..];
        let begins = rest.starts_with("file:///")
            || ((rest.starts_with('/') || rest.starts_with("~/") || begins_with_drive(rest))
                && rest.chars().nth(1).is_some_and(|next| !next.is_whitespace()));
        if begins && before.is_none_or(|before| BEFORE.contains(&before)) {
            return Some(at);
        }
        before = Some(c);
    }
    None
}

/// `https://user:password@host` without what stands before the host.
fn without_passwords(text: &str) -> String {
    let mut parts = text.split("://");
    let mut shown = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|c: char| c.is_whitespace() || c == '/').unwrap_or(part.len());
        let host = part[..end].rfind('@').map_or(0, |at| at + 1);
        shown.push_str("://");
        shown.push_str(&part[host..]);
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn public() -> Public {
        let around = Surroundings {
            home: "/home/alice".into(),
            program: "/home/alice/bin/hone".into(),
            config: "/home/alice/.config".into(),
            nvim: "nvim".into(),
            ..Surroundings::default()
        };
        Public::new(&Paths::at("/home/alice/.local/share/hone".into()), &around)
    }

    #[test]
    fn a_path_with_a_drive_is_shown_in_one_way() {
        assert_eq!(with_slashes(r"C:\Users\a: no file; D:/b"), "c:/Users/a: no file; d:/b");
        let public = public();
        assert_eq!(public.text("c:/Users/alice/x: no file"), "<path>: no file");
        assert_eq!(public.text("\"d:/x/hone.exe\" is it"), "\"d:/x/hone.exe\" is it");
        assert_eq!(public.text("https://host/a"), "https://host/a");
    }

    #[test]
    fn only_paths_of_hone_and_of_the_system_are_shown() {
        let public = public();
        for (text, shown) in [
            (
                "/home/alice/.local/share/hone/config.toml:2: lab.max_tokens must be 3",
                "~/.local/share/hone/config.toml:2: lab.max_tokens must be 3",
            ),
            ("`/home/alice/bin/hone` is it", "`~/bin/hone` is it"),
            ("/home/alice/clients/acme corp/a.py: No such file", "<path>: No such file"),
            ("file:///home/alice/x.rs", "<path>"),
            ("~/clients/acme: denied", "<path>: denied"),
            ("(/mnt/alice/x y)", "(<path>)"),
            ("see /usr/lib/x, or \"/srv/y\"", "see /usr/lib/x, or \"<path>\""),
            ("/home/alice/old/hone, which", "~/old/hone, which"),
            ("in ~/.config/nvim/init.lua", "in ~/.config/nvim/init.lua"),
            ("1/2 and and/or / is no path", "1/2 and and/or / is no path"),
            ("http://alice:secret@proxy:3128/a", "http://proxy:3128/a"),
            ("nothing private", "nothing private"),
        ] {
            assert_eq!(public.text(text), shown);
            assert_eq!(public.text(shown), shown, "what is shown is shown again as it is");
        }
    }
}
