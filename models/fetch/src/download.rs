//! Fetches one file over HTTPS, and resumes where an earlier attempt broke off.

use crate::limits::{
    CONNECT_TIMEOUT, FRUITLESS_ATTEMPTS_MAX, RESPONSE_TIMEOUT, RETRY_WAIT, STALL_TIMEOUT,
};
use crate::progress::PullProgress;
use crate::proxy;
use models::limits::CHUNK_BYTES;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::thread;
use ureq::http::{Response, StatusCode, header};
use ureq::tls::{RootCerts, TlsConfig};
use ureq::{Agent, Body};

/// The reason why a file did not arrive.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The source is at fault. Another one may do better.
    Source(String),
    /// This machine is at fault. No source will do better.
    Local { path: PathBuf, error: io::Error },
}

impl Fault {
    pub fn local(path: &Path) -> impl FnOnce(io::Error) -> Fault {
        |error| Fault::Local { path: path.to_owned(), error }
    }
}

/// Returns a client that trusts the certificates that the system trusts, and takes its proxy from
/// the environment. A company's own CA works with it, and so does SSL_CERT_FILE. `addresses` are
/// those that are known to be asked.
pub(crate) fn agent(addresses: &[&str]) -> Agent {
    let tls = TlsConfig::builder().root_certs(RootCerts::PlatformVerifier).build();
    Agent::config_builder()
        .tls_config(tls)
        .proxy(proxy::of_environment(addresses))
        .http_status_as_error(false)
        .user_agent(concat!("hone/", env!("CARGO_PKG_VERSION")))
        .timeout_connect(Some(CONNECT_TIMEOUT))
        .timeout_recv_response(Some(RESPONSE_TIMEOUT))
        .timeout_per_read(Some(STALL_TIMEOUT))
        .build()
        .new_agent()
}

/// Appends to `to` until it holds all of `url`. If `to` exists, it must hold the beginning
/// of the file. A transfer that breaks off is resumed as long as each attempt brings new
/// bytes. The bytes that came are kept in any case. No more than `max_bytes` are written,
/// whatever the server sends.
pub(crate) fn fetch(
    agent: &Agent,
    url: &str,
    to: &Path,
    max_bytes: u64,
    progress: &mut dyn PullProgress,
) -> Result<(), Fault> {
    let mut fruitless = 0;
    loop {
        let before = length(to);
        let response = request(agent, url, before)?;
        let broken = match receive(response, to, before, max_bytes, progress)? {
            Received::All => return Ok(()),
            Received::Restart => {
                fs::remove_file(to).map_err(Fault::local(to))?;
                "what is here is longer than the file".to_owned()
            }
            Received::BrokenOff(why) => why,
        };
        fruitless = if length(to) > before { 0 } else { fruitless + 1 };
        if fruitless == FRUITLESS_ATTEMPTS_MAX {
            return Err(Fault::Source(broken));
        }
        thread::sleep(RETRY_WAIT * 2u32.pow(fruitless));
    }
}

/// Fetches a small text, such as an index page.
pub(crate) fn text(
    agent: &Agent,
    url: &str,
    accept: &str,
    max_bytes: u64,
) -> Result<String, Fault> {
    let mut response = agent.get(url).header(header::ACCEPT, accept).call().map_err(unanswered)?;
    check_status(&response)?;
    let body = response.body_mut().with_config().limit(max_bytes);
    body.read_to_string().map_err(unanswered)
}

/// The advice on a system without certificates, which is what a bare container is.
const GET_CERTIFICATES: &str = "; install your system's certificates (`ca-certificates` on Debian \
                                and Ubuntu), or name a file of them in SSL_CERT_FILE";

/// A request that got no answer.
fn unanswered(error: ureq::Error) -> Fault {
    let why = error.to_string();
    let fix = if why.contains("No CA certificates") { GET_CERTIFICATES } else { "" };
    Fault::Source(why + fix)
}

fn request(agent: &Agent, url: &str, from: u64) -> Result<Response<Body>, Fault> {
    let mut request = agent.get(url);
    if from > 0 {
        request = request.header(header::RANGE, format!("bytes={from}-"));
    }
    request.call().map_err(unanswered)
}

fn check_status(response: &Response<Body>) -> Result<(), Fault> {
    match response.status() {
        status if status.is_success() => Ok(()),
        status => Err(Fault::Source(format!("HTTP {status}"))),
    }
}

enum Received {
    All,
    /// The bytes that are here are not the beginning of the server's file.
    Restart,
    BrokenOff(String),
}

fn receive(
    mut response: Response<Body>,
    to: &Path,
    have: u64,
    max_bytes: u64,
    progress: &mut dyn PullProgress,
) -> Result<Received, Fault> {
    if have > 0 && response.status() == StatusCode::RANGE_NOT_SATISFIABLE {
        return Ok(match range_total(&response) {
            Some(total) if total == have => Received::All,
            _ => Received::Restart,
        });
    }
    check_status(&response)?;
    let resumes = response.status() == StatusCode::PARTIAL_CONTENT;
    if resumes && range_start(&response) != Some(have) {
        return Err(Fault::Source("it answered with another range than was asked for".into()));
    }
    // A server without ranges sends the file from its beginning.
    let mut written = if resumes { have } else { 0 };
    let rest = response.body().content_length();
    let total = rest.map_or(0, |rest| written + rest);
    if total > max_bytes {
        return Err(Fault::Source(format!("it has {total} bytes, expected {max_bytes} at most")));
    }

    let file =
        OpenOptions::new().create(true).append(resumes).write(true).truncate(!resumes).open(to);
    let mut file = file.map_err(Fault::local(to))?;
    progress.start(total);
    progress.advance(written);
    let mut body = response.body_mut().as_reader();
    let result = copy(&mut body, &mut file, to, max_bytes, &mut written, progress);
    progress.finish();
    Ok(match result? {
        Some(why) => Received::BrokenOff(why),
        None if total != 0 && written < total => {
            Received::BrokenOff(format!("the connection ended at byte {written} of {total}"))
        }
        None => Received::All,
    })
}

