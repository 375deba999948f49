//! By which way a request reaches the network, for messages: directly, or through a proxy that
//! the environment names.

use crate::proxy::{self, Named};
use ureq::http::Uri;
use ureq::{Agent, Proxy};

/// Returns how an address is asked. A password for the proxy is left out.
pub(crate) fn route(agent: &Agent, url: &str) -> String {
    let proxy = agent.config().proxy();
    let goes_around = |proxy: &&Proxy| url.parse::<Uri>().is_ok_and(|uri| proxy.is_no_proxy(&uri));
    match proxy {
        Some(proxy) if goes_around(&proxy) => "without a proxy, as NO_PROXY says".to_owned(),
        Some(proxy) => {
            let (host, port) = (proxy.host(), proxy.port());
            let named = match proxy::named() {
                Some(Named::Proxy(name, named)) if (named.host(), named.port()) == (host, port) => {
                    format!(" ({name})")
                }
                _ => String::new(),
            };
            format!("through the proxy {host}:{port}{named}")
        }
        None => without(proxy::named()),
    }
}

fn without(named: Option<Named>) -> String {
    match named {
        Some(Named::NoAddress(name)) => {
            format!("without a proxy, because {name} holds no address of one")
        }
        _ => "without a proxy; where one is needed, HTTPS_PROXY names it".to_owned(),
    }
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
        let garbage = without(Some(Named::NoAddress("HTTPS_PROXY")));
        assert!(garbage.contains("HTTPS_PROXY holds no address"));
    }
}
