//! The server over real connections, with a backend that gives fixed answers.

use super::*;
use crate::{Answer, Ended, Model, Unavailable};
use models::fim::template;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{Notify, watch};

/// It completes the text `hang` never, and every other at once.
struct Scripted {
    asked: Notify,
    cancelled: Notify,
    answer: String,
    hanging: watch::Sender<usize>,
    most: AtomicUsize,
}

impl Scripted {
    fn new(answer: &str) -> Arc<Scripted> {
        Arc::new(Scripted {
            asked: Notify::new(),
            cancelled: Notify::new(),
            answer: answer.into(),
            hanging: watch::Sender::new(0),
            most: AtomicUsize::new(0),
        })
    }
}

struct Hanging<'a>(&'a Scripted);

impl Drop for Hanging<'_> {
    fn drop(&mut self) {
        self.0.hanging.send_modify(|hanging| *hanging -= 1);
        self.0.cancelled.notify_one();
    }
}

impl Backend for Scripted {
    fn model(&self) -> Model {
        Model {
            name: "scripted".into(),
            architecture: "qwen2".into(),
            sha256: "ab".into(),
            bytes: 7,
            template: template("qwen2.5-coder").unwrap(),
        }
    }

    async fn complete(&self, request: crate::Request) -> Result<Answer, Unavailable> {
        if request.around.before == "fail" {
            return Err(Unavailable("the model cannot be loaded".into()));
        }
        if request.around.before == "hang" {
            self.hanging.send_modify(|hanging| *hanging += 1);
            self.most.fetch_max(*self.hanging.borrow(), Ordering::Relaxed);
            let _hanging = Hanging(self);
            self.asked.notify_one();
            std::future::pending::<()>().await;
        }
        Ok(Answer { text: self.answer.clone(), ended: Ended::ByItself, tokens: 1 })
    }
}

fn token() -> Token {
    Token::from_bytes([7; 32])
}

/// Limits that a test need not wait long for.
const QUICK: Limits = Limits {
    connections: 8,
    head_time: Duration::from_millis(300),
    body_time: Duration::from_millis(300),
    write_time: Duration::from_millis(300),
};

async fn start(backend: &Arc<Scripted>, limits: Limits) -> Listening {
    listen(0, token(), backend.clone(), limits).await.unwrap()
}

async fn connect(server: &Listening) -> TcpStream {
    TcpStream::connect(server.addresses()[0]).await.unwrap()
}

fn post(path: &str, body: &str) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n\
         Content-Length: {}\r\n\r\n{body}",
        token().as_str(),
        body.len()
    )
}

/// Sends bytes, and returns all that comes until the server closes.
async fn exchange(server: &Listening, bytes: &str) -> String {
    let mut stream = connect(server).await;
    let closing = bytes.replacen("\r\n", "\r\nConnection: close\r\n", 1);
    stream.write_all(closing.as_bytes()).await.unwrap();
    rest(&mut stream).await
}

/// Returns what comes until the server closes. One that it resets is closed too.
async fn rest(stream: &mut TcpStream) -> String {
    let mut all = vec![];
    let _ = stream.read_to_end(&mut all).await;
    String::from_utf8(all).unwrap()
}

