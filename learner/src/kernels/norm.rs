//! The norms of the rows of activations, and their gradients: RMSNorm (arXiv:1910.07467) and
//! LayerNorm (arXiv:1607.06450).

use crate::kernels::float::Float;
use crate::kernels::{dot, matrix, rows_per_task, sum_of, values, with_values};
use candle_core::{Result, Tensor};
use pulp::Arch;
use rayon::prelude::*;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NormKind {
    /// x / √(mean(x²) + ε).
    Rms,
    /// (x − mean(x)) / √(var(x) + ε).
    Layer,
}

/// A norm with its weights. Rows have as many values as `weight`. A tensor may have several such
/// rows side by side, such as the heads of a query, and each of them is normed for itself.
#[derive(Debug, Clone)]
pub struct Norm<T> {
    pub kind: NormKind,
    pub weight: Vec<T>,
    pub bias: Option<Vec<T>>,
    pub epsilon: f64,
}

impl<T: Float> Norm<T> {
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let (rows, width) = x.dims2()?;
        let mut y = vec![T::zero(); rows * width];
        with_values(x, |x: &[T]| self.forward_rows(x, &mut y))?;
        matrix(y, rows, width)
    }

    /// The same on slices.
    pub fn forward_rows(&self, x: &[T], y: &mut [T]) {
        let width = self.weight.len();
        y.par_chunks_mut(width)
            .zip(x.par_chunks(width))
            .with_min_len(rows_per_task(width))
            .for_each(|(y, x)| {
                Arch::new().dispatch(|| {
                    let spread = self.spread(x);
                    for ((y, x), w) in y.iter_mut().zip(x).zip(&self.weight) {
                        *y = spread.normed(*x) * *w;
                    }
                    self.add_bias(y);
                });
            });
    }

    /// The same, where the result replaces x.
    pub fn in_place(&self, x: &mut [T]) {
        let width = self.weight.len();
        x.par_chunks_mut(width).with_min_len(rows_per_task(width)).for_each(|x| {
            Arch::new().dispatch(|| {
                let spread = self.spread(x);
                for (x, w) in x.iter_mut().zip(&self.weight) {
                    *x = spread.normed(*x) * *w;
                }
                self.add_bias(x);
            });
        });
    }

    #[inline(always)]
    fn add_bias(&self, y: &mut [T]) {
        for (y, bias) in y.iter_mut().zip(self.bias.iter().flatten()) {
            *y += *bias;
        }
    }

    /// `residual` plus the gradient with respect to x. With n = (x − mean)·s and g = dy·w it is
    /// dx = s·(g − n·mean(g·n) − mean(g)). RMSNorm has neither mean(x) nor mean(g).
    pub fn backward(&self, residual: &Tensor, dy: &Tensor, x: &Tensor) -> Result<Tensor> {
        let (rows, width) = x.dims2()?;
        let mut dx = values::<T>(residual)?;
        with_values(dy, |dy: &[T]| with_values(x, |x: &[T]| self.backward_rows(&mut dx, dy, x)))??;
        matrix(dx, rows, width)
    }

    /// The same without a residual.
    pub fn gradient(&self, dy: &Tensor, x: &Tensor) -> Result<Tensor> {
        let (rows, width) = x.dims2()?;
        let mut dx = vec![T::zero(); rows * width];
        with_values(dy, |dy: &[T]| with_values(x, |x: &[T]| self.backward_rows(&mut dx, dy, x)))??;
        matrix(dx, rows, width)
    }

    fn backward_rows(&self, dx: &mut [T], dy: &[T], x: &[T]) {
        let width = self.weight.len();
        let count = T::from_f64(width as f64);
        let weight = &self.weight;
        dx.par_chunks_mut(width)
            .zip(dy.par_chunks(width))
            .zip(x.par_chunks(width))
            .with_min_len(rows_per_task(width))
            .for_each(|((dx, dy), x)| {
                let Spread { mean, inverse: s } = self.spread(x);
                let along = sum_of(width, |i| dy[i] * weight[i] * (x[i] - mean));
                let shrink = along * s * s * s / count;
                let shift = match self.kind {
                    NormKind::Rms => T::zero(),
                    NormKind::Layer => s * sum_of(width, |i| dy[i] * weight[i]) / count,
                };
                for i in 0..width {
                    dx[i] += dy[i] * weight[i] * s - (x[i] - mean) * shrink - shift;
                }
            });
    }

    #[inline(always)]
    fn spread(&self, x: &[T]) -> Spread<T> {
        let (count, epsilon) = (T::from_f64(x.len() as f64), T::from_f64(self.epsilon));
        let (mean, square) = match self.kind {
            NormKind::Rms => (T::zero(), dot(x, x) / count),
            NormKind::Layer => {
                let mean = sum_of(x.len(), |i| x[i]) / count;
                (mean, sum_of(x.len(), |i| (x[i] - mean) * (x[i] - mean)) / count)
            }
        };
        Spread { mean, inverse: T::one() / (square + epsilon).sqrt() }
    }
}

/// The numbers that a row is centred with and multiplied with.
struct Spread<T> {
    mean: T,
    inverse: T,
}

impl<T: Float> Spread<T> {
    #[inline(always)]
    fn normed(&self, x: T) -> T {
        (x - self.mean) * self.inverse
    }
}
