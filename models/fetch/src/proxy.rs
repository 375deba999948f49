//! The proxy that the environment names, and the hosts that are asked without it. Both are read as
//! curl reads them: ureq takes a name in `NO_PROXY` for one host, and knows no blanks, ports or
//! networks there.

use std::env;
use std::net::IpAddr;
use ureq::Proxy;
use ureq::http::Uri;

/// The variables that may name a proxy, the most particular first.
const VARIABLES: [&str; 6] =
    ["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "http_proxy", "HTTP_PROXY"];

/// The variables that name the hosts to ask without a proxy.
const EXCEPTIONS: [&str; 2] = ["no_proxy", "NO_PROXY"];

/// The port of an address that names none.
const HTTPS: u16 = 443;

/// The proxy that the variables name.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Named {
    /// The variable, and the proxy that it names.
    Proxy(&'static str, Proxy),
    /// A variable that holds no address, where no other holds one.
    NoAddress(&'static str),
}

/// Returns what the environment says of a proxy.
pub(crate) fn named() -> Option<Named> {
    of_variables(|name| env::var(name).ok())
}

fn of_variables(lookup: impl Fn(&str) -> Option<String>) -> Option<Named> {
    let set = VARIABLES.into_iter().filter_map(|name| Some((name, lookup(name)?)));
    let set: Vec<_> = set.filter(|(_, value)| !value.trim().is_empty()).collect();
    let proxy = |(name, value): &(&'static str, String)| {
        Some(Named::Proxy(name, Proxy::new(value.trim()).ok()?))
    };
    let named = set.iter().find_map(proxy);
    named.or_else(|| set.first().map(|(name, _)| Named::NoAddress(name)))
}

/// Returns the proxy that the environment names, with the hosts that are asked without it.
/// `addresses` are those that are known to be asked.
pub(crate) fn of_environment(addresses: &[&str]) -> Option<Proxy> {
    let Some(Named::Proxy(_, proxy)) = named() else { return None };
    let text = EXCEPTIONS.into_iter().find_map(|name| env::var(name).ok());
    with_exceptions(proxy, &text.unwrap_or_default(), addresses)
}

fn with_exceptions(proxy: Proxy, text: &str, addresses: &[&str]) -> Option<Proxy> {
    let mut builder = Proxy::builder(proxy.protocol()).host(proxy.host()).port(proxy.port());
    if let Some(user) = proxy.username() {
        builder = builder.username(user);
    }
    if let Some(password) = proxy.password() {
        builder = builder.password(password);
    }
    for entry in entries(text, addresses) {
        builder = builder.no_proxy(&entry);
    }
    builder.build().ok()
}

/// Returns the hosts of `NO_PROXY` in ureq's form: a name is one host, and with a dot before it all
/// hosts below it.
fn entries(text: &str, addresses: &[&str]) -> Vec<String> {
    let asked: Vec<Uri> = addresses.iter().filter_map(|address| address.parse().ok()).collect();
    let tokens = text.split(|c: char| c == ',' || c.is_whitespace());
    tokens.filter(|token| !token.is_empty()).flat_map(|token| of_token(token, &asked)).collect()
}

fn of_token(token: &str, asked: &[Uri]) -> Vec<String> {
    let token = token.to_ascii_lowercase();
    if let Some((network, bits)) = token.split_once('/') {
        let inside = asked.iter().filter_map(Uri::host).filter(|host| is_in(host, network, bits));
        return inside.map(str::to_owned).collect();
    }
    if let Ok(address) = bare(&token).parse::<IpAddr>() {
        return vec![host_of(address)];
    }
    let (name, port) = match token.rsplit_once(':') {
        Some((name, port)) => (name, port.parse::<u16>()),
        None => (&*token, Ok(HTTPS)),
    };
    let Ok(port) = port else { return vec![] };
    let is_asked_at = |uri: &Uri| uri.port_u16() == Some(port) && uri.host() == Some(name);
    if port != HTTPS {
        return if asked.iter().any(is_asked_at) { vec![name.to_owned()] } else { vec![] };
    }
    let name = name.strip_prefix('*').filter(|rest| rest.starts_with('.')).unwrap_or(name);
    match name.trim_matches('.') {
        "" => vec![],
        "*" => vec!["*".to_owned()],
        // Nothing is below an address, or below a part of one.
        name if name.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') => {
            vec![name.to_owned()]
        }
        name => vec![name.to_owned(), format!(".{name}")],
    }
}

fn bare(host: &str) -> &str {
    host.trim_start_matches('[').trim_end_matches(']')
}

/// Returns the address as it stands in a URL.
fn host_of(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("[{address}]"),
    }
}

