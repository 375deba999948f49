//! By which way a request reaches the network, for messages: directly, or through a proxy that
//! the environment names.

use std::env;
use ureq::http::Uri;
use ureq::{Agent, Proxy};

/// The variables that may name a proxy, in the order in which ureq reads them.
const VARIABLES: [&str; 6] =
    ["ALL_PROXY", "all_proxy", "HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"];

/// Returns how an address is asked. A password for the proxy is left out.
pub(crate) fn route(agent: &Agent, url: &str) -> String {
    let proxy = agent.config().proxy();
    let goes_around = |proxy: &&Proxy| url.parse::<Uri>().is_ok_and(|uri| proxy.is_no_proxy(&uri));
    match proxy {
        Some(proxy) if goes_around(&proxy) => "without a proxy, as NO_PROXY says".to_owned(),
        Some(proxy) => {
            let (host, port) = (proxy.host(), proxy.port());
            let named = variable(|name| env::var(name).ok()).filter(|_| proxy.is_from_env());
            let named = named.map_or(String::new(), |(name, _)| format!(" ({name})"));
            format!("through the proxy {host}:{port}{named}")
        }
        None => without(variable(|name| env::var(name).ok())),
    }
}

fn without(variable: Option<(&str, bool)>) -> String {
    match variable {
        Some((name, false)) => format!("without a proxy, because {name} holds no address of one"),
        _ => "without a proxy; where one is needed, HTTPS_PROXY names it".to_owned(),
    }
}

/// The variable that names the proxy, and whether it holds an address. If none does, the first
/// that holds something else.
fn variable(lookup: impl Fn(&str) -> Option<String>) -> Option<(&'static str, bool)> {
    let set = VARIABLES.into_iter().filter_map(|name| Some((name, lookup(name)?)));
    let set: Vec<_> = set.filter(|(_, value)| !value.is_empty()).collect();
    let right = set.iter().find(|(_, value)| Proxy::new(value).is_ok());
    let (name, _) = right.or_else(|| set.first())?;
    Some((name, right.is_some()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn through(proxy: &str) -> String {
        let proxy = Proxy::new(proxy).unwrap();
        let agent = Agent::config_builder().proxy(Some(proxy)).build().new_agent();
        route(&agent, "https://huggingface.co/a")
    }

    #[test]
    fn the_proxy_is_named_without_its_password() {
        assert_eq!(through("http://me:pass@proxy.corp:3128"), "through the proxy proxy.corp:3128");
        let direct = Agent::config_builder().proxy(None).build().new_agent();
        assert!(route(&direct, "https://huggingface.co/a").starts_with("without a proxy"));
    }

    #[test]
    fn the_variable_that_counts_is_the_first_with_an_address() {
        let of = |set: &[(&str, &str)]| {
            variable(|name| {
                let found = set.iter().find(|(other, _)| *other == name);
                found.map(|(_, value)| (*value).to_owned())
            })
        };
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[("HTTPS_PROXY", "")]), None);
        let both = [("HTTP_PROXY", "http://a:1"), ("HTTPS_PROXY", "http://b:2")];
        assert_eq!(of(&both), Some(("HTTPS_PROXY", true)));
        let wrong = [("HTTPS_PROXY", "garbage::"), ("http_proxy", "http://a:1")];
        assert_eq!(of(&wrong), Some(("http_proxy", true)));
        assert_eq!(of(&wrong[..1]), Some(("HTTPS_PROXY", false)));
        assert!(without(of(&wrong[..1])).contains("HTTPS_PROXY holds no address"));
    }
}
