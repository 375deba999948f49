//! The licences of the packages that are linked into the programs, as one text. `cargo-about` would
//! do the same and takes minutes to compile. Its other use, to refuse a licence, is deny.toml's.

use super::dependencies::{Package, Packages};
use crate::files;
use anyhow::{Context, Result, ensure};
use std::collections::BTreeMap;
use std::fs;

/// The beginnings of the names of files with licences, in lower case.
const NAMES: [&str; 6] = ["licence", "license", "copying", "copyright", "notice", "unlicense"];

/// The endings of such names. Code that deals with licences has other endings.
const ENDINGS: [&str; 3] = ["", "md", "txt"];

/// The text for a package that has no licence file, with its authors.
const MIT: &str = include_str!("../../../LICENSE-MIT");

const APACHE: &str = include_str!("../../../LICENSE-APACHE");

pub fn text(packages: &Packages) -> Result<String> {
    // Many packages have the same text, letter by letter.
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (key, package) in packages.iter().filter(|(_, package)| !package.is_own) {
        for (place, text) in licences(package).with_context(|| key.clone())? {
            texts.entry(text).or_default().push(format!("{key} ({}){place}", package.licence));
        }
    }
    ensure!(!texts.is_empty(), "no package of others is linked, which cannot be");
    let mut blocks: Vec<(Vec<String>, String)> =
        texts.into_iter().map(|(text, users)| (users, text)).collect();
    blocks.sort();
    let rule = "-".repeat(80);
    let mut out = String::from(
        "Hone's programs contain the packages below, under the licences that follow their names.\n",
    );
    for (users, text) in blocks {
        out += &format!("\n{rule}\n{}\n\n{text}\n", users.join("\n"));
    }
    Ok(out)
}

/// The licence texts of a package, each with the place in the package if it is not at the top.
fn licences(package: &Package) -> Result<Vec<(String, String)>> {
    let mut found = vec![];
    for file in files::below(&package.folder)? {
        if !is_licence(&files::name(&file)) {
            continue;
        }
        let bytes = fs::read(&file).with_context(|| file.display().to_string())?;
        let text = String::from_utf8_lossy(&bytes).trim().replace("\r\n", "\n");
        let below = file.parent().and_then(|folder| folder.strip_prefix(&package.folder).ok());
        let place = match below.map(|folder| folder.display().to_string()) {
            Some(folder) if !folder.is_empty() => format!(", its folder {folder}"),
            _ => String::new(),
        };
        // A file that only names another one is no text.
        if !text.is_empty() {
            found.push((place, text));
        }
    }
    let has_own = found.iter().any(|(place, _)| place.is_empty());
    if !has_own {
        found.push((String::new(), standard(package)?));
    }
    Ok(found)
}

fn is_licence(name: &str) -> bool {
    let name = name.to_lowercase();
    let rest = NAMES.iter().find_map(|begin| name.strip_prefix(begin));
    // `LICENSE-MIT`, `LICENSE.md` and `LICENSE-2.0.txt` are texts, and `license.cmake` is none.
    rest.is_some_and(|rest| match rest.rsplit_once('.') {
        Some((_, ending)) => ENDINGS.contains(&ending) || ending.starts_with(char::is_numeric),
        None => rest.is_empty() || rest.starts_with(['-', '_']),
    })
}

/// The text of the licence that a package declares and does not bring.
fn standard(package: &Package) -> Result<String> {
    let authors = match package.authors.join(", ") {
        none if none.is_empty() => format!("the authors of {}", package.name),
        authors => authors,
    };
    let said = format!("The package brings no licence text. It is by {authors}.\n\n");
    let offered: Vec<&str> = package.licence.split(" OR ").map(str::trim).collect();
    if offered.contains(&"Apache-2.0") {
        return Ok(said + APACHE.trim());
    }
    ensure!(
        offered.contains(&"MIT"),
        "{} brings no licence text, and {} is not known here; add its text to notices.rs",
        package.name,
        package.licence
    );
    let grant =
        MIT.find("Permission is hereby granted").context("LICENSE-MIT is no MIT licence")?;
    Ok(format!("{said}Copyright (c) {authors}\n\n{}", MIT[grant..].trim()))
}

#[cfg(test)]
mod tests {
    use super::super::dependencies::tests::sample;
    use super::*;
    use tempfile::TempDir;

    fn package(files: &[(&str, &str)], licence: &str) -> (TempDir, Packages) {
        let folder = TempDir::new().unwrap();
        for (path, text) in files {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let mut packages = sample();
        let serde = packages.get_mut("serde 1.0.0").unwrap();
        serde.folder = folder.path().to_owned();
        serde.licence = licence.to_owned();
        (folder, packages)
    }

    #[test]
    fn every_licence_of_a_package_is_there_and_of_what_it_vendors() {
        let (_folder, packages) = package(
            &[
                ("LICENSE-MIT", "MIT of serde"),
                ("vendor/hash/LICENSE", "MIT of hash"),
                ("license.cmake", "set(LICENSE)"),
                ("src/licence.rs", "fn licence() {}"),
            ],
            "MIT",
        );
        let text = text(&packages).unwrap();
        assert!(text.contains("serde 1.0.0 (MIT)\n\nMIT of serde\n"), "{text}");
        assert!(text.contains("(MIT), its folder vendor/hash\n\nMIT of hash\n"), "{text}");
        assert!(!text.contains("set(LICENSE)") && !text.contains("fn licence"), "{text}");
        assert!(!text.contains("hone 1.0.0"), "our own packages have our own licence: {text}");
    }

    #[test]
    fn a_package_without_a_text_gets_the_declared_one() {
        let (_folder, packages) = package(&[("README.md", "")], "MIT");
        let text = text(&packages).unwrap();
        assert!(text.contains("Copyright (c) Ada\n\nPermission is hereby granted"), "{text}");
        let (_folder, packages) = package(&[], "LGPL-3.0");
        let error = format!("{:#}", super::text(&packages).unwrap_err());
        assert!(error.contains("LGPL-3.0 is not known here"), "{error}");
    }
}
