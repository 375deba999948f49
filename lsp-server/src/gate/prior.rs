//! Where the gate starts on its first day: what offers of other people's
//! rehearsals taught it, with room to change its mind.

use super::features::FEATURES;

#[derive(Debug, Clone, PartialEq)]
pub struct Prior {
    pub mean: [f64; FEATURES],
    pub deviation: [f64; FEATURES],
}

pub fn shipped() -> Prior {
    let mut mean = [0.0; FEATURES];
    mean[1] = 2.0;
    Prior { mean, deviation: [0.5; FEATURES] }
}
