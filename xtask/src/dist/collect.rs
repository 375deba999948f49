//! What a release has once, and not for each target: the checksums of all packages, the notes, and
//! the files of package managers, which name those checksums.

use super::{checksums, packaging, version};
use crate::files;
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::Path;

const NOTES: &str = "NOTES.md";

/// The folder of the package managers' files, next to the packages.
const MANAGERS: &str = "managers";

pub fn run(root: &Path, out: &Path, is_partial: bool) -> Result<()> {
    let changelog = fs::read_to_string(root.join("CHANGELOG.md")).context("CHANGELOG.md")?;
    // The notes are in no package, and so not among the checksums.
    let managers = out.join(MANAGERS);
    files::make_folder(&managers)?;
    let sums = checksums::write(out)?;
    ensure!(!sums.is_empty(), "{}: holds no package of any target", out.display());
    packaging::fill(root, &managers, version(), &sums, is_partial)?;
    let notes = notes(&changelog, version())?;
    fs::write(managers.join(NOTES), notes).with_context(|| NOTES.to_owned())?;
    eprintln!("{}: {} packages, and {MANAGERS}", out.display(), sums.len());
    Ok(())
}

/// Returns the part of the changelog on this version.
fn notes(changelog: &str, version: &str) -> Result<String> {
    let is_heading = |line: &&str| line.starts_with("## ");
    let is_own = |line: &str| {
        let title = line.trim_start_matches("## ").trim();
        title == version || title.starts_with(&format!("{version} "))
    };
    let mut lines = changelog.lines().skip_while(|line| !(is_heading(line) && is_own(line)));
    lines.next().with_context(|| {
        format!("CHANGELOG.md has no heading `## {version}`; rename `## Unreleased` to it")
    })?;
    let own: Vec<&str> = lines.take_while(|line| !is_heading(line)).collect();
    let text = own.join("\n").trim().to_owned();
    ensure!(!text.is_empty(), "CHANGELOG.md says nothing below `## {version}`");
    Ok(text + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_notes_are_those_of_the_version() {
        let changelog = "# Changelog\n\n## Unreleased\n\n- next\n\n## 1.2.3 (2026-01-02)\n\n\
                         - one\n\n### More\n\n- two\n\n## 1.2.30\n\n- old\n\n## 1.0.0\n";
        assert_eq!(notes(changelog, "1.2.3").unwrap(), "- one\n\n### More\n\n- two\n");
        assert_eq!(notes(changelog, "1.2.30").unwrap(), "- old\n");
        let error = notes(changelog, "2.0.0").unwrap_err().to_string();
        assert!(error.contains("rename `## Unreleased`"), "{error}");
        assert!(notes(changelog, "1.0.0").is_err(), "an empty part is none");
    }
}
