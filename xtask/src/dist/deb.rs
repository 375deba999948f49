//! The package for Debian and Ubuntu: `hone_VERSION_ARCH.deb`. It is an `ar` archive of three
//! members, by deb(5). It needs no program of Debian to be made.

use super::archive::{placed, tar_gz};
use super::contents::{Contents, File, LIBRARIES, NOTICES, Release, TEMPLATE};
use super::linkage::Linkage;
use anyhow::{Context, Result};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write;

const MAINTAINER: &str = "The Hone project <maintainers@hone-dev.example>";

const DESCRIPTION: &str = "\
code completion that learns from what you accept and reject
 Hone completes the code you type with a small model on your own machine. Each
 time you accept or reject an offer it learns what you want. It uses the network
 only to fetch a model.
";

pub fn name(release: &Release, arch: &str) -> String {
    format!("hone_{}_{arch}.deb", release.version)
}

pub fn make(
    release: &Release,
    contents: &Contents,
    linkage: &Linkage,
    arch: &str,
) -> Result<Vec<u8>> {
    let documents = documents(contents)?;
    let mut files = placed("./usr/bin", &contents.programs, true);
    files.extend(placed(&format!("./usr/{LIBRARIES}"), &contents.libraries, false));
    files.extend(placed(&format!("./usr/{TEMPLATE}"), &contents.template, false));
    files.extend(placed("./usr/share/doc/hone", &documents, false));
    let control = [File::text("control", control(release, contents, linkage, arch)?)];
    let control = placed(".", &control, false);
    let mut deb = ar::Builder::new(vec![]);
    for (name, bytes) in [
        ("debian-binary", b"2.0\n".to_vec()),
        ("control.tar.gz", tar_gz(&control, release.time)?),
        ("data.tar.gz", tar_gz(&files, release.time)?),
    ] {
        let mut header = ar::Header::new(name.as_bytes().to_vec(), bytes.len() as u64);
        header.set_mtime(release.time);
        header.set_mode(0o100_644);
        deb.append(&header, bytes.as_slice()).with_context(|| name.to_owned())?;
    }
    Ok(deb.into_inner()?)
}

fn control(
    release: &Release,
    contents: &Contents,
    linkage: &Linkage,
    arch: &str,
) -> Result<String> {
    Ok(format!(
        "Package: hone\n\
         Version: {}\n\
         Architecture: {arch}\n\
         Maintainer: {MAINTAINER}\n\
         Installed-Size: {}\n\
         Depends: {}\n\
         Recommends: ca-certificates\n\
         Section: devel\n\
         Priority: optional\n\
         Homepage: {}\n\
         Description: {DESCRIPTION}",
        release.version,
        contents.bytes().div_ceil(1024),
        linkage.debian_packages()?.join(", "),
        env!("CARGO_PKG_REPOSITORY"),
    ))
}

/// Debian wants `copyright` to be short, and has the Apache licence itself. A file called
/// `changelog` would have to be in Debian's own form.
fn documents(contents: &Contents) -> Result<Vec<File>> {
    const APACHE: &[u8] = b"\nThe Apache licence is in /usr/share/common-licenses/Apache-2.0, and \
        the licences of others\nthat parts of the programs have are in THIRD-PARTY.txt.gz.\n\n";
    let licence = |name: &str| {
        let found = contents.licences.iter().find(|file| file.name == name);
        found.map(|file| file.bytes.as_slice()).with_context(|| format!("{name} is missing"))
    };
    let copyright = [licence("LICENSE")?, APACHE, licence("LICENSE-MIT")?].concat();
    Ok(vec![
        File { name: "copyright".to_owned(), bytes: copyright },
        File { name: "THIRD-PARTY.txt.gz".to_owned(), bytes: gzip(licence(NOTICES)?)? },
        File { name: "NEWS.gz".to_owned(), bytes: gzip(&contents.changelog.bytes)? },
    ])
}

fn gzip(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut gzip = GzEncoder::new(vec![], Compression::best());
    gzip.write_all(bytes)?;
    Ok(gzip.finish()?)
}

#[cfg(test)]
mod tests {
    use super::super::contents::tests::sample;
    use super::*;
    use flate2::read::GzDecoder;
    use std::io::Read;

    #[test]
    fn a_deb_has_its_three_members_and_says_what_it_needs() {
        let (release, contents) = sample();
        let linkage = Linkage::sample(&["GLIBC_2.28"], &["libc.so.6", "libgcc_s.so.1"]);
        let deb = make(&release, &contents, &linkage, "amd64").unwrap();
        let mut archive = ar::Archive::new(deb.as_slice());
        let mut names = vec![];
        let mut control = String::new();
        let mut paths = vec![];
        while let Some(member) = archive.next_entry() {
            let mut member = member.unwrap();
            let name = String::from_utf8(member.header().identifier().to_vec()).unwrap();
            let mut bytes = vec![];
            member.read_to_end(&mut bytes).unwrap();
            if name.ends_with(".tar.gz") {
                let mut tar = tar::Archive::new(GzDecoder::new(bytes.as_slice()));
                for file in tar.entries().unwrap() {
                    let mut file = file.unwrap();
                    paths.push(file.path().unwrap().display().to_string());
                    if name.starts_with("control") && file.header().entry_type().is_file() {
                        file.read_to_string(&mut control).unwrap();
                    }
                }
            }
            names.push(name);
        }
        assert_eq!(names, ["debian-binary", "control.tar.gz", "data.tar.gz"]);
        assert!(control.contains("\nVersion: 1.2.3\nArchitecture: amd64\n"), "{control}");
        assert!(control.contains("\nDepends: libc6 (>= 2.28), libgcc-s1\n"), "{control}");
        for path in ["usr/bin/hone", "usr/lib/hone/libllama.so.0", "usr/share/doc/hone/copyright"] {
            assert!(paths.iter().any(|own| own.ends_with(path)), "{path}: {paths:?}");
        }
    }
}
