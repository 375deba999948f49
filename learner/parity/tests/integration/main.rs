//! The learner next to llama.cpp. The comparison with a GPU is a binary of its own (`gpu.rs`),
//! because it asks for a feature.

mod handed;
mod logprobs;
mod router_replay;
