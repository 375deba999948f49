//! The editor connections that are open.

use parking_lot::Mutex;
use services::Services;
use session::Session;
use std::sync::{Arc, Weak};

#[derive(Default)]
pub struct Sessions(Mutex<Vec<Weak<Session>>>);

impl Sessions {
    pub fn open(&self, services: Arc<Services>) -> Arc<Session> {
        let session = Arc::new(Session::new(services));
        let mut sessions = self.0.lock();
        sessions.retain(|session| session.strong_count() > 0);
        sessions.push(Arc::downgrade(&session));
        session
    }

    pub fn all(&self) -> Vec<Arc<Session>> {
        self.0.lock().iter().filter_map(Weak::upgrade).collect()
    }

    pub fn count(&self) -> usize {
        self.0.lock().iter().filter(|session| session.strong_count() > 0).count()
    }
}