#[tokio::test]
async fn a_request_is_answered_on_both_addresses() {
    let backend = Scripted::new("b");
    let server = start(&backend, Limits::default()).await;
    for address in server.addresses() {
        assert!(address.ip().is_loopback());
        let mut stream = TcpStream::connect(address).await.unwrap();
        let body = post("/v1/completions", r#"{"prompt":"a","suffix":"c"}"#);
        stream
            .write_all(body.replacen("\r\n", "\r\nConnection: close\r\n", 1).as_bytes())
            .await
            .unwrap();
        let answer = rest(&mut stream).await;
        assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
        assert!(answer.contains(r#""text":"b""#), "{answer}");
        assert!(!answer.to_ascii_lowercase().contains("access-control"), "{answer}");
    }
}

#[tokio::test]
async fn a_request_that_may_not_ask_reaches_no_backend() {
    let backend = Scripted::new("b");
    let server = start(&backend, Limits::default()).await;
    let good = post("/v1/completions", r#"{"prompt":"hang"}"#);
    for (wrong, status) in [
        (good.replace("Host: localhost", "Host: evil.example"), 403),
        (good.replace("Host: localhost\r\n", ""), 403),
        (good.replace("Host: localhost", "Host: localhost\r\nOrigin: http://localhost"), 403),
        (good.replace("POST /v1", "POST http://evil.example/v1"), 403),
        (good.replace("Bearer 07", "Bearer 08"), 401),
        (good.replace("POST /v1", "POST /t/0707/v1"), 401),
        (good.replace("POST", "GET"), 405),
        (good.replace("/v1/completions", "/v1/chat/completions"), 404),
        (good.replace("Content-Length", "X"), 400),
        (good.replace("prompt", "others"), 400),
    ] {
        let answer = exchange(&server, &wrong).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{wrong}\n{answer}");
        assert!(answer.contains(r#"{"error":{"#), "{answer}");
    }
    assert_eq!(backend.most.load(Ordering::Relaxed), 0);
    let failed = exchange(&server, &post("/api/generate", r#"{"prompt":"fail"}"#)).await;
    assert!(failed.starts_with("HTTP/1.1 503"), "{failed}");
    assert!(failed.ends_with(r#"{"error":"the model cannot be loaded"}"#), "{failed}");
}

/// Two lengths of a body, or a length and chunks, are read in two ways by a proxy and a server
/// behind it, and hide a second request in the body of the first.
#[tokio::test]
async fn a_smuggled_request_is_not_answered() {
    let backend = Scripted::new("b");
    let server = start(&backend, QUICK).await;
    let inner = post("/v1/completions", r#"{"prompt":"a"}"#);
    let head = format!(
        "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n",
        token().as_str()
    );
    for (fields, body) in [
        ("Content-Length: 4\r\nContent-Length: 400\r\n", "abcd"),
        ("Content-Length: 4\r\nContent-Length: 4, 5\r\n", "abcd"),
        ("Transfer-Encoding: chunked, identity\r\n", "abcd"),
        ("Transfer-Encoding: xchunked\r\n", "abcd"),
        ("Content-Length: -1\r\n", "abcd"),
        ("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"),
        ("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", "0\r\n\r\n"),
        ("Transfer-Encoding: chunked\r\nContent-Length: 400\r\n", "0\r\n\r\n"),
    ] {
        let mut stream = connect(&server).await;
        let sent = format!("{head}{fields}\r\n{body}{inner}");
        stream.write_all(sent.as_bytes()).await.unwrap();
        let answer = rest(&mut stream).await;
        assert!(answer.starts_with("HTTP/1.1 400"), "{fields}: {answer}");
        assert_eq!(answer.matches("HTTP/1.1").count(), 1, "{fields}: {answer}");
    }
}

/// A path is compared byte by byte, so no way to write it differently reaches more.
#[tokio::test]
async fn a_path_with_odd_bytes_is_no_other_path() {
    let backend = Scripted::new("b");
    let server = start(&backend, QUICK).await;
    let in_path = format!("/t/{}", token().as_str());
    let get = async |path: &str, fields: &str| {
        let mut stream = connect(&server).await;
        let sent =
            format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{fields}\r\n");
        stream.write_all(sent.as_bytes()).await.unwrap();
        rest(&mut stream).await
    };
    assert!(get(&format!("{in_path}/health"), "").await.starts_with("HTTP/1.1 200"));
    for (path, status) in [
        ("/health\0", 400),
        ("/hea\tlth", 400),
        ("/health\r", 400),
        ("/health\r\nX: secret", 400),
        ("/health\nX: secret", 400),
        ("/health /secret", 400),
        ("/health%00", 404),
        ("/health%0d%0aX:%20secret", 404),
        ("/%68ealth", 404),
        ("/v1/../health", 404),
        ("/v1/%2e%2e/health", 404),
        ("//health", 404),
        ("/health\u{e9}", 404),
    ] {
        let bearer = format!("Authorization: Bearer {}\r\n", token().as_str());
        let by_path = format!("{in_path}{path}");
        for answer in [get(path, &bearer).await, get(&by_path, "").await] {
            assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{path:?}: {answer}");
            assert!(!answer.contains("secret") && !answer.contains(token().as_str()), "{answer}");
        }
    }
    for path in [in_path.replace("/t/", "/%74/"), in_path.clone() + "%2Fhealth", in_path + "\u{e9}"]
    {
        assert!(get(&path, "").await.starts_with("HTTP/1.1 401"), "{path}");
    }
}

#[tokio::test]
async fn what_is_too_long_is_refused() {
    let backend = Scripted::new("b");
    let server = start(&backend, Limits::default()).await;
    let long = post("/infill", &" ".repeat(BODY_BYTES + 1));
    let mut stream = connect(&server).await;
    // The server answers before all of it is sent.
    let (mut read, mut write) = stream.split();
    let send = async { drop(write.write_all(long.as_bytes()).await) };
    let mut begin = [0; 12];
    let (_, got) = tokio::join!(send, read.read_exact(&mut begin));
    got.unwrap();
    assert_eq!(&begin, b"HTTP/1.1 413");
    let fields: String = (0..HEADERS + 1).map(|n| format!("X-{n}: 1\r\n")).collect();
    for head in [fields, format!("X: {}\r\n", "x".repeat(2 * HEAD_BYTES))] {
        let answer = exchange(&server, &format!("GET / HTTP/1.1\r\n{head}\r\n")).await;
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431"), "{answer}");
    }
    let path = "/x".repeat(HEAD_BYTES);
    let answer = exchange(&server, &format!("GET {path} HTTP/1.1\r\n\r\n")).await;
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 4"), "{answer}");
}

#[tokio::test]
async fn a_closed_connection_cancels_its_request() {
    let backend = Scripted::new("b");
    let server = start(&backend, Limits::default()).await;
    let mut stream = connect(&server).await;
    let body = r#"{"input_prefix":"hang","input_suffix":""}"#;
    stream.write_all(post("/infill", body).as_bytes()).await.unwrap();
    backend.asked.notified().await;
    drop(stream);
    backend.cancelled.notified().await;
}

#[tokio::test]
async fn slow_clients_are_dropped() {
    let backend = Scripted::new("b");
    let server = start(&backend, QUICK).await;
    let post = post("/infill", r#"{"input_prefix":"a","input_suffix":""}"#);
    let (head, body) = post.split_at(post.find("\r\n\r\n").unwrap() + 4);
    for sent in ["", &head[..20], head, &format!("{head}{}", &body[..5])] {
        let mut stream = connect(&server).await;
        stream.write_all(sent.as_bytes()).await.unwrap();
        let answer = rest(&mut stream).await;
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 408"), "{sent:?}: {answer}");
    }
    // A connection that is kept open and not used.
    let mut stream = connect(&server).await;
    stream.write_all(post.as_bytes()).await.unwrap();
    assert!(rest(&mut stream).await.starts_with("HTTP/1.1 200"));
}

/// A client that asks and never reads held its connection for good.
#[tokio::test]
async fn a_client_that_never_reads_is_dropped() {
    let long = "x".repeat(64 * 1024 * 1024);
    let backend = Scripted::new(&long);
    let server = start(&backend, Limits { connections: 1, ..QUICK }).await;
    let post = post("/infill", r#"{"input_prefix":"a","input_suffix":""}"#);
    let mut stuck = connect(&server).await;
    stuck.write_all(post.as_bytes()).await.unwrap();
    let health = format!("GET /t/{}/health HTTP/1.1\r\nHost: localhost\r\n\r\n", token().as_str());
    // The one connection is free again, although the client has not closed its end.
    while !exchange(&server, &health).await.starts_with("HTTP/1.1 200") {}
    drop(stuck);
}

#[tokio::test]
async fn fifty_clients_are_served_at_once_and_no_more_than_the_limit() {
    let backend = Scripted::new("b");
    let limits = Limits { connections: 50, ..Limits::default() };
    let server = start(&backend, limits).await;
    let body = post("/infill", r#"{"input_prefix":"hang","input_suffix":""}"#);
    let mut clients = vec![];
    for _ in 0..50 {
        let mut stream = connect(&server).await;
        stream.write_all(body.as_bytes()).await.unwrap();
        clients.push(stream);
    }
    let mut hanging = backend.hanging.subscribe();
    hanging.wait_for(|hanging| *hanging == 50).await.unwrap();
    let mut one_more = connect(&server).await;
    assert_eq!(rest(&mut one_more).await, "", "it is closed at once");
    drop(clients);
    hanging.wait_for(|hanging| *hanging == 0).await.unwrap();
}

#[tokio::test]
async fn a_port_that_is_taken_is_an_error_until_it_is_given_back() {
    let backend = Scripted::new("b");
    let server = start(&backend, Limits::default()).await;
    let port = server.addresses()[0].port();
    let error = listen(port, token(), backend.clone(), Limits::default()).await.err().unwrap();
    assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
    server.close().await;
    listen(port, token(), backend, Limits::default()).await.unwrap();
}
