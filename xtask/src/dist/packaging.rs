//! The files of package managers. Their templates lie in `xtask/packaging`, and a release fills in
//! its version and the checksums of its packages.

use super::checksums::Sums;
use crate::files;
use anyhow::{Context, Result, bail};
use minijinja::{Environment, Error, ErrorKind, UndefinedBehavior, context};
use std::fs;
use std::path::Path;

const TEMPLATES: &str = "xtask/packaging";

/// The ending of a template's name.
const ENDING: &str = ".j2";

/// Fills in every template. A template that names a package that is not there is an error, or is
/// left out if `is_partial` is set.
pub fn fill(root: &Path, out: &Path, version: &str, sums: &Sums, is_partial: bool) -> Result<()> {
    let templates = root.join(TEMPLATES);
    let environment = environment(sums.clone());
    let mut missing = vec![];
    for template in files::below(&templates)? {
        let name = template.strip_prefix(&templates)?.display().to_string();
        if !name.ends_with(ENDING) {
            continue;
        }
        let text = fs::read_to_string(&template).with_context(|| name.clone())?;
        let path = out.join(name.trim_end_matches(ENDING));
        match environment.render_str(&text, context!(version, repository => repository())) {
            Ok(filled) => {
                files::make_folder(&path.with_file_name(""))?;
                fs::write(&path, filled).with_context(|| path.display().to_string())?;
            }
            Err(error) => missing.push(format!("{name}: {error}")),
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    let all = missing.join("\n");
    if !is_partial {
        bail!("not every package manager's file could be made:\n{all}");
    }
    eprintln!("left out:\n{all}");
    Ok(())
}

fn repository() -> &'static str {
    env!("CARGO_PKG_REPOSITORY")
}

fn environment(sums: Sums) -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_keep_trailing_newline(true);
    environment.add_function("sha256", move |name: &str| {
        let missing = || {
            let what = format!("{name} is not among the packages");
            Error::new(ErrorKind::InvalidOperation, what)
        };
        sums.get(name).cloned().ok_or_else(missing)
    });
    environment
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dist::archive;
    use crate::dist::contents::Release;
    use crate::dist::target::Target;
    use clap::ValueEnum;
    use tempfile::TempDir;

    fn root() -> &'static Path {
        Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
    }

    /// The archives of all targets, each with its own sum.
    fn sums() -> Sums {
        let sum = |(at, target): (usize, &Target)| {
            let release = Release { version: "1.2.3".to_owned(), target: *target, time: 0 };
            (archive::name(&release), format!("{at:064x}"))
        };
        Target::value_variants().iter().enumerate().map(sum).collect()
    }

    #[test]
    fn every_template_names_packages_that_a_release_has() {
        let out = TempDir::new().unwrap();
        fill(root(), out.path(), "1.2.3", &sums(), false).unwrap();
        let formula = fs::read_to_string(out.path().join("homebrew/hone.rb")).unwrap();
        assert!(formula.contains("version \"1.2.3\""), "{formula}");
        assert!(formula.contains(&sums()["hone-1.2.3-darwin-arm64.tar.gz"]), "{formula}");
        let scoop = fs::read_to_string(out.path().join("scoop/hone.json")).unwrap();
        let scoop: serde_json::Value = serde_json::from_str(&scoop).unwrap();
        let sum = &sums()["hone-1.2.3-win32-x64.zip"];
        assert_eq!(&scoop["architecture"]["64bit"]["hash"], sum);
    }

    #[test]
    fn a_missing_package_is_an_error_unless_a_part_was_asked_for() {
        let out = TempDir::new().unwrap();
        let mut sums = sums();
        sums.remove("hone-1.2.3-win32-x64.zip");
        let error = fill(root(), out.path(), "1.2.3", &sums, false).unwrap_err().to_string();
        assert!(error.contains("scoop/hone.json.j2"), "{error}");
        assert!(error.contains("hone-1.2.3-win32-x64.zip is not among"), "{error}");
        fill(root(), out.path(), "1.2.3", &sums, true).unwrap();
        assert!(!out.path().join("scoop/hone.json").exists());
        assert!(out.path().join("homebrew/hone.rb").exists());
    }
}
