//! The connections of clients, on the loopback interface alone.

use crate::dialects::{Dialect, Reply, Route, Trouble, client_name};
use crate::guard::{Refused, admit};
use crate::limits::{BODY_BYTES, DISCARDED_BYTES, HEAD_BYTES, HEADERS, Limits};
use crate::{Backend, Token};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue, USER_AGENT};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_io_timeout::TimeoutStream;

/// The pause after a connection that could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A port on which clients are answered, until this is closed or dropped.
pub struct Listening {
    addresses: Vec<SocketAddr>,
    tasks: JoinSet<()>,
}

impl Listening {
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Gives the port back, and ends the connections.
    pub async fn close(mut self) {
        self.tasks.shutdown().await;
    }
}

/// Listens on a port of 127.0.0.1, and of ::1 where this machine has it. Port 0 means any.
///
/// # Errors
/// The port is taken.
pub async fn listen<B: Backend>(
    port: u16,
    token: Token,
    backend: Arc<B>,
    limits: Limits,
) -> io::Result<Listening> {
    let first = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
    let port = first.local_addr()?.port();
    let mut listeners = vec![first];
    match TcpListener::bind((Ipv6Addr::LOCALHOST, port)).await {
        Ok(second) => listeners.push(second),
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => return Err(error),
        // This machine has no such address.
        Err(_) => {}
    }
    let addresses = listeners.iter().map(TcpListener::local_addr).collect::<io::Result<_>>()?;
    let permits = Arc::new(Semaphore::new(limits.connections));
    let mut tasks = JoinSet::new();
    for listener in listeners {
        tasks.spawn(accept(listener, token.clone(), backend.clone(), limits, permits.clone()));
    }
    Ok(Listening { addresses, tasks })
}

/// Accepts connections until it is dropped, which ends them too.
async fn accept<B: Backend>(
    listener: TcpListener,
    token: Token,
    backend: Arc<B>,
    limits: Limits,
    permits: Arc<Semaphore>,
) {
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            Some(_) = connections.join_next() => continue,
        };
        let Ok((stream, _)) = accepted else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        // One too many is closed at once, so that nobody waits for one that is never served.
        let Ok(permit) = permits.clone().try_acquire_owned() else { continue };
        let (token, backend) = (token.clone(), backend.clone());
        connections.spawn(async move {
            converse(stream, &token, &*backend, limits).await;
            drop(permit);
        });
    }
}

/// Serves the requests of a connection. A client that closes it cancels its request, because
/// nobody asks for the answer's future any more.
async fn converse<B: Backend>(stream: TcpStream, token: &Token, backend: &B, limits: Limits) {
    let _ = stream.set_nodelay(true);
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(limits.write_time));
    let answer = service_fn(async |request: Request<Incoming>| {
        let answer = answer(request, token, backend, limits).await;
        Ok::<_, Infallible>(response(answer))
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head_time)
        .max_buf_size(HEAD_BYTES)
        .max_headers(HEADERS)
        .serve_connection(TokioIo::new(Box::pin(stream)), answer);
    // What went wrong with it concerns the client alone, and may name a path.
    let _ = connection.await;
}

async fn answer<B: Backend>(
    request: Request<Incoming>,
    token: &Token,
    backend: &B,
    limits: Limits,
) -> Reply {
    let (head, body) = request.into_parts();
    let path = match admit(&head.uri, &head.headers, token) {
        Ok(path) => path,
        Err(refused) => {
            // Whoever has no token learns no dialect of a path either.
            return Dialect::OpenAi.error(&refused.into());
        }
    };
    let route = Route::of(path);
    let agent = head.headers.get(USER_AGENT).and_then(|agent| agent.to_str().ok());
    let reply = async {
        route.check(&head.method)?;
        let model = backend.model();
        if let Some(reply) = route.answer(&model) {
            return Ok(reply);
        }
        let body = read(body, limits.body_time).await?;
        let asked = route.read(&body, &client_name(agent), &model)?;
        let answer = backend.complete(asked.request.clone()).await?;
        Ok(asked.reply(&answer, &model))
    };
    reply.await.unwrap_or_else(|trouble| route.dialect().error(&trouble))
}

impl From<Refused> for Trouble {
    fn from(refused: Refused) -> Trouble {
        let status = match refused {
            Refused::Page | Refused::Host => StatusCode::FORBIDDEN,
            Refused::Token => StatusCode::UNAUTHORIZED,
        };
        Trouble::new(status, refused.to_string())
    }
}

/// Reads the body of a request. Some clients read no answer before they have sent all of it, so the
/// rest of a body that is too long is read and dropped, up to a limit.
async fn read(mut body: Incoming, time: Duration) -> Result<Vec<u8>, Trouble> {
    let (mut bytes, mut length) = (vec![], 0);
    let reading = async {
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame?.into_data() else { continue };
            length += data.len();
            if length <= BODY_BYTES {
                bytes.extend_from_slice(&data);
            } else if length > DISCARDED_BYTES {
                break;
            }
        }
        Ok::<(), hyper::Error>(())
    };
    match timeout(time, reading).await {
        _ if length > BODY_BYTES => {
            let message = format!("the body is longer than {BODY_BYTES} bytes");
            Err(Trouble::new(StatusCode::PAYLOAD_TOO_LARGE, message))
        }
        Ok(Ok(())) => Ok(bytes),
        Ok(Err(_)) => Err(Trouble::new(StatusCode::BAD_REQUEST, "the body cannot be read")),
        Err(_) => Err(Trouble::new(StatusCode::REQUEST_TIMEOUT, "the body came too slowly")),
    }
}

fn response(reply: Reply) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(reply.body));
    *response.status_mut() = reply.status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(reply.content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

#[cfg(test)]
mod tests;