/// Returns true if the host is an address of the network, as of `10.0.0.0/8`.
fn is_in(host: &str, network: &str, bits: &str) -> bool {
    let parsed = (bare(host).parse(), bare(network).parse(), bits.parse::<u32>());
    let (Ok(host), Ok(network), Ok(bits)) = parsed else { return false };
    match (host, network) {
        (IpAddr::V4(host), IpAddr::V4(network)) if bits <= u32::BITS => {
            let differ = host.to_bits() ^ network.to_bits();
            differ.checked_shr(u32::BITS - bits).unwrap_or(0) == 0
        }
        (IpAddr::V6(host), IpAddr::V6(network)) if bits <= u128::BITS => {
            let differ = host.to_bits() ^ network.to_bits();
            differ.checked_shr(u128::BITS - bits).unwrap_or(0) == 0
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A name in `NO_PROXY` held for one host alone, and no entry behind a blank held at all.
    #[test]
    fn no_proxy_is_read_as_curl_reads_it() {
        const HUB: &str = "https://hub.example.org";
        for (text, url, goes_around) in [
            ("", HUB, false),
            ("hub.example.org", HUB, true),
            ("example.org", HUB, true),
            ("example.org", "https://example.org", true),
            (".example.org", HUB, true),
            (".example.org", "https://example.org", true),
            ("*.example.org", HUB, true),
            ("example.org.", HUB, true),
            ("EXAMPLE.org", HUB, true),
            ("example.org", "https://HUB.Example.ORG", true),
            ("ample.org", HUB, false),
            ("hub.example.org", "https://other.example.org", false),
            ("hub", HUB, false),
            ("localhost, hub.example.org", HUB, true),
            ("localhost hub.example.org", HUB, true),
            (" \tlocalhost ,\thub.example.org ,", HUB, true),
            ("*", HUB, true),
            ("localhost, *", HUB, true),
            (",. ,..", HUB, false),
            ("hub.example.org:443", HUB, true),
            ("example.org:443", HUB, true),
            ("hub.example.org:8443", HUB, false),
            ("hub.example.org:8443", "https://hub.example.org:8443", true),
            ("hub.example.org:nine", HUB, false),
            ("10.0.0.0/8", "https://10.1.2.3", true),
            ("10.0.0.0/8", "https://11.1.2.3", false),
            ("10.0.0.0/8", HUB, false),
            ("0.0.0.0/0", "https://11.1.2.3", true),
            ("10.1.2.3/32", "https://10.1.2.3", true),
            ("10.1.2.3/33", "https://10.1.2.3", false),
            ("10.1.2.3", "https://10.1.2.3", true),
            ("1.2.3", "https://10.1.2.3", false),
            ("fd00::/8", "https://[fd00::1]", true),
            ("::1", "https://[::1]", true),
            ("[::1]", "https://[::1]", true),
        ] {
            let proxy = Proxy::new("http://proxy.corp:3128").unwrap();
            let proxy = with_exceptions(proxy, text, &[url]).unwrap();
            assert_eq!(proxy.is_no_proxy(&url.parse().unwrap()), goes_around, "{text:?}: {url}");
        }
    }

    #[test]
    fn the_proxy_stays_as_it_was_named() {
        for text in ["http://me:p%40ss@proxy.corp:3128", "socks5://proxy.corp", "proxy.corp:1"] {
            let before = Proxy::new(text).unwrap();
            let after = with_exceptions(before.clone(), "example.org", &[]).unwrap();
            let all = |proxy: &Proxy| {
                let (user, password) = (proxy.username(), proxy.password());
                let names = (user.map(str::to_owned), password.map(str::to_owned));
                (proxy.protocol(), proxy.host().to_owned(), proxy.port(), names)
            };
            assert_eq!(all(&after), all(&before), "{text}");
            assert_eq!(after.resolve_target(), before.resolve_target(), "{text}");
        }
    }

    #[test]
    fn the_variable_that_counts_is_the_most_particular_one_with_an_address() {
        let of = |set: &[(&str, &str)]| {
            let named = of_variables(|name| {
                let found = set.iter().find(|(other, _)| *other == name);
                found.map(|(_, value)| (*value).to_owned())
            })?;
            Some(match named {
                Named::Proxy(name, _) => (name, true),
                Named::NoAddress(name) => (name, false),
            })
        };
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[("HTTPS_PROXY", " ")]), None);
        let both = [("ALL_PROXY", "http://a:1"), ("HTTPS_PROXY", "http://b:2")];
        assert_eq!(of(&both), Some(("HTTPS_PROXY", true)));
        let wrong = [("HTTPS_PROXY", "garbage::"), ("http_proxy", "http://a:1")];
        assert_eq!(of(&wrong), Some(("http_proxy", true)));
        assert_eq!(of(&wrong[..1]), Some(("HTTPS_PROXY", false)));
    }
}
