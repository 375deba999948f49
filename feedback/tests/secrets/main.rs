//! The search for secrets is measured on a corpus of made-up credentials, on ordinary lines
//! that look a little like them, and on this repository's own sources.

mod corpus;
mod draw;
mod ordinary;
mod own_windows;
