//! A client of the HTTP API that sends one request a connection.

use crate::Home;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};

/// The address of a home's API, and its token.
pub struct Http {
    pub port: u16,
    pub token: String,
}

/// The status of an answer, and its body.
pub type Answer = (u16, String);

/// A port that nothing listens on at the moment.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    listener.local_addr().expect("its address").port()
}

/// The settings that switch the API on.
pub fn switched_on() -> String {
    format!("api.enabled = true\napi.port = {}\n", free_port())
}

impl Http {
    /// The API of a home, as its status tells it.
    pub fn of(home: &Home) -> Http {
        let status: Value =
            serde_json::from_str(&home.output(&["api", "--json"])).expect("the status is JSON");
        assert_eq!(status["listening"], true, "{status}");
        let url = status["url"].as_str().expect("an address");
        let port = url.rsplit(':').next().and_then(|port| port.parse().ok()).expect("a port");
        Http { port, token: status["token"].as_str().expect("a token").to_owned() }
    }

    pub fn connect(&self) -> TcpStream {
        TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).expect("the API listens")
    }

    /// The bytes of a request with the token.
    pub fn request(&self, method: &str, path: &str, body: &str) -> String {
        let Http { port, token } = self;
        let length = body.len();
        format!(
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\
             \r\nUser-Agent: e2e/1\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
        )
    }

    /// Sends bytes, and reads the answer.
    pub fn exchange(&self, request: &str) -> Answer {
        let mut stream = self.connect();
        stream.write_all(request.as_bytes()).expect("the request is sent");
        answer(&mut stream)
    }

    pub fn get(&self, path: &str) -> Answer {
        self.exchange(&self.request("GET", path, ""))
    }

    pub fn post(&self, path: &str, body: &Value) -> Answer {
        self.exchange(&self.request("POST", path, &body.to_string()))
    }

    /// The JSON of an answer, which must be a good one.
    pub fn json(&self, path: &str, body: &Value) -> Value {
        let (status, text) = self.post(path, body);
        assert_eq!(status, 200, "{path}: {text}");
        serde_json::from_str(&text).expect("JSON")
    }
}

/// Reads the answer to a request after which the connection is closed.
pub fn answer(stream: &mut TcpStream) -> Answer {
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("an answer");
    let status = text.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    (status, text.split_once("\r\n\r\n").unwrap_or_default().1.to_owned())
}
