//! How a client leaves. LSP wants `shutdown` before `exit`, and a server that failed if a client
//! exits at once.

use anyhow::{Result, ensure};
use parking_lot::Mutex;
use std::sync::Arc;
use std::task::{Context, Poll};
use tower_lsp::jsonrpc::{Request, Response};
use tower_service::Service;

#[derive(Debug, Clone, Copy, Default)]
pub struct Leave {
    has_shut_down: bool,
    has_left: bool,
}

impl Leave {
    /// Notes the method of a message.
    pub fn note(&mut self, method: &str) {
        match method {
            "shutdown" => self.has_shut_down = true,
            "exit" => self.has_left = true,
            _ => {}
        }
    }

    /// Returns true if the client has sent `exit`.
    pub fn has_left(self) -> bool {
        self.has_left
    }

    /// # Errors
    /// The client has sent `exit` without `shutdown`.
    pub fn check(self) -> Result<()> {
        let is_in_order = self.has_shut_down || !self.has_left;
        ensure!(is_in_order, "the editor sent `exit` without `shutdown`");
        Ok(())
    }
}

/// Notes how a client leaves.
pub struct Noting<S> {
    pub service: S,
    pub leave: Arc<Mutex<Leave>>,
}

impl<S: Service<Request, Response = Option<Response>>> Service<Request> for Noting<S> {
    type Response = Option<Response>;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.service.poll_ready(context)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        self.leave.lock().note(request.method());
        self.service.call(request)
    }
}
