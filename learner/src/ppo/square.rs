//! An adapter whose only trained numbers are a square C of every map (LoRA-XS, arXiv:2405.17604):
//! the change of a map is `GAIN`·B·C·A, and A and B are fixed (`models::team::frame`).
//!
//! In the adapter the rows of A are `GAIN`/scale·C·A, so that it is an ordinary one for whoever
//! serves it, and so the gradient of C is `GAIN`/scale·dA·Aᵀ.

use crate::kernels::{dot, matrix, values, with_values};
use crate::model::lora::{Lora, LoraGradient, LoraLayer};
use crate::ppo::adam::GradientSum;
use candle_core::Result;
use models::team::compose::{GAIN, shared_a};
use models::team::core::Core;
use models::team::frame::{Frame, RANK};
use rayon::prelude::*;

/// The largest distance of the rows of A from those of the squares, relative to the largest.
const TOLERANCE: f32 = 1e-3;

/// C of every map, and the fixed matrix that it is multiplied with.
pub struct Square {
    /// The first of its ranks in the adapter.
    first: usize,
    /// A of each map, `RANK` × in.
    fixed_a: Vec<Vec<f32>>,
    /// C of each map.
    cores: Vec<Vec<f32>>,
}

impl Square {
    /// The part of `lora` that a team shares, which must have been composed with this `core`.
    ///
    /// # Errors
    /// The adapter was composed with another shared part.
    pub fn shared(frame: &Frame, core: &Core, lora: &Lora) -> anyhow::Result<Square> {
        let square = Square {
            first: 0,
            fixed_a: frame.maps.iter().map(|map| map.a()).collect(),
            cores: (0..frame.maps.len()).map(|map| core.values(map)).collect(),
        };
        let is_composed = lora.shared_rank == RANK
            && frame.maps.len() == lora.layers.iter().map(Vec::len).sum::<usize>()
            && lora.layers.iter().flatten().enumerate().all(|(map, pair)| {
                let made = square.rows(map, lora);
                // The scale is rounded once more in the adapter, which has alpha and not the scale.
                let are_made = |own: Vec<f32>| {
                    own.get(..made.len()).is_some_and(|rows| are_close(rows, &made))
                };
                values::<f32>(&pair.a).is_ok_and(are_made)
            });
        anyhow::ensure!(is_composed, "the parent adapter was not made with this shared part");
        Ok(square)
    }

    /// The squares of an adapter's own ranks, behind those that a team shares. `None` if its own
    /// ranks have another form: it was learned with A and B free, or elsewhere.
    ///
    /// # Errors
    /// The tensors cannot be read.
    pub fn own(frame: &Frame, lora: &Lora) -> Result<Option<Square>> {
        let first = lora.shared_rank;
        let pairs: Vec<&LoraLayer> = lora.layers.iter().flatten().collect();
        if lora.rank != first + RANK || pairs.len() != frame.maps.len() {
            return Ok(None);
        }
        let factor = GAIN / lora.scale() as f32;
        let mut square = Square { first, fixed_a: Vec::new(), cores: Vec::new() };
        for (pair, map) in pairs.into_iter().zip(&frame.maps) {
            let b = values::<f32>(&pair.b)?;
            let own_b = b.chunks(lora.rank).flat_map(|row| &row[first..]);
            if b.len() != map.rows_out * lora.rank || !own_b.eq(&map.b()) {
                return Ok(None);
            }
            let (rows, a) = (values::<f32>(&pair.a)?, map.a());
            let rows = &rows[first * map.rows_in..];
            let core = solve(rows, &a, map.rows_in, factor);
            square.fixed_a.push(a);
            square.cores.push(core);
            if !are_close(rows, &square.rows(square.cores.len() - 1, lora)) {
                return Ok(None);
            }
        }
        Ok(Some(square))
    }

    /// The number of values of each C.
    pub fn lengths(&self) -> impl Iterator<Item = usize> {
        self.cores.iter().map(Vec::len)
    }

