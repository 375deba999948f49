//! The heads that attention is cut into.

/// The numbers of heads, and their size.
#[derive(Debug, Clone, Copy)]
pub struct Heads {
    pub query: usize,
    pub key_value: usize,
    /// The number of values in one head.
    pub width: usize,
    /// The factor that scores are multiplied with.
    pub scale: f64,
}

impl Heads {
    /// The number of query heads that share a key/value head.
    pub fn group(self) -> usize {
        self.query / self.key_value
    }
}
