//! The sessions that are open: those of editors' connections, and those of HTTP clients' texts.

use parking_lot::Mutex;
use services::Services;
use session::Session;
use std::sync::{Arc, Weak};

/// Who works in a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Client {
    Editor,
    Http,
}

#[derive(Default)]
pub struct Sessions(Mutex<Vec<(Client, Weak<Session>)>>);

impl Sessions {
    pub fn open(&self, client: Client, services: Arc<Services>) -> Arc<Session> {
        let session = Arc::new(Session::new(services));
        let mut sessions = self.0.lock();
        sessions.retain(|(_, session)| session.strong_count() > 0);
        sessions.push((client, Arc::downgrade(&session)));
        session
    }

    pub fn all(&self) -> Vec<Arc<Session>> {
        self.0.lock().iter().filter_map(|(_, session)| session.upgrade()).collect()
    }

    pub fn count(&self, of: Client) -> usize {
        let sessions = self.0.lock();
        let is_open = |session: &Weak<Session>| session.strong_count() > 0;
        sessions.iter().filter(|(client, session)| *client == of && is_open(session)).count()
    }
}
