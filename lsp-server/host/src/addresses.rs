//! The addresses that clients give to documents, and the names under which documents are recorded.
//!
//! An address is only a name here: nothing is ever fetched from it. So it is read as it is meant,
//! even where a client left out the percent-encoding that a URI must have. Two ways to write one
//! address have one normal form.
//!
//! The name of a document is its path if it is a file of this machine. All other documents, such as
//! those of another machine or those that are not saved yet, are named by their whole address. So
//! neither the rules for files of this machine nor the forgetting of one concern them.

mod drives;

use crate::platform::files::HAS_DRIVES;
use std::borrow::Cow;
use std::net::Ipv6Addr;
use std::path::Path;

/// The scheme of an address that has none and is no path: no file holds such a document.
const UNSAVED: &str = "untitled";

/// The scheme that VS Code gives to the cells of a notebook.
const NOTEBOOK_CELL: &str = "vscode-notebook-cell";

/// The normal form of an address. It is always a valid URI.
pub fn normal(address: &str) -> String {
    if let Some(path) = local_path(address) {
        let path = encoded(&path, is_path);
        return if HAS_DRIVES { drives::address(&path) } else { format!("file://{path}") };
    }
    let (scheme, rest) = split_scheme(address).unwrap_or((UNSAVED, address));
    let (rest, fragment) = split_before(rest, '#');
    let (rest, query) = split_before(rest, '?');
    let (authority, path) = match rest.strip_prefix("//") {
        Some(rest) => {
            let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            (format!("//{}", normal_authority(authority)), path)
        }
        None => (String::new(), rest),
    };
    let part = |part: &str| match part.split_at_checked(1) {
        Some((mark, part)) => format!("{mark}{}", normal_part(part, is_query)),
        None => String::new(),
    };
    let path = normal_part(path, is_path);
    format!("{}:{authority}{path}{}{}", scheme.to_ascii_lowercase(), part(query), part(fragment))
}

/// The name under which a document is recorded. A cell of a notebook on this machine has the name
/// of the notebook, because they are one file.
pub fn name(address: &str) -> String {
    let path = local_path(address).or_else(|| notebook_of_cell(address));
    match path {
        Some(path) if HAS_DRIVES => drives::name(&String::from_utf8_lossy(&path)),
        Some(path) => String::from_utf8_lossy(&path).into_owned(),
        None => normal(address),
    }
}

/// The name under which a file of this machine is recorded.
pub fn name_of_file(path: &Path) -> Cow<'_, str> {
    let text = path.to_string_lossy();
    if HAS_DRIVES { Cow::Owned(drives::name(&text)) } else { text }
}

/// Returns whether this is an address and not a path.
pub fn is_address(text: &str) -> bool {
    let is_path = text.starts_with('/') || HAS_DRIVES && drives::is_path(text);
    !is_path && split_scheme(text).is_some()
}

/// The path within a name, without scheme, host, query and fragment. For a file of another machine
/// it says what kind of file it is, and not where a file lies on this machine.
pub fn path_in(name: &str) -> Cow<'_, str> {
    if !is_address(name) {
        return Cow::Borrowed(name);
    }
    let (_, rest) = split_scheme(name).unwrap_or_default();
    let (rest, _) = split_before(rest, '#');
    let (rest, _) = split_before(rest, '?');
    let path = match rest.strip_prefix("//") {
        Some(rest) => &rest[rest.find('/').unwrap_or(rest.len())..],
        None => rest,
    };
    Cow::Owned(String::from_utf8_lossy(&decoded(path)).into_owned())
}

/// The name of the file of this machine as which a document will be saved that is not saved yet, if
/// that is known: VS Code opens a new file as `untitled:/folder/new.py`.
pub fn saved_as(name: &str) -> Option<String> {
    let (scheme, rest) = split_scheme(name).filter(|_| is_address(name))?;
    let is_of_host = rest.starts_with("//") && !rest.starts_with("///");
    if !scheme.eq_ignore_ascii_case(UNSAVED) || is_of_host {
        return None;
    }
    let path = path_in(name).into_owned();
    let path = if HAS_DRIVES { drives::name(&path) } else { path };
    Path::new(&path).is_absolute().then_some(path)
}

