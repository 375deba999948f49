//! The learner as a whole. One binary has all of these tests, because each one is optimised and
//! linked by itself.

mod batch;
mod common;
mod forms;
mod gradient;
mod job;
mod random_model;
mod refused;
mod squares;
mod team;
mod unread;