    /// The values of all C, one map after the other.
    pub fn values(&self) -> Vec<f32> {
        self.cores.concat()
    }

    pub(super) fn cores(&self) -> &[Vec<f32>] {
        &self.cores
    }

    pub(super) fn cores_mut(&mut self) -> &mut [Vec<f32>] {
        &mut self.cores
    }

    /// The rows of A that the square of a map has in this adapter.
    fn rows(&self, map: usize, lora: &Lora) -> Vec<f32> {
        let rows_in = self.fixed_a[map].len() / RANK;
        shared_a(&self.fixed_a[map], &self.cores[map], rows_in, lora.scale() as f32)
    }

    /// Adds to the gradient of the C of the adapter's `pair`-th pair what a gradient of the pair's
    /// tensors means for it.
    pub(super) fn add(
        &self,
        sum: &mut GradientSum,
        pair: usize,
        gradient: &LoraGradient,
        lora: &Lora,
    ) -> Result<()> {
        let factor = GAIN / lora.scale() as f32;
        let (a, d_core) = (&self.fixed_a[pair], &mut sum.vectors_mut()[pair]);
        let rows_in = a.len() / RANK;
        with_values(&gradient.a, |d_a: &[f32]| {
            d_core.par_chunks_mut(RANK).enumerate().for_each(|(rank, d_core)| {
                let d_row = &d_a[(self.first + rank) * rows_in..][..rows_in];
                for (row, value) in a.chunks(rows_in).zip(d_core) {
                    *value += factor * dot(d_row, row);
                }
            });
        })
    }

    /// The L2 norm of the change of the rows of A since the squares were these. It is exact as far
    /// as the rows of the fixed A are orthogonal.
    pub(super) fn change_of_rows(&self, before: &[Vec<f32>], lora: &Lora) -> f64 {
        let factor = f64::from(GAIN) / lora.scale();
        let pairs = self.cores.iter().flatten().zip(before.iter().flatten());
        let square = |(now, before): (&f32, &f32)| (f64::from(*now) - f64::from(*before)).powi(2);
        factor * pairs.map(square).sum::<f64>().sqrt()
    }

    /// Gives the adapter the rows of A that belong to the squares.
    pub(super) fn write_into(&self, lora: &mut Lora) -> Result<()> {
        let rows: Vec<Vec<f32>> = (0..self.cores.len()).map(|map| self.rows(map, lora)).collect();
        for (pair, rows) in lora.layers.iter_mut().flatten().zip(rows) {
            let (rank, rows_in) = pair.a.dims2()?;
            let mut a = values::<f32>(&pair.a)?;
            a[self.first * rows_in..][..rows.len()].copy_from_slice(&rows);
            pair.a = matrix(a, rank, rows_in)?;
        }
        Ok(())
    }
}

/// Returns true if rows of A are those that were made of a square.
fn are_close(rows: &[f32], made: &[f32]) -> bool {
    let largest = rows.iter().fold(0f32, |most, value| most.max(value.abs()));
    rows.iter().zip(made).all(|(row, made)| (row - made).abs() <= TOLERANCE * largest)
}