/// The path of a file of this machine. A `?` and a `#` in it belong to the path, because neither
/// means anything else for a file.
fn local_path(address: &str) -> Option<Vec<u8>> {
    if HAS_DRIVES {
        return drives::local_path(address);
    }
    if address.starts_with('/') {
        return Some(address.as_bytes().to_vec());
    }
    let (scheme, rest) = split_scheme(address)?;
    if !scheme.eq_ignore_ascii_case("file") {
        return None;
    }
    let path = match rest.strip_prefix("//") {
        Some(rest) => {
            let (host, path) = rest.split_at(rest.find('/')?);
            let is_here = host.is_empty() || host.eq_ignore_ascii_case("localhost");
            is_here.then_some(path)?
        }
        None => rest,
    };
    path.starts_with('/').then(|| decoded(path))
}

/// The path of the notebook on this machine that a cell belongs to. A cell of a notebook elsewhere
/// has a host or a query.
fn notebook_of_cell(address: &str) -> Option<Vec<u8>> {
    let (scheme, rest) = split_scheme(address)?;
    let (path, _) = split_before(rest, '#');
    let is_here = path.starts_with('/') && !path.starts_with("//") && !path.contains('?');
    (scheme.eq_ignore_ascii_case(NOTEBOOK_CELL) && is_here).then(|| decoded(path))
}

/// The scheme, and what stands behind its colon.
fn split_scheme(address: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = address.split_once(':')?;
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    let is_scheme =
        scheme.starts_with(|c: char| c.is_ascii_alphabetic()) && scheme.bytes().all(is_part);
    is_scheme.then_some((scheme, rest))
}

/// The text before a mark, and the text from there on.
fn split_before(text: &str, mark: char) -> (&str, &str) {
    text.split_at(text.find(mark).unwrap_or(text.len()))
}

/// `user@host:port`.
fn normal_authority(authority: &str) -> String {
    let (user, host) = match authority.rsplit_once('@') {
        Some((user, host)) => (format!("{}@", normal_part(user, is_user)), host),
        None => (String::new(), authority),
    };
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    let (host, port) = match host.rsplit_once(':') {
        Some((host, port)) if is_port(port) => (host, format!(":{port}")),
        _ => (host, String::new()),
    };
    let literal = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let host = match literal.filter(|host| host.parse::<Ipv6Addr>().is_ok()) {
        Some(_) => host.to_owned(),
        None => normal_part(host, is_host),
    };
    format!("{user}{host}{port}")
}

/// A part of an address in which what is encoded stays so, unless it need not be. A percent sign
/// without two digits stands for itself.
fn normal_part(part: &str, stays: fn(u8) -> bool) -> String {
    let mut normal = String::with_capacity(part.len());
    let mut rest = part.as_bytes();
    while let Some((&byte, behind)) = rest.split_first() {
        match encoded_byte(rest) {
            Some((byte, behind)) => {
                let stays = if is_unreserved(byte) { is_unreserved } else { never };
                normal.push_str(&encoded(&[byte], stays));
                rest = behind;
            }
            None => {
                normal.push_str(&encoded(&[byte], stays));
                rest = behind;
            }
        }
    }
    normal
}

fn encoded(bytes: &[u8], stays: fn(u8) -> bool) -> String {
    let mut text = String::with_capacity(bytes.len());
    for &byte in bytes {
        if stays(byte) {
            text.push(byte.into());
        } else {
            text.push_str(&format!("%{byte:02X}"));
        }
    }
    text
}

fn decoded(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, behind)) = rest.split_first() {
        let (byte, behind) = encoded_byte(rest).unwrap_or((byte, behind));
        bytes.push(byte);
        rest = behind;
    }
    bytes
}

/// The byte that a text begins with in its encoded form, and the rest.
fn encoded_byte(text: &[u8]) -> Option<(u8, &[u8])> {
    let [b'%', high, low, rest @ ..] = text else { return None };
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let byte = digit(*high)? << 4 | digit(*low)?;
    Some((u8::try_from(byte).ok()?, rest))
}

fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

fn is_host(byte: u8) -> bool {
    is_unreserved(byte) || b"!$&'()*+,;=".contains(&byte)
}

fn is_user(byte: u8) -> bool {
    is_host(byte) || byte == b':'
}

fn is_path(byte: u8) -> bool {
    is_user(byte) || matches!(byte, b'@' | b'/')
}

fn is_query(byte: u8) -> bool {
    is_path(byte) || byte == b'?'
}

