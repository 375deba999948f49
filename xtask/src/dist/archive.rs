//! The archive: `hone-VERSION-TARGET.tar.gz`, and `.zip` for Windows, where a folder unpacks by a
//! double click.

use super::contents::{Contents, File, LIBRARIES, Release, TEMPLATE};
use anyhow::{Context, Result};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::{Cursor, Write};
use std::slice;
use tar::{Builder, EntryType, Header};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

pub fn stem(release: &Release) -> String {
    format!("hone-{}-{}", release.version, release.target.name())
}

pub fn name(release: &Release) -> String {
    let ending = if release.target.is_windows() { "zip" } else { "tar.gz" };
    format!("{}.{ending}", stem(release))
}

pub fn make(release: &Release, contents: &Contents) -> Result<Vec<u8>> {
    let files = layout(&stem(release), contents);
    if release.target.is_windows() { zip(&files) } else { tar_gz(&files, release.time) }
}

/// A file of a package: its path in it, and whether it is a program.
pub struct Placed<'a> {
    pub path: String,
    pub file: &'a File,
    pub is_program: bool,
}

/// Places files in a folder of a package.
pub fn placed<'a>(folder: &str, files: &'a [File], is_program: bool) -> Vec<Placed<'a>> {
    let place =
        |file: &'a File| Placed { path: format!("{folder}/{}", file.name), file, is_program };
    files.iter().map(place).collect()
}

/// The programs lie in `bin`, so that the libraries are found from there.
fn layout<'a>(folder: &str, contents: &'a Contents) -> Vec<Placed<'a>> {
    let mut files = placed(&format!("{folder}/bin"), &contents.programs, true);
    files.extend(placed(&format!("{folder}/{LIBRARIES}"), &contents.libraries, false));
    files.extend(placed(&format!("{folder}/{TEMPLATE}"), &contents.template, false));
    let texts = [&contents.licences, slice::from_ref(&contents.readme)];
    for texts in texts.into_iter().chain([slice::from_ref(&contents.changelog)]) {
        files.extend(placed(folder, texts, false));
    }
    files
}

pub fn tar_gz(files: &[Placed], time: u64) -> Result<Vec<u8>> {
    let mut tar = Builder::new(GzEncoder::new(vec![], Compression::best()));
    let mut made = vec![];
    for placed in files {
        add_folders(&mut tar, &placed.path, time, &mut made)?;
        let mut header = header(EntryType::Regular, if placed.is_program { 0o755 } else { 0o644 });
        header.set_size(placed.file.bytes.len() as u64);
        header.set_mtime(time);
        let bytes = placed.file.bytes.as_slice();
        tar.append_data(&mut header, &placed.path, bytes).with_context(|| placed.path.clone())?;
    }
    Ok(tar.into_inner()?.finish()?)
}

/// Adds the folders above a path, each once. dpkg wants them.
fn add_folders<W: Write>(
    tar: &mut Builder<W>,
    path: &str,
    time: u64,
    made: &mut Vec<String>,
) -> Result<()> {
    for (at, _) in path.match_indices('/') {
        let folder = &path[..=at];
        if folder == "./" || made.iter().any(|own| own == folder) {
            continue;
        }
        let mut header = header(EntryType::Directory, 0o755);
        header.set_size(0);
        header.set_mtime(time);
        tar.append_data(&mut header, folder, std::io::empty())?;
        made.push(folder.to_owned());
    }
    Ok(())
}

/// Everything belongs to root, whoever made the package.
fn header(kind: EntryType, mode: u32) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_uid(0);
    header.set_gid(0);
    header
}

/// The zip of a Windows release or a wheel. Its files have zip's own first day as their time,
/// because a zip knows no time zone.
pub fn zip(files: &[Placed]) -> Result<Vec<u8>> {
    let mut zip = ZipWriter::new(Cursor::new(vec![]));
    for placed in files {
        let mode = if placed.is_program { 0o755 } else { 0o644 };
        let options = SimpleFileOptions::default()
            .compression_level(Some(9))
            .last_modified_time(zip::DateTime::default())
            .unix_permissions(mode);
        zip.start_file(placed.path.as_str(), options)?;
        zip.write_all(&placed.file.bytes)?;
    }
    Ok(zip.finish()?.into_inner())
}

#[cfg(test)]
mod tests {
    use super::super::contents::tests::sample;
    use super::super::target::Target;
    use super::*;
    use flate2::read::GzDecoder;
    use tar::Archive;
    use zip::ZipArchive;

    #[test]
    fn programs_can_be_run_and_find_their_libraries() {
        let (release, contents) = sample();
        let bytes = make(&release, &contents).unwrap();
        assert_eq!(bytes, make(&release, &contents).unwrap(), "the same input, the same bytes");
        let mut archive = Archive::new(GzDecoder::new(bytes.as_slice()));
        let found: Vec<(String, u32)> = archive
            .entries()
            .unwrap()
            .map(|entry| {
                let entry = entry.unwrap();
                let header = entry.header();
                assert_eq!(header.mtime().unwrap(), release.time);
                (entry.path().unwrap().display().to_string(), header.mode().unwrap())
            })
            .collect();
        let top = "hone-1.2.3-linux-x64/";
        let has = |path: &str, mode| found.contains(&(format!("{top}{path}"), mode));
        assert!(has("bin/hone", 0o755), "{found:?}");
        assert!(has("bin/hone-learner", 0o755), "{found:?}");
        assert!(has("lib/hone/libllama.so.0", 0o644), "{found:?}");
        assert!(has("THIRD-PARTY.txt", 0o644), "{found:?}");
        assert!(has("share/hone/jetbrains/template.json", 0o644), "{found:?}");
        assert!(found.iter().all(|(path, _)| path.starts_with(top)), "one folder: {found:?}");
    }

    #[test]
    fn windows_gets_a_zip() {
        let (mut release, contents) = sample();
        release.target = Target::Win32X64;
        assert_eq!(name(&release), "hone-1.2.3-win32-x64.zip");
        let bytes = make(&release, &contents).unwrap();
        let mut archive = ZipArchive::new(Cursor::new(bytes)).unwrap();
        let file = archive.by_name("hone-1.2.3-win32-x64/bin/hone").unwrap();
        assert_eq!(file.size(), 4);
    }
}
