//! A small HTTP server on this machine that can cut connections.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use ureq::Agent;

pub(crate) struct Route {
    body: Vec<u8>,
    /// Bytes of one answer's body after which the connection closes.
    cut: Option<usize>,
    ranges: bool,
    /// Answers once, then with an error.
    dies: bool,
    /// Sends the client to this path instead.
    redirect: Option<&'static str>,
}

impl Route {
    pub fn new(body: Vec<u8>) -> Route {
        Route { body, cut: None, ranges: true, dies: false, redirect: None }
    }

    pub fn cutting_at(self, bytes: usize) -> Route {
        Route { cut: Some(bytes), ..self }
    }

    pub fn without_ranges(self) -> Route {
        Route { ranges: false, ..self }
    }

    pub fn redirecting_to(path: &'static str) -> Route {
        Route { redirect: Some(path), ..Route::new(Vec::new()) }
    }

    pub fn dying(self) -> Route {
        Route { dies: true, ..self }
    }
}

type Requests = Arc<Mutex<Vec<(String, Option<u64>)>>>;

pub(crate) struct Server {
    base: String,
    requests: Requests,
}

impl Server {
    pub fn start<P: Into<String>>(routes: impl IntoIterator<Item = (P, Route)>) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let routes: HashMap<String, Route> =
            routes.into_iter().map(|(path, route)| (path.into(), route)).collect();
        let requests = Requests::default();
        let seen = requests.clone();
        thread::spawn(move || {
            for stream in listener.incoming() {
                // A client that went away is its own test's business.
                let _ = answer(stream.unwrap(), &routes, &seen);
            }
        });
        Server { base, requests }
    }

    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    /// A client that goes to this server whatever proxy the environment names.
    pub fn agent(&self) -> Agent {
        Agent::config_builder().proxy(None).http_status_as_error(false).build().new_agent()
    }

    /// Path and first byte asked for, in order.
    pub fn requests(&self) -> Vec<(String, Option<u64>)> {
        self.requests.lock().unwrap().clone()
    }
}

fn answer(
    mut stream: TcpStream,
    routes: &HashMap<String, Route>,
    seen: &Requests,
) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let request = lines.next().unwrap_or(Ok(String::new()))?;
    let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
    let mut from = None;
    for line in lines {
        let line = line?.to_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(range) = line.strip_prefix("range: bytes=") {
            from = range.trim_end_matches('-').parse().ok();
        }
    }
    let repeated = seen.lock().unwrap().iter().any(|(earlier, _)| *earlier == path);
    seen.lock().unwrap().push((path.clone(), from));

    let Some(route) = routes.get(&path) else {
        return stream.write_all(
            b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
        );
    };
    if let Some(path) = route.redirect {
        let head = format!(
            "HTTP/1.1 302 Found\r\nLocation: {path}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        );
        return stream.write_all(head.as_bytes());
    }
    if route.dies && repeated {
        return stream.write_all(
            b"HTTP/1.1 503 Gone Down\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
        );
    }
    let total = route.body.len();
    let start = from.filter(|_| route.ranges).unwrap_or(0) as usize;
    if start >= total && from.is_some() && route.ranges {
        let head = format!(
            "HTTP/1.1 416 Range Not Satisfiable\r\nContent-Range: bytes */{total}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        );
        return stream.write_all(head.as_bytes());
    }
    let status = match from.is_some() && route.ranges {
        true => {
            format!("206 Partial Content\r\nContent-Range: bytes {start}-{}/{total}", total - 1)
        }
        false => "200 OK".to_owned(),
    };
    let rest = &route.body[start..];
    let head =
        format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", rest.len());
    stream.write_all(head.as_bytes())?;
    stream.write_all(&rest[..route.cut.unwrap_or(rest.len()).min(rest.len())])
}
