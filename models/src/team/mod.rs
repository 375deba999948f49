//! The part of an adapter that a team shares.
//!
//! An adapter may have two parts. The *private* part is the user's own and never leaves the
//! machine. The *shared* part is the same for all members of a team. Both act on every adapted
//! map, one next to the other: W + gain·B·C·A + scale·Bₚ·Aₚ.
//!
//! A and B are fixed ([`frame`]): every member computes them from a public seed. Only the small
//! square C in between is learned ([`core`]). The change of a map is linear in C, so the mean of
//! the members' C is exactly the mean of what the members learned. The form is that of LoRA-XS
//! (arXiv:2405.17604) and Fed-SB (arXiv:2502.15436).
//!
//! All C together are a few ten thousand numbers. They are whole multiples of [`core::STEP`], so
//! that sums and differences are exact on every machine. [`compose`] makes one adapter of both
//! parts, [`contribution`] makes what a member sends of what it learned, and [`delta`] turns one
//! version of the shared part into the next.

pub mod compose;
pub mod contribution;
pub mod core;
pub mod delta;
pub mod frame;
