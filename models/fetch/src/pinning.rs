//! Asks the hub for size and checksum of a file, without fetching it.
//!
//! The hub answers the request for a large file with a redirect, and says in its head what the
//! file is: `X-Linked-Size`, and `X-Linked-Etag`, which is the SHA-256 that its storage goes by.

use ureq::Agent;

/// The size in bytes and the SHA-256 of the file at this address.
///
/// # Errors
/// The reason, without the address.
pub(crate) fn ask(agent: &Agent, url: &str) -> Result<(u64, String), String> {
    // The redirect leads to a server that does not know the checksum.
    let request = agent.head(url).config().max_redirects(0).build();
    let response = request.call().map_err(|error| error.to_string())?;
    let status = response.status();
    if !status.is_success() && !status.is_redirection() {
        return Err(format!("HTTP {status}"));
    }
    let header = |name: &str| response.headers().get(name)?.to_str().ok();
    let bytes = header("x-linked-size").and_then(|size| size.parse().ok());
    let sha256 = header("x-linked-etag").map(|tag| tag.trim_matches('"').to_owned());
    let sha256 = sha256.filter(|tag| {
        tag.len() == 64 && tag.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    });
    let unknown = || "it does not say the file's size and sha256".to_owned();
    bytes.zip(sha256).ok_or_else(unknown)
}
