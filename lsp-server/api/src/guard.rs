//! Decides who may ask. A page in a browser can send requests to this machine, also by a name that
//! it makes stand for this machine's address, so neither a request with an `Origin` nor one for
//! another host is answered. Everybody else needs the token.

use hyper::HeaderMap;
use hyper::header::{AUTHORIZATION, HOST, HeaderName, ORIGIN};
use hyper::http::uri::{Authority, Uri};
use std::net::IpAddr;
use subtle::ConstantTimeEq;

/// Where a token may stand in a path, for clients that can send no header.
const IN_PATH: &str = "/t/";

/// The length of a token, in characters: 256 bits in hexadecimal.
const TOKEN_CHARS: usize = 64;

/// What a client must know.
#[derive(Clone)]
pub struct Token(String);

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("it holds no token, which is a line of {TOKEN_CHARS} hexadecimal digits")]
pub struct NoToken;

/// Why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error("requests of web pages are not answered")]
    Page,
    #[error("the host must be 127.0.0.1, [::1] or localhost")]
    Host,
    #[error(
        "the token is missing or wrong: send it as `Authorization: Bearer TOKEN`, or as the \
         beginning of the path, `/t/TOKEN`; `hone api` prints it"
    )]
    Token,
}

impl Token {
    /// Reads a token from the text of its file.
    pub fn from_text(text: &str) -> Result<Token, NoToken> {
        let text = text.trim_end();
        let is_token =
            text.len() == TOKEN_CHARS && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_token.then(|| Token(text.to_owned())).ok_or(NoToken)
    }

    /// Makes a token of random bytes.
    pub fn from_bytes(bytes: [u8; TOKEN_CHARS / 2]) -> Token {
        Token(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Compares in a time that does not depend on where a guess is wrong.
    fn is(&self, guess: &str) -> bool {
        self.0.as_bytes().ct_eq(guess.as_bytes()).into()
    }
}

/// Checks a request. Returns its path without the token.
pub fn admit<'u>(uri: &'u Uri, headers: &HeaderMap, token: &Token) -> Result<&'u str, Refused> {
    if headers.contains_key(ORIGIN) {
        return Err(Refused::Page);
    }
    check_host(uri, headers)?;
    let path = uri.path();
    if let Some((given, _)) = path.strip_prefix(IN_PATH).map(|rest| match rest.find('/') {
        Some(end) => rest.split_at(end),
        None => (rest, ""),
    }) {
        let rest = &path[IN_PATH.len() + given.len()..];
        return if token.is(given) { Ok(rest) } else { Err(Refused::Token) };
    }
    let bearer = single(headers, &AUTHORIZATION).and_then(|value| {
        let (scheme, token) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
    });
    if bearer.is_some_and(|given| token.is(given)) { Ok(path) } else { Err(Refused::Token) }
}

fn check_host(uri: &Uri, headers: &HeaderMap) -> Result<(), Refused> {
    let named = single(headers, &HOST).and_then(|host| host.parse::<Authority>().ok());
    let named = named.ok_or(Refused::Host)?;
    // A request may name another host in its first line.
    let all_here = [Some(&named), uri.authority()].into_iter().flatten().all(is_here);
    if all_here { Ok(()) } else { Err(Refused::Host) }
}

fn is_here(authority: &Authority) -> bool {
    let host = authority.host();
    let address = host.trim_start_matches('[').trim_end_matches(']');
    let is_loopback = address.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    let has_user = authority.as_str().contains('@');
    !has_user && (is_loopback || host.eq_ignore_ascii_case("localhost"))
}

