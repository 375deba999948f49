//! The activations of the feed-forward part, with and without a gate, and their gradients.

use crate::kernels::float::Float;
use crate::kernels::{VALUES_PER_TASK, matrix, values, with_values};
use candle_core::{Result, Tensor};
use pulp::Arch;
use rayon::prelude::*;
use std::f64::consts::FRAC_2_PI;

/// The coefficient of x³ in the approximation of GELU with tanh.
const GELU_CUBIC: f64 = 0.044_715;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activation {
    /// x·σ(x). With a gate it is SwiGLU (arXiv:2002.05202).
    Silu,
    /// GELU (arXiv:1606.08415) in the approximation with tanh, which llama.cpp computes. With a
    /// gate it is GeGLU.
    Gelu,
}

/// A function of one number and its derivative.
trait Function {
    fn value<T: Float>(x: T) -> T;
    /// f(x) and f'(x).
    fn with_slope<T: Float>(x: T) -> (T, T);
}

struct Silu;

impl Function for Silu {
    #[inline(always)]
    fn value<T: Float>(x: T) -> T {
        x * sigmoid(x)
    }

    #[inline(always)]
    fn with_slope<T: Float>(x: T) -> (T, T) {
        let s = sigmoid(x);
        let silu = x * s;
        (silu, s + silu * (T::one() - s))
    }
}

/// With z = √(2/π)·(x + c·x³), ½·(1 + tanh z) is σ(2z).
struct Gelu;

impl Gelu {
    #[inline(always)]
    fn share<T: Float>(x: T) -> T {
        let outer = T::from_f64(2.0 * FRAC_2_PI.sqrt());
        sigmoid(outer * (x + T::from_f64(GELU_CUBIC) * x * x * x))
    }
}

impl Function for Gelu {
    #[inline(always)]
    fn value<T: Float>(x: T) -> T {
        x * Gelu::share(x)
    }

    #[inline(always)]
    fn with_slope<T: Float>(x: T) -> (T, T) {
        let s = Gelu::share(x);
        let gelu = x * s;
        let inner = T::from_f64(2.0 * FRAC_2_PI.sqrt())
            * (T::one() + T::from_f64(3.0 * GELU_CUBIC) * x * x);
        (gelu, s + gelu * (T::one() - s) * inner)
    }
}

#[inline(always)]
fn sigmoid<T: Float>(x: T) -> T {
    T::one() / (T::one() + (T::zero() - x).exp())
}

impl Activation {
    /// f(gate) · up.
    pub fn gated<T: Float>(self, gate: &Tensor, up: &Tensor) -> Result<Tensor> {
        let (rows, width) = gate.dims2()?;
        let mut h = values::<T>(gate)?;
        with_values(up, |up: &[T]| self.gate_in_place(&mut h, up))?;
        matrix(h, rows, width)
    }

    /// The same on slices. The result replaces the gate.
    pub fn gate_in_place<T: Float>(self, gate: &mut [T], up: &[T]) {
        match self {
            Activation::Silu => gate_in_place::<Silu, T>(gate, up),
            Activation::Gelu => gate_in_place::<Gelu, T>(gate, up),
        }
    }

    /// (dgate, dup) of [`Activation::gated`]: dup = dh · f(gate) and dgate = dh · up · f'(gate).
    pub fn gated_backward<T: Float>(
        self,
        dh: &Tensor,
        gate: &Tensor,
        up: &Tensor,
    ) -> Result<(Tensor, Tensor)> {
        match self {
            Activation::Silu => gated_backward::<Silu, T>(dh, gate, up),
            Activation::Gelu => gated_backward::<Gelu, T>(dh, gate, up),
        }
    }

    /// f(x).
    pub fn plain<T: Float>(self, x: &Tensor) -> Result<Tensor> {
        let (rows, width) = x.dims2()?;
        let mut h = values::<T>(x)?;
        self.apply_in_place(&mut h);
        matrix(h, rows, width)
    }

    /// The same on a slice.
    pub fn apply_in_place<T: Float>(self, x: &mut [T]) {
        match self {
            Activation::Silu => apply_in_place::<Silu, T>(x),
            Activation::Gelu => apply_in_place::<Gelu, T>(x),
        }
    }

    /// The gradient of [`Activation::plain`]: dx = dh · f'(x).
    pub fn plain_backward<T: Float>(self, dh: &Tensor, x: &Tensor) -> Result<Tensor> {
        match self {
            Activation::Silu => plain_backward::<Silu, T>(dh, x),
            Activation::Gelu => plain_backward::<Gelu, T>(dh, x),
        }
    }
}

fn gate_in_place<F: Function, T: Float>(gate: &mut [T], up: &[T]) {
    gate.par_chunks_mut(VALUES_PER_TASK).zip(up.par_chunks(VALUES_PER_TASK)).for_each(
        |(gate, up)| {
            Arch::new().dispatch(|| {
                for (g, u) in gate.iter_mut().zip(up) {
                    *g = F::value(*g) * *u;
                }
            });
        },
    );
}

fn gated_backward<F: Function, T: Float>(
    dh: &Tensor,
    gate: &Tensor,
    up: &Tensor,
) -> Result<(Tensor, Tensor)> {
    let (rows, width) = gate.dims2()?;
    let mut dgate = vec![T::zero(); rows * width];
    let mut dup = vec![T::zero(); rows * width];
    with_values(dh, |dh: &[T]| {
        with_values(gate, |gate: &[T]| {
            with_values(up, |up: &[T]| {
                dgate
                    .par_chunks_mut(VALUES_PER_TASK)
                    .zip(dup.par_chunks_mut(VALUES_PER_TASK))
                    .zip(dh.par_chunks(VALUES_PER_TASK))
                    .zip(gate.par_chunks(VALUES_PER_TASK))
                    .zip(up.par_chunks(VALUES_PER_TASK))
                    .for_each(|((((dgate, dup), dh), gate), up)| {
                        Arch::new().dispatch(|| {
                            let rest = dh.iter().zip(gate).zip(up);
                            let both = dgate.iter_mut().zip(dup.iter_mut());
                            for ((dgate, dup), ((dh, gate), up)) in both.zip(rest) {
                                let (value, slope) = F::with_slope(*gate);
                                *dup = *dh * value;
                                *dgate = *dh * *up * slope;
                            }
                        });
                    });
            })
        })
    })???;
    Ok((matrix(dgate, rows, width)?, matrix(dup, rows, width)?))
}

fn apply_in_place<F: Function, T: Float>(x: &mut [T]) {
    x.par_chunks_mut(VALUES_PER_TASK)
        .for_each(|x| Arch::new().dispatch(|| x.iter_mut().for_each(|x| *x = F::value(*x))));
}

fn plain_backward<F: Function, T: Float>(dh: &Tensor, x: &Tensor) -> Result<Tensor> {
    let (rows, width) = x.dims2()?;
    let mut dx = values::<T>(dh)?;
    with_values(x, |x: &[T]| {
        dx.par_chunks_mut(VALUES_PER_TASK).zip(x.par_chunks(VALUES_PER_TASK)).for_each(
            |(dx, x)| {
                Arch::new().dispatch(|| {
                    for (dx, x) in dx.iter_mut().zip(x) {
                        *dx *= F::with_slope(*x).1;
                    }
                });
            },
        );
    })?;
    matrix(dx, rows, width)
}
