//! End to end: the real binary, the real models, the real database.
//! `cargo xtask test` builds and fetches what these need.
#![cfg(unix)]

mod adapters;
mod addresses;
mod alternatives;
mod api;
mod bad_input;
mod brackets;
mod clients;
mod command_line;
mod context;
mod crash;
mod daemon;
mod forget;
mod gate;
mod handed_prompts;
mod history;
mod holdout_check;
mod hostile;
mod isolation;
mod labels;
mod learner_faults;
mod learner_manners;
mod learner_stands_still;
mod machine;
mod memory;
mod multiline;
mod next_edit;
mod parity;
mod pause;
mod protocol;
mod rehearse;
mod rehearse_next_edits;
mod report;
mod reuse;
mod secrets;
mod settings;
mod setup;
mod snooze;
mod story;
mod strangers_folder;
mod survival;
mod team;
mod terminal;
mod trial;
mod why;
