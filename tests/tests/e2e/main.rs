//! End to end: the real binary, the real models, the real database.
//! `cargo xtask test` builds and fetches what these need.

mod parity;
mod story;
