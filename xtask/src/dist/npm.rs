//! The packages for npm: one for the target, with the programs, and one for all, whose launcher
//! starts those of the machine. npm installs of the optional dependencies the one that fits by its
//! `os`, `cpu` and `libc`, so no script runs at the installation.

use super::archive::{Placed, placed, tar_gz};
use super::contents::{Contents, File, LIBRARIES, NOTICES, Release};
use super::target::Target;
use super::wheel::{PYPI_NAME as NAME, SUMMARY};
use anyhow::Result;
use clap::ValueEnum;
use serde_json::{Map, Value, json};
use std::slice;

const LAUNCHER: &str = include_str!("../../packaging/npm/hone.js");

/// The folder of a package in its file.
const FOLDER: &str = "package";

/// The names of both packages' files, as `npm pack` gives them, and the files.
pub fn make(release: &Release, contents: &Contents) -> Result<[(String, Vec<u8>); 2]> {
    let licences = || placed(FOLDER, &contents.licences, false);
    let mut own = licences();
    own.extend(placed(&format!("{FOLDER}/bin"), &contents.programs, true));
    own.extend(placed(&format!("{FOLDER}/{LIBRARIES}"), &contents.libraries, false));
    let launcher = [File::text("hone.js", LAUNCHER.to_owned())];
    let mut all = licences();
    all.retain(|licence| licence.file.name != NOTICES);
    all.extend(placed(FOLDER, slice::from_ref(&contents.readme), false));
    all.extend(placed(FOLDER, &launcher, true));
    Ok([package(release, &of_target(release), own)?, package(release, &of_all(release), all)?])
}

fn package(release: &Release, manifest: &Value, files: Vec<Placed>) -> Result<(String, Vec<u8>)> {
    let own = [File::text("package.json", serde_json::to_string_pretty(manifest)? + "\n")];
    let mut files = files;
    files.extend(placed(FOLDER, &own, false));
    let name = manifest["name"].as_str().unwrap_or_default();
    Ok((format!("{name}-{}.tgz", release.version), tar_gz(&files, release.time)?))
}

fn name(target: Target) -> String {
    format!("{NAME}-{}", target.name())
}

fn manifest(release: &Release, name: &str, more: Value) -> Value {
    let mut manifest = json!({
        "name": name,
        "version": release.version,
        "description": SUMMARY,
        "license": "Apache-2.0 OR MIT",
        "repository": { "type": "git", "url": format!("git+{}.git", env!("CARGO_PKG_REPOSITORY")) },
    });
    if let (Value::Object(fields), Value::Object(more)) = (&mut manifest, more) {
        fields.extend(more);
    }
    manifest
}

fn of_target(release: &Release) -> Value {
    let target = release.target.name();
    let (system, cpu) = target.split_once('-').unwrap_or((&target, ""));
    let (os, libc) = match system {
        "alpine" => ("linux", Some("musl")),
        "linux" => ("linux", Some("glibc")),
        other => (other, None),
    };
    let mut more = json!({ "os": [os], "cpu": [cpu], "preferUnplugged": true });
    if let Some(libc) = libc {
        more["libc"] = json!([libc]);
    }
    manifest(release, &name(release.target), more)
}

fn of_all(release: &Release) -> Value {
    let targets = Target::value_variants().iter();
    let packages: Map<_, _> =
        targets.map(|target| (name(*target), json!(release.version))).collect();
    manifest(
        release,
        NAME,
        json!({
            "bin": { "hone": "hone.js" },
            "engines": { "node": ">=18" },
            "optionalDependencies": packages,
        }),
    )
}

#[cfg(test)]
mod tests {
    use super::super::contents::tests::sample;
    use super::*;
    use flate2::read::GzDecoder;
    use std::io::Read;

    fn files(bytes: &[u8]) -> Vec<(String, u32, String)> {
        let mut archive = tar::Archive::new(GzDecoder::new(bytes));
        let entries = archive.entries().unwrap().map(|entry| {
            let mut entry = entry.unwrap();
            let mut text = String::new();
            entry.read_to_string(&mut text).unwrap();
            let path = entry.path().unwrap().display().to_string();
            (path, entry.header().mode().unwrap(), text)
        });
        entries.collect()
    }

    fn manifest_in(files: &[(String, u32, String)]) -> Value {
        let found = files.iter().find(|(path, ..)| path == "package/package.json");
        serde_json::from_str(&found.expect("a manifest").2).unwrap()
    }

    #[test]
    fn the_launcher_depends_on_the_package_of_each_target_in_this_version() {
        let (mut release, contents) = sample();
        let [(own, bytes), (all, launcher)] = make(&release, &contents).unwrap();
        assert_eq!(own, "hone-completion-linux-x64-1.2.3.tgz");
        assert_eq!(all, "hone-completion-1.2.3.tgz");
        let (own, all) = (files(&bytes), files(&launcher));
        let has =
            |path: &str, mode| own.iter().any(|(own, m, _)| (own.as_str(), *m) == (path, mode));
        assert!(has("package/bin/hone", 0o755) && has("package/lib/hone/libllama.so.0", 0o644));
        let (own, all) = (manifest_in(&own), manifest_in(&all));
        assert_eq!((&own["os"], &own["cpu"]), (&json!(["linux"]), &json!(["x64"])));
        assert_eq!(own["libc"], json!(["glibc"]));
        assert_eq!(all["optionalDependencies"].as_object().unwrap().len(), 6);
        assert_eq!(all["optionalDependencies"]["hone-completion-linux-x64"], "1.2.3");
        for manifest in [&own, &all] {
            assert!(manifest.get("scripts").is_none(), "nothing runs at the installation");
        }
        release.target = Target::AlpineX64;
        assert_eq!(of_target(&release)["libc"], json!(["musl"]));
        release.target = Target::Win32X64;
        assert_eq!(of_target(&release)["os"], json!(["win32"]));
        assert!(of_target(&release).get("libc").is_none());
    }
}
