//! hone-learner: labelled episodes in, a LoRA adapter out.
//!
//! From the border inwards: [`stream`] (job lines), [`train`] (one job),
//! [`batch`] (episodes → samples), [`ppo`] (the algorithm), [`imitation`] (what its texts
//! weigh), [`optim`] (AdamW),
//! [`model`] (forward and backward of a tail), [`prompt`] (the constant part),
//! and below them [`head`], [`attention`] and [`attend`] (without gradient),
//! [`lora`], [`kernels`], [`weights`], [`product`] (products with quantised
//! matrices), [`blocks`] (their formats), [`product8`] (the same with activations
//! [`rounded`] to 8 bits), [`dot8`] and [`tile`] (their innermost loops), and [`threads`] and [`system`]: what of the machine is taken.
//!
//! Only this crate knows candle.

pub mod attend;
pub mod attention;
pub mod batch;
pub mod blocks;
pub mod dot8;
#[cfg(feature = "cuda")]
pub mod gpu;
pub mod head;
pub mod imitation;
pub mod kernels;
pub mod lora;
pub mod model;
pub mod optim;
pub mod ppo;
pub mod product;
pub mod product8;
pub mod prompt;
pub mod real;
pub mod rounded;
pub mod stream;
pub mod system;
pub mod threads;
pub mod tile;
pub mod train;
pub mod weights;
