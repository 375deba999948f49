//! A small HTTP server for tests, which can cut connections.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use ureq::Agent;

pub(crate) struct Route {
    body: Vec<u8>,
    /// The connection closes after this many bytes of an answer's body.
    cut: Option<usize>,
    ranges: bool,
    /// The route answers once, and then with an error.
    dies: bool,
    /// The client is redirected to this path.
    redirect: Option<&'static str>,
    /// The hub's words on a large file, next to the redirect.
    description: String,
}

impl Route {
    pub fn new(body: Vec<u8>) -> Route {
        Route {
            body,
            cut: None,
            ranges: true,
            dies: false,
            redirect: None,
            description: String::new(),
        }
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

    /// The redirect says size and checksum of this content, as the hub does.
    pub fn describing(self, content: &[u8]) -> Route {
        let (bytes, sha256) = (content.len(), models::file::sha256_of(content));
        let description = format!("\r\nX-Linked-Size: {bytes}\r\nX-Linked-Etag: \"{sha256}\"");
        Route { description, ..self }
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
                // If a client goes away, its own test notices.
                let _ = answer(stream.unwrap(), &routes, &seen);
            }
        });
        Server { base, requests }
    }

    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    /// A client that asks this server directly, whatever proxy the environment names.
    pub fn agent(&self) -> Agent {
        Agent::config_builder().proxy(None).http_status_as_error(false).build().new_agent()
    }

    /// The requests in order: the path, and the first byte that was asked for.
    pub fn requests(&self) -> Vec<(String, Option<u64>)> {
        self.requests.lock().unwrap().clone()
    }
}

fn answer(
    mut stream: TcpStream,
    routes: &HashMap<String, Route>,
    seen: &Requests,
) -> std::io::Result<()> {
    let (path, from) = read_request(&stream)?;
    let repeated = seen.lock().unwrap().iter().any(|(earlier, _)| *earlier == path);
    seen.lock().unwrap().push((path.clone(), from));

    let Some(route) = routes.get(&path) else {
        return write_head(&mut stream, "404 Not Found", 0);
    };
    if let Some(path) = route.redirect {
        let description = &route.description;
        let head = format!("302 Found\r\nLocation: {path}{description}");
        return write_head(&mut stream, &head, 0);
    }
    if route.dies && repeated {
        return write_head(&mut stream, "503 Gone Down", 0);
    }
    let total = route.body.len();
    let range = from.filter(|_| route.ranges).map(|from| from as usize);
    let start = range.unwrap_or(0);
    if range.is_some() && start >= total {
        let status = "416 Range Not Satisfiable";
        return write_head(&mut stream, &format!("{status}\r\nContent-Range: bytes */{total}"), 0);
    }
    let status = match range {
        Some(_) => {
            format!("206 Partial Content\r\nContent-Range: bytes {start}-{}/{total}", total - 1)
        }
        None => "200 OK".to_owned(),
    };
    let rest = &route.body[start..];
    write_head(&mut stream, &status, rest.len())?;
    stream.write_all(&rest[..route.cut.unwrap_or(rest.len()).min(rest.len())])
}

/// The path, and the first byte that is asked for.
fn read_request(stream: &TcpStream) -> std::io::Result<(String, Option<u64>)> {
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
    Ok((path, from))
}

/// `status` may hold further headers.
fn write_head(stream: &mut TcpStream, status: &str, body_bytes: usize) -> std::io::Result<()> {
    let head =
        format!("HTTP/1.1 {status}\r\nContent-Length: {body_bytes}\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes())
}
