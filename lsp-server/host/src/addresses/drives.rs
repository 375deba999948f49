//! Paths of a system that has drives and servers (Windows), as names and as addresses.
//!
//! There are many ways to write such a path: `C:\a`, `c:/a`, `\\?\C:\a`, `file:///c%3A/a`. The name
//! has slashes and a small letter for the drive, as VS Code's own addresses have: `c:/a`. A file of
//! a server is `//server/share/a`.

use super::{decoded, split_scheme};

/// What a path may begin with that turns off its interpretation.
const VERBATIM: &str = "//?/";
const VERBATIM_SERVER: &str = "//?/UNC/";

/// Returns whether a text is a path, and not an address: it begins with a drive, a slash or a
/// backslash.
pub fn is_path(text: &str) -> bool {
    text.starts_with(['/', '\\']) || has_drive(text.as_bytes())
}

fn has_drive(path: &[u8]) -> bool {
    matches!(path, [letter, b':', b'/' | b'\\', ..] if letter.is_ascii_alphabetic())
}

/// The name of a file, whichever way its path is written.
pub fn name(path: &str) -> String {
    let path = path.replace('\\', "/");
    let path = match (path.strip_prefix(VERBATIM_SERVER), path.strip_prefix(VERBATIM)) {
        (Some(rest), _) => format!("//{rest}"),
        (None, Some(rest)) => rest.to_owned(),
        (None, None) => path,
    };
    match path.strip_prefix('/') {
        // `/c:/a` is the path in the address of `c:/a`.
        Some(rest) if has_drive(rest.as_bytes()) => with_small_drive(rest),
        _ if has_drive(path.as_bytes()) => with_small_drive(&path),
        _ => path,
    }
}

fn with_small_drive(path: &str) -> String {
    let (drive, rest) = path.split_at(1);
    format!("{}{rest}", drive.to_ascii_lowercase())
}

/// The address of a file, from the encoded form of its name.
pub fn address(encoded: &str) -> String {
    match encoded.strip_prefix("//") {
        Some(on_server) => format!("file://{on_server}"),
        None => format!("file:///{}", encoded.trim_start_matches('/')),
    }
}

/// The name of the file that an address or a path means; `None` if it means no file.
pub fn local_path(address: &str) -> Option<Vec<u8>> {
    if is_path(address) {
        return Some(name(address).into_bytes());
    }
    let (scheme, rest) = split_scheme(address)?;
    if !scheme.eq_ignore_ascii_case("file") {
        return None;
    }
    let (host, path) = match rest.strip_prefix("//") {
        Some(rest) => rest.split_at(rest.find('/')?),
        None => ("", rest),
    };
    if !path.starts_with('/') {
        return None;
    }
    let path = String::from_utf8_lossy(&decoded(path)).into_owned();
    if host.is_empty() || host.eq_ignore_ascii_case("localhost") {
        return Some(name(&path).into_bytes());
    }
    let host = String::from_utf8_lossy(&decoded(host)).to_ascii_lowercase();
    Some(name(&format!("//{host}{path}")).into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn local(address: &str) -> Option<String> {
        local_path(address).map(|path| String::from_utf8(path).unwrap())
    }

    #[test]
    fn every_way_to_write_a_path_has_one_name() {
        for way in [
            "file:///c%3A/Dir/a%20b.py",
            "file:///C:/Dir/a b.py",
            "FILE://localhost/c:/Dir/a b.py",
            "file:/c:/Dir/a b.py",
            r"C:\Dir\a b.py",
            "c:/Dir/a b.py",
            r"\\?\C:\Dir\a b.py",
        ] {
            assert_eq!(local(way).as_deref(), Some("c:/Dir/a b.py"), "{way}");
        }
        for way in [
            "file://Server/share/x.py",
            r"\\server\share\x.py",
            "//server/share/x.py",
            r"\\?\UNC\server\share\x.py",
        ] {
            assert_eq!(local(way).as_deref(), Some("//server/share/x.py"), "{way}");
        }
        assert_eq!(
            local("file://wsl.localhost/Ubuntu/a").as_deref(),
            Some("//wsl.localhost/Ubuntu/a")
        );
        for other in ["untitled:a", "git:/c:/a.py", "c:", "cd:/a", "file://server"] {
            assert_eq!(local(other), None, "{other}");
        }
    }

    #[test]
    fn a_name_and_its_address_lead_to_each_other() {
        assert_eq!(address("c:/Dir/a%20b.py"), "file:///c:/Dir/a%20b.py");
        assert_eq!(address("//server/share/x.py"), "file://server/share/x.py");
        for path in ["c:/a", "//server/share/a", "/a"] {
            assert_eq!(local(&address(path)).as_deref(), Some(path));
        }
    }
}
