//! The wheel for PyPI: the programs and nothing of Python, as ruff and uv come. A wheel is a zip
//! with three files that describe it, by
//! <https://packaging.python.org/en/latest/specifications/binary-distribution-format/>.

use super::archive::{Placed, placed, zip};
use super::contents::{Contents, File, LIBRARIES, Release, TEMPLATE};
use super::linkage::Linkage;
use super::target::{MACOS_MIN, Target};
use anyhow::{Context, Result};
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};
use std::fmt::Write;

/// The name on PyPI, where another project is called `hone`.
pub const PYPI_NAME: &str = "hone-completion";

pub const SUMMARY: &str =
    "Code completion that learns from what you accept and reject, on your machine";

pub struct Wheel {
    pub name: String,
    pub bytes: Vec<u8>,
}

pub fn make(release: &Release, contents: &Contents, linkage: &Linkage) -> Result<Wheel> {
    let tag = format!("py3-none-{}", platform(release.target, linkage)?);
    let stem = format!("{}-{}", PYPI_NAME.replace('-', "_"), release.version);
    let info = format!("{stem}.dist-info");
    let about =
        [File::text("METADATA", metadata(release, contents)), File::text("WHEEL", wheel(&tag))];
    // An installer puts these into the environment's `bin` and marks them as programs.
    let mut files = placed(&format!("{stem}.data/scripts"), &contents.programs, true);
    // These go below the environment itself, so `../lib/hone` is right for the programs.
    let libraries = format!("{stem}.data/data/{LIBRARIES}");
    files.extend(placed(&libraries, &contents.libraries, false));
    let template = format!("{stem}.data/data/{TEMPLATE}");
    files.extend(placed(&template, &contents.template, false));
    files.extend(placed(&format!("{info}/licenses"), &contents.licences, false));
    files.extend(placed(&info, &about, false));
    let record = [File::text("RECORD", record(&files, &info))];
    files.extend(placed(&info, &record, false));
    Ok(Wheel { name: format!("{stem}-{tag}.whl"), bytes: zip(&files)? })
}

/// The platform of the tag. On Linux it depends on what the programs need: where that is more than
/// an old C library, the tag says that they fit the machine they were built on, and PyPI refuses
/// them.
fn platform(target: Target, linkage: &Linkage) -> Result<String> {
    let manylinux = |arch: &str| {
        let glibc = linkage.glibc();
        let (major, minor) = glibc.context("the programs do not say which glibc they need")?;
        Ok(if linkage.is_manylinux() {
            format!("manylinux_{major}_{minor}_{arch}")
        } else {
            format!("linux_{arch}")
        })
    };
    let macos = MACOS_MIN.replace('.', "_");
    match target {
        Target::LinuxX64 => manylinux("x86_64"),
        Target::LinuxArm64 => manylinux("aarch64"),
        Target::AlpineX64 => Ok("musllinux_1_2_x86_64".to_owned()),
        Target::DarwinArm64 => Ok(format!("macosx_{macos}_arm64")),
        Target::DarwinX64 => Ok(format!("macosx_{macos}_x86_64")),
        Target::Win32X64 => Ok("win_amd64".to_owned()),
    }
}

fn metadata(release: &Release, contents: &Contents) -> String {
    let mut text = format!(
        "Metadata-Version: 2.4\nName: {PYPI_NAME}\nVersion: {}\nSummary: {SUMMARY}\n\
         License-Expression: Apache-2.0 OR MIT\n",
        release.version
    );
    for licence in &contents.licences {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "License-File: {}", licence.name);
    }
    let repository = env!("CARGO_PKG_REPOSITORY");
    let _ = write!(
        text,
        "Project-URL: Repository, {repository}\n\
         Project-URL: Changelog, {repository}/blob/main/CHANGELOG.md\n\
         Classifier: Environment :: Console\n\
         Classifier: Programming Language :: Rust\n\
         Requires-Python: >=3.8\n\
         Description-Content-Type: text/markdown\n\n\
         # Hone\n\n{SUMMARY}.\n\n\
         This package has the programs `hone`, `hone-learner` and `hone-rehearse`, and no Python \
         code. `uv tool install {PYPI_NAME}` installs them, `hone model pull` fetches a model, \
         and the editors' plugins start `hone lsp`.\n\n\
         [The project]({repository})\n"
    );
    text
}

fn wheel(tag: &str) -> String {
    format!("Wheel-Version: 1.0\nGenerator: cargo xtask dist\nRoot-Is-Purelib: false\nTag: {tag}\n")
}

/// Each file with its checksum; the record itself has none.
fn record(files: &[Placed], info: &str) -> String {
    let mut text = String::new();
    for Placed { path, file, .. } in files {
        let sum = BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(&file.bytes));
        let _ = writeln!(text, "{path},sha256={sum},{}", file.bytes.len());
    }
    text + &format!("{info}/RECORD,,\n")
}

#[cfg(test)]
mod tests {
    use super::super::contents::tests::sample;
    use super::*;
    use clap::ValueEnum;
    use std::io::{Cursor, Read};
    use zip::ZipArchive;

    #[test]
    fn every_file_of_a_wheel_is_in_its_record() {
        let (mut release, contents) = sample();
        release.target = Target::DarwinArm64;
        let wheel = make(&release, &contents, &Linkage::default()).unwrap();
        assert_eq!(wheel.name, "hone_completion-1.2.3-py3-none-macosx_11_0_arm64.whl");
        let mut archive = ZipArchive::new(Cursor::new(wheel.bytes)).unwrap();
        let mut record = String::new();
        let info = "hone_completion-1.2.3.dist-info";
        let mut file = archive.by_name(&format!("{info}/RECORD")).unwrap();
        file.read_to_string(&mut record).unwrap();
        drop(file);
        let mut recorded: Vec<&str> =
            record.lines().filter_map(|line| line.split(',').next()).collect();
        let mut names: Vec<&str> = archive.file_names().collect();
        recorded.sort_unstable();
        names.sort_unstable();
        assert_eq!(recorded, names);
        // The checksum of "hone", by `printf hone | openssl dgst -sha256 -binary | base64`, in
        // the alphabet of addresses and without padding.
        let line = "hone_completion-1.2.3.data/scripts/hone,\
                    sha256=ZSj4S3uGU9dtoDgFS9QzgIDV9haYHJm1vGAqF9tJK0E,4";
        assert!(record.lines().any(|own| own == line), "{record}");
        let script = archive.by_name("hone_completion-1.2.3.data/scripts/hone").unwrap();
        assert_eq!(script.unix_mode().unwrap() & 0o777, 0o755);
    }

    #[test]
    fn a_wheel_for_linux_promises_no_more_than_its_programs_keep() {
        for target in Target::value_variants() {
            let of_no_glibc = platform(*target, &Linkage::default());
            assert_eq!(of_no_glibc.is_err(), target.debian().is_some(), "{target:?}");
        }
        let old = Linkage::sample(&["GLIBC_2.28"], &["libc.so.6"]);
        assert_eq!(platform(Target::LinuxArm64, &old).unwrap(), "manylinux_2_28_aarch64");
        let openmp = Linkage::sample(&["GLIBC_2.28"], &["libc.so.6", "libgomp.so.1"]);
        assert_eq!(platform(Target::LinuxX64, &openmp).unwrap(), "linux_x86_64");
    }
}