/// Returns the value of a field that is there exactly once.
fn single<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?;
    values.next().is_none().then_some(())?;
    value.to_str().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::Request;
    use rand::rngs::StdRng;
    use rand::seq::IndexedRandom;
    use rand::{Rng, SeedableRng};

    /// See the bodies of the dialects' tests, of which there are as many.
    const ROUNDS: usize = 400_000;

    fn token() -> Token {
        Token::from_bytes([0xa5; 32])
    }

    fn ask(uri: &str, fields: &[(&str, &str)]) -> Result<String, Refused> {
        let mut request = Request::builder().uri(uri);
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        let (parts, ()) = request.body(()).unwrap().into_parts();
        admit(&parts.uri, &parts.headers, &token()).map(str::to_owned)
    }

    #[test]
    fn a_token_is_a_line_of_digits() {
        let text = format!("{}\n", token().as_str());
        assert!(Token::from_text(&text).unwrap().is(token().as_str()));
        for wrong in ["", "a5", &text[1..], &format!("{text}{text}"), &"é".repeat(32)] {
            assert_eq!(Token::from_text(wrong).err(), Some(NoToken), "{wrong}");
        }
    }

    #[test]
    fn the_token_counts_in_the_header_and_in_the_path() {
        let here = ("host", "127.0.0.1:4663");
        let bearer = format!("Bearer {}", token().as_str());
        assert_eq!(ask("/health", &[here, ("authorization", &bearer)]), Ok("/health".into()));
        let path = format!("/t/{}", token().as_str());
        assert_eq!(ask(&format!("{path}/infill?x"), &[here]), Ok("/infill".into()));
        assert_eq!(ask(&path, &[here]), Ok("".into()));
        let wrong = bearer.replace('5', "6");
        for (uri, fields) in [
            ("/health", vec![here]),
            ("/health", vec![here, ("authorization", &wrong)]),
            ("/health", vec![here, ("authorization", token().as_str())]),
            ("/health", vec![here, ("authorization", &bearer), ("authorization", &bearer)]),
            ("/t/a5/health", vec![here, ("authorization", &bearer)]),
            ("/t/", vec![here]),
        ] {
            assert_eq!(ask(uri, &fields), Err(Refused::Token), "{uri} {fields:?}");
        }
    }

    /// DNS rebinding: a page makes its own name stand for 127.0.0.1, and is then of the same origin
    /// as this server.
    #[test]
    fn only_this_machine_may_be_asked_and_no_page_may_ask() {
        let path = format!("/t/{}/health", token().as_str());
        for host in ["localhost", "LOCALHOST:1", "127.0.0.1", "127.9.9.9:80", "[::1]:4663"] {
            assert!(ask(&path, &[("host", host)]).is_ok(), "{host}");
        }
        for host in [
            "evil.example",
            "127.0.0.1.evil.example",
            "localhost.evil.example:4663",
            "0.0.0.0",
            "192.168.0.1",
            "[::]",
            "me@127.0.0.1",
            "",
            "127.0.0.1 evil.example",
        ] {
            assert_eq!(ask(&path, &[("host", host)]), Err(Refused::Host), "{host}");
        }
        assert_eq!(ask(&path, &[]), Err(Refused::Host));
        let twice = [("host", "localhost"), ("host", "evil.example")];
        assert_eq!(ask(&path, &twice), Err(Refused::Host));
        let absolute = format!("http://evil.example{path}");
        assert_eq!(ask(&absolute, &[("host", "localhost")]), Err(Refused::Host));
        for origin in ["null", "http://localhost:4663", "https://evil.example"] {
            let fields = [("host", "localhost"), ("origin", origin)];
            assert_eq!(ask(&path, &fields), Err(Refused::Page), "{origin}");
        }
    }

    /// Whatever a request is made of, it is admitted only with the token, without an origin and
    /// for this machine.
    #[test]
    fn any_request_is_admitted_by_the_rule_alone() {
        let (token, wrong) = (token(), Token::from_bytes([0xa6; 32]));
        let (right, wrong) = (token.as_str(), wrong.as_str());
        let upper = right.to_uppercase();
        let paths =
            ["", "/", "/t/", "/t", "//t/", "/%74/", "/infill", "?", "%2F", "/..", right, wrong];
        let hosts =
            ["localhost", "127.0.0.1:4663", "[::1]", "evil.example", "localhost.evil", "@", ""];
        let bearers =
            ["Bearer ", "bearer ", "Basic ", "Bearer", " ", right, wrong, &right[1..], &upper];
        let mut random = StdRng::seed_from_u64(63);
        let mut admitted = 0;
        for _ in 0..ROUNDS {
            let mut of = |pieces: &[&str], most| -> String {
                let length = random.random_range(0..=most);
                (0..length).map(|_| *pieces.choose(&mut random).unwrap()).collect()
            };
            let uri =
                format!("{}{}", of(&["", "http://localhost", "http://evil"], 1), of(&paths, 4));
            let fields = [
                ("host", of(&hosts, 1)),
                ("host", of(&hosts, 1)),
                ("authorization", of(&bearers, 2)),
                ("authorization", of(&bearers, 2)),
                ("origin", of(&["null", "http://localhost"], 1)),
            ];
            let mut fields: Vec<_> = fields.iter().map(|(name, value)| (*name, &**value)).collect();
            fields.retain(|(_, value)| !value.is_empty());
            let Ok(parsed) = uri.parse::<Uri>() else { continue };
            if ask(&uri, &fields).is_err() {
                continue;
            }
            admitted += 1;
            let values = |name: &str| -> Vec<&str> {
                let own = fields.iter().filter(|field| field.0 == name);
                own.map(|field| field.1).collect()
            };
            assert!(values("origin").is_empty());
            let [host] = values("host")[..] else { panic!("{fields:?}") };
            assert!(hosts[..3].contains(&host), "{host}");
            assert!(parsed.authority().is_none_or(|named| named == "localhost"), "{uri}");
            let bearer = values("authorization");
            let by_field = bearer.len() == 1
                && bearer[0].get(..7).is_some_and(|scheme| scheme.eq_ignore_ascii_case("bearer "))
                && &bearer[0][7..] == right;
            let in_path = parsed.path().strip_prefix("/t/").and_then(|path| path.split('/').next());
            assert!(by_field || in_path == Some(right), "{uri} {fields:?}");
        }
        assert!(admitted > 100, "{admitted}");
    }
}
