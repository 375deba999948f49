//! Turns text into a prompt, and generated text into shown text. Everything here is pure: it reads
//! no file, calls no engine and looks up no setting.

pub mod auto_closed;
pub mod cells;
pub mod debounce;
pub mod defects;
pub mod document;
pub mod foreign_marks;
pub mod indentation;
pub mod languages;
pub mod limits;
pub mod postprocess;
pub mod prompt;
pub mod prompt_builder;
pub mod recent_edits;
pub mod related_code;
pub mod shown;
pub mod stop_rule;
pub mod syntax;