/// Copies until the sender ends. `Some` is the reason if it broke off.
fn copy(
    body: &mut impl Read,
    file: &mut File,
    to: &Path,
    max_bytes: u64,
    written: &mut u64,
    progress: &mut dyn PullProgress,
) -> Result<Option<String>, Fault> {
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        let n = match body.read(&mut chunk) {
            Ok(0) => return Ok(None),
            Ok(n) => n,
            Err(error) => return Ok(Some(error.to_string())),
        };
        if *written + n as u64 > max_bytes {
            return Err(Fault::Source(format!("it sent more than {max_bytes} bytes")));
        }
        file.write_all(&chunk[..n]).map_err(Fault::local(to))?;
        *written += n as u64;
        progress.advance(n as u64);
    }
}

/// START in `Content-Range: bytes START-END/TOTAL`.
fn range_start(response: &Response<Body>) -> Option<u64> {
    let range = content_range(response)?;
    range.split_once('-')?.0.trim().parse().ok()
}

/// TOTAL in the same header.
fn range_total(response: &Response<Body>) -> Option<u64> {
    content_range(response)?.split_once('/')?.1.trim().parse().ok()
}

fn content_range(response: &Response<Body>) -> Option<&str> {
    response.headers().get(header::CONTENT_RANGE)?.to_str().ok()?.trim().strip_prefix("bytes")
}

/// The length of a file in bytes. It is 0 if there is no file.
pub(crate) fn length(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |metadata| metadata.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_server::{Route, Server};

    fn content() -> Vec<u8> {
        (0..100_000u32).flat_map(u32::to_le_bytes).collect()
    }

    fn fetch_from(server: &Server, to: &Path) -> Result<(), Fault> {
        fetch(&server.agent(), &server.url("/f"), to, 1 << 20, &mut ())
    }

    #[test]
    fn a_cut_connection_is_resumed_where_it_broke() {
        let server = Server::start([("/f", Route::new(content()).cutting_at(150_000))]);
        let folder = tempfile::tempdir().unwrap();
        let to = folder.path().join("f.part");
        fetch_from(&server, &to).unwrap();
        assert_eq!(fs::read(&to).unwrap(), content());
        let starts: Vec<_> = server.requests().iter().map(|(_, from)| *from).collect();
        assert_eq!(starts[0], None);
        assert!(starts.len() > 1 && starts[1..].iter().all(|from| from.is_some()), "{starts:?}");
    }

    /// The hub redirects every file to a content delivery network.
    #[test]
    fn a_redirect_is_followed_with_the_range() {
        let routes = [("/f", Route::redirecting_to("/cdn")), ("/cdn", Route::new(content()))];
        let server = Server::start(routes);
        let folder = tempfile::tempdir().unwrap();
        let to = folder.path().join("f.part");
        fs::write(&to, &content()[..99]).unwrap();
        fetch_from(&server, &to).unwrap();
        assert_eq!(fs::read(&to).unwrap(), content());
        assert_eq!(server.requests().last(), Some(&("/cdn".to_owned(), Some(99))));
    }

    #[test]
    fn a_server_without_ranges_starts_over() {
        let server = Server::start([("/f", Route::new(content()).without_ranges())]);
        let folder = tempfile::tempdir().unwrap();
        let to = folder.path().join("f.part");
        fs::write(&to, b"some of it").unwrap();
        fetch_from(&server, &to).unwrap();
        assert_eq!(fs::read(&to).unwrap(), content());
    }

    #[test]
    fn a_complete_part_needs_no_transfer_and_a_longer_one_starts_over() {
        let server = Server::start([("/f", Route::new(content()))]);
        let folder = tempfile::tempdir().unwrap();
        let to = folder.path().join("f.part");
        fs::write(&to, content()).unwrap();
        fetch_from(&server, &to).unwrap();
        fs::write(&to, [content(), vec![0; 9]].concat()).unwrap();
        fetch_from(&server, &to).unwrap();
        assert_eq!(fs::read(&to).unwrap(), content());
    }

    #[test]
    fn a_larger_file_than_expected_is_refused_before_it_fills_the_disk() {
        let server = Server::start([("/f", Route::new(content()))]);
        let folder = tempfile::tempdir().unwrap();
        let to = folder.path().join("f.part");
        let error = fetch(&server.agent(), &server.url("/f"), &to, 1000, &mut ()).unwrap_err();
        assert!(matches!(error, Fault::Source(why) if why.contains("1000 at most")));
        assert_eq!(length(&to), 0);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_is_this_machines_fault() {
        let server = Server::start([("/f", Route::new(content()))]);
        let error = fetch_from(&server, Path::new("/dev/full")).unwrap_err();
        let Fault::Local { error, .. } = error else { panic!("{error:?}") };
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }
}