fn never(_: u8) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    #[test]
    fn a_file_of_this_machine_is_named_by_its_path() {
        for (address, path) in [
            ("file:///project/a.py", "/project/a.py"),
            ("file:/project/a.py", "/project/a.py"),
            ("FILE://localhost/project/a.py", "/project/a.py"),
            ("/project/a.py", "/project/a.py"),
            ("file:///project/[id].ts", "/project/[id].ts"),
            ("file:///project/%5Bid%5d.ts", "/project/[id].ts"),
            ("file:///project/a b.py", "/project/a b.py"),
            ("file:///project/a%20b.py", "/project/a b.py"),
            ("file:///project/ü.py", "/project/ü.py"),
            ("file:///project/%C3%BC.py", "/project/ü.py"),
            ("file:///project/100%.py", "/project/100%.py"),
            ("file:///project/100%25.py", "/project/100%.py"),
            ("file:///project/c#/a?.cs", "/project/c#/a?.cs"),
            ("file:///project/c%23/a%3F.cs", "/project/c#/a?.cs"),
            ("file:///c%3A/a.py", "/c:/a.py"),
            ("vscode-notebook-cell:/project/x.ipynb#W0sZmlsZQ%3D%3D", "/project/x.ipynb"),
        ] {
            assert_eq!(name(address), path, "{address}");
        }
    }

    #[test]
    fn every_other_document_is_named_by_its_whole_address() {
        for address in [
            "vscode-remote://ssh-remote%2Bbox/home/u/x.py",
            "vscode-vfs://github/microsoft/vscode/a.ts",
            "git:/project/a.py?%7B%22ref%22%3A%22HEAD%22%7D",
            "file://server/share/x.py",
            "untitled:Untitled-7",
            "vscode-notebook-cell://ssh-remote%2Bbox/home/u/x.ipynb#W0s",
            "vscode-notebook-cell:Untitled-1.ipynb?jupyter-notebook#W0s",
            "fugitive:///project/.git//0/a.py",
        ] {
            assert_eq!(name(address), address);
        }
        assert_eq!(name("Untitled-7"), "untitled:Untitled-7");
        assert_eq!(name("untitled:Unbenannt 1"), "untitled:Unbenannt%201");
        assert_eq!(name("git:/a.py?{\"ref\":\"~\"}"), name("git:/a.py?%7B%22ref%22:%22%7e%22%7D"));
        assert_eq!(normal("X://[::1]:80/[a]"), "x://[::1]:80/%5Ba%5D");
    }

    #[test]
    fn a_path_is_no_address() {
        assert!(is_address("untitled:a") && is_address("file:///a"));
        assert!(!is_address("/project/a:b.py") && !is_address("src/a.py") && !is_address(":a"));
        assert_eq!(path_in("/project/a%20:b.py"), "/project/a%20:b.py");
        assert_eq!(path_in("git:/p/%2Eenv?{}"), "/p/.env");
    }

    #[cfg(unix)]
    #[test]
    fn a_document_that_is_not_saved_yet_may_have_its_place() {
        for (address, path) in [
            ("untitled:/p/new%20one.py", Some("/p/new one.py")),
            ("untitled:///p/new.py", Some("/p/new.py")),
            ("UNTITLED:/p/new.py", Some("/p/new.py")),
            ("untitled:Untitled-1", None),
            ("untitled:new.py", None),
            ("untitled://ssh-remote%2Bbox/p/new.py", None),
            ("git:/p/new.py", None),
            ("/p/new.py", None),
        ] {
            assert_eq!(saved_as(&name(address)).as_deref(), path, "{address}");
        }
    }

    /// The transport drops a message with an address that it cannot parse.
    #[test]
    fn whatever_a_client_says_becomes_a_valid_address_with_one_normal_form() {
        const PARTS: &[&str] = &[
            "file:",
            "git:",
            "x",
            "/",
            "//",
            "[",
            "]",
            "[::1]",
            "@",
            ":",
            "80",
            "?",
            "#",
            "%",
            "%2",
            "%41",
            "%ff",
            "ü",
            " ",
            "\0",
            "\\",
            "😀",
            "..",
            "\u{202e}",
            "{\"a\":1}",
        ];
        for seed in 0..20_000 {
            let mut rng = StdRng::seed_from_u64(seed);
            let parts =
                (0..rng.random_range(0..8)).map(|_| PARTS[rng.random_range(0..PARTS.len())]);
            let given: String = parts.collect();
            let normal = normal(&given);
            let valid = normal.parse::<tower_lsp::ls_types::Uri>();
            assert!(valid.is_ok(), "{given:?} became {normal:?}");
            assert_eq!(super::normal(&normal), normal, "{given:?}");
            assert_eq!(name(&normal), name(&given), "{given:?}");
        }
    }
}