/// The C for which `factor`·C·A comes closest to these rows: rows·Aᵀ·(A·Aᵀ)⁻¹/`factor`.
fn solve(rows: &[f32], a: &[f32], rows_in: usize, factor: f32) -> Vec<f32> {
    let product = |left: &[f32], right: &[f32]| -> f64 {
        left.iter().zip(right).map(|(l, r)| f64::from(*l) * f64::from(*r)).sum()
    };
    // Gauss and Jordan turn A·Aᵀ into the identity, and the right sides into the columns of Cᵀ.
    let mut left: Vec<Vec<f64>> =
        a.chunks(rows_in).map(|r| a.chunks(rows_in).map(|c| product(r, c)).collect()).collect();
    let mut right: Vec<Vec<f64>> =
        a.chunks(rows_in).map(|r| rows.chunks(rows_in).map(|c| product(r, c)).collect()).collect();
    for pivot in 0..left.len() {
        let by = left[pivot][pivot];
        let scaled = |row: &[f64]| row.iter().map(|value| value / by).collect::<Vec<f64>>();
        (left[pivot], right[pivot]) = (scaled(&left[pivot]), scaled(&right[pivot]));
        let (left_row, right_row) = (left[pivot].clone(), right[pivot].clone());
        for row in (0..left.len()).filter(|row| *row != pivot) {
            let times = left[row][pivot];
            let subtract = |from: &mut [f64], row: &[f64]| {
                from.iter_mut().zip(row).for_each(|(value, other)| *value -= times * other);
            };
            subtract(&mut left[row], &left_row);
            subtract(&mut right[row], &right_row);
        }
    }
    let core = (0..RANK).flat_map(|row| right.iter().map(move |column| column[row]));
    core.map(|value| value as f32 / factor).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::LoraGradients;
    use models::adapter::{LoraAdapter, LoraPair};
    use models::team::compose::compose;
    use models::team::frame::FrameMap;

    fn frame() -> Frame {
        let map = |name: &str, rows_out, rows_in| FrameMap { name: name.into(), rows_out, rows_in };
        Frame {
            base_sha256: "base".into(),
            architecture: "qwen2".into(),
            maps: vec![map("blk.0.attn_q.weight", 24, 40), map("blk.1.attn_q.weight", 40, 64)],
        }
    }

    /// An adapter of squares with values that repeat every 13 numbers.
    fn learned(frame: &Frame) -> (Lora, Square) {
        let (mut lora, mut square) = unlearned(frame);
        let values = square.cores.iter_mut().flatten().enumerate();
        values.for_each(|(at, value)| *value = (at % 13) as f32 / 100.0 - 0.06);
        square.write_into(&mut lora).unwrap();
        (lora, square)
    }

    #[test]
    fn the_squares_of_an_adapter_are_found_again() {
        let frame = frame();
        let (lora, square) = learned(&frame);
        let found = Square::own(&frame, &lora).unwrap().unwrap();
        for (found, value) in found.values().iter().zip(square.values()) {
            assert!((found - value).abs() < 1e-6, "{found} for {value}");
        }
        let (_, unlearned) = unlearned(&frame);
        assert!(unlearned.values().iter().all(|value| *value == 0.0));
    }

    #[test]
    fn other_forms_are_told_from_squares() {
        let frame = frame();
        let changed = |of: fn(&mut LoraLayer) -> &mut candle_core::Tensor| {
            let (mut lora, _) = learned(&frame);
            let tensor = of(&mut lora.layers[1][0]);
            let (rows, width) = tensor.dims2().unwrap();
            let mut all = values::<f32>(tensor).unwrap();
            all[0] += 0.01;
            *tensor = matrix(all, rows, width).unwrap();
            Square::own(&frame, &lora).unwrap().is_none()
        };
        assert!(changed(|pair| &mut pair.a), "a row of A is outside of what squares can give");
        assert!(changed(|pair| &mut pair.b), "B is another");
        let (lora, _) = learned(&frame);
        assert!(Square::own(&frame, &Lora { shared_rank: 1, ..lora }).unwrap().is_none());
    }

    /// An adapter with this shared part and a private one of this rank and alpha, as a member makes
    /// it for a contribution.
    fn composed(frame: &Frame, core: &Core, rank: usize, alpha: f32) -> Lora {
        let pairs = frame.maps.iter().map(|map| LoraPair {
            name: map.name.clone(),
            rows_out: map.rows_out,
            rows_in: map.rows_in,
            a: vec![0.25; rank * map.rows_in],
            b: vec![0.5; map.rows_out * rank],
        });
        let private = LoraAdapter {
            architecture: frame.architecture.clone(),
            base_sha256: frame.base_sha256.clone(),
            rank,
            shared_rank: 0,
            alpha,
            invocation: vec![],
            pairs: pairs.collect(),
        };
        lora_of(compose(frame, core, Some(&private)).unwrap())
    }

    /// The adapter with each map in a layer of its own.
    fn lora_of(adapter: LoraAdapter) -> Lora {
        let LoraAdapter { rank, shared_rank, alpha, pairs, .. } = adapter;
        let pairs = pairs.into_iter().map(|pair| LoraLayer {
            a: matrix(pair.a, rank, pair.rows_in).unwrap(),
            b: matrix(pair.b, pair.rows_out, rank).unwrap(),
        });
        Lora { rank, shared_rank, alpha, layers: pairs.map(|pair| vec![pair]).collect() }
    }

    /// An adapter of squares that changes nothing yet, as learning from a history starts from it.
    fn unlearned(frame: &Frame) -> (Lora, Square) {
        let shared = compose(frame, &Core::zero(frame), None).unwrap();
        let lora = lora_of(LoraAdapter { shared_rank: 0, ..shared });
        let square = Square::own(frame, &lora).unwrap().unwrap();
        (lora, square)
    }

    /// An adapter says its alpha, and alpha / rank need not be exact.
    #[test]
    fn the_shared_part_is_found_next_to_a_private_one_of_any_scale() {
        let frame = frame();
        let numbers: Vec<i32> = (0..frame.numbers() as i32).map(|i| i * 37 % 401 - 200).collect();
        let core = Core::new(&frame, 3, numbers.clone()).unwrap();
        for (rank, alpha) in [(16, 32.0), (10, 32.0), (9, 20.0), (38, 64.0)] {
            let lora = composed(&frame, &core, rank, alpha);
            let square = Square::shared(&frame, &core, &lora).unwrap();
            assert_eq!(square.values(), [core.values(0), core.values(1)].concat());
        }
        let lora = composed(&frame, &core, 10, 32.0);
        let mut numbers = numbers;
        numbers[300] += 20;
        let other = Core::new(&frame, 4, numbers).unwrap();
        assert!(Square::shared(&frame, &other, &lora).is_err(), "one number is another");
    }

    /// The rows of A are linear in C, so a difference quotient of the loss is exact.
    #[test]
    fn the_gradient_of_a_square_is_that_of_the_loss() {
        let frame = frame();
        let (lora, square) = learned(&frame);
        let of_tensor = |tensor: &candle_core::Tensor| {
            let (rows, width) = tensor.dims2().unwrap();
            let values = (0..rows * width).map(|at| (at % 7) as f32 / 10.0 - 0.3).collect();
            matrix(values, rows, width).unwrap()
        };
        let pairs = lora.layers.iter().flatten();
        let gradient: LoraGradients =
            pairs.map(|p| LoraGradient { a: of_tensor(&p.a), b: of_tensor(&p.b) }).collect();
        let lengths: Vec<usize> = square.lengths().collect();
        let mut sum = GradientSum::zero(&lengths);
        for (pair, part) in gradient.iter().chain(&gradient).enumerate() {
            square.add(&mut sum, pair % gradient.len(), part, &lora).unwrap();
        }
        for (map, at) in [(0, 0), (0, 37), (1, 255)] {
            let rows = |change: f32| {
                let (_, mut square) = learned(&frame);
                square.cores[map][at] += change;
                square.rows(map, &lora)
            };
            let d_a = values::<f32>(&gradient[map].a).unwrap();
            let risen = rows(1.0).into_iter().zip(rows(0.0)).zip(&d_a);
            let expected: f32 = risen.map(|((up, now), d_a)| (up - now) * d_a).sum();
            let found = sum.vectors_mut()[map][at];
            assert!((found - 2.0 * expected).abs() < 1e-3, "{found} for 2·{expected}");
        }
    }
}
