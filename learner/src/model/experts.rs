//! The feed-forward part of a mixture of experts (arXiv:1701.06538), forward and backward.
//!
//! The router gives each expert a logit s. A row goes through the `used` experts with the highest
//! logits, and its output is Σ gᵢ·Eᵢ(x) with gᵢ = exp(sᵢ) / Σⱼ exp(sⱼ) over these experts. That is
//! the softmax over all experts, divided by the sum of the chosen ones, as llama.cpp computes it.
//!
//! The choice of experts jumps where two logits cross, so that rounding alone changes it between
//! two engines. Where the server has recorded its choice, the learner takes that choice and its own
//! logits (router replay, arXiv:2510.11370). The gradient reaches the logits through g.

use crate::kernels::activation::Activation;
use crate::kernels::float::Float;
use crate::kernels::int8_dot::Int8Unit;
use crate::kernels::{add, dot, matrix, values, with_values};
use crate::model::weights::{Expert, Experts, Weight};
use candle_core::{Result, Tensor};
use rayon::prelude::*;
use std::cmp::Ordering;

/// Through which experts every row goes.
#[derive(Debug, Clone)]
pub struct Routing<T> {
    /// The experts of a row.
    used: usize,
    /// The experts of all rows, one row after the other.
    pub chosen: Vec<u16>,
    /// g of each of them.
    weights: Vec<T>,
}

/// The rows that go through one expert, and what it makes of them first.
struct ExpertRows {
    expert: usize,
    /// The place where in [`Routing::chosen`] the expert stands.
    places: Vec<usize>,
    gate: Tensor,
    up: Tensor,
}

impl<T: Float> Routing<T> {
    /// The routing of rows of `logits`, one for each expert. `recorded` has the experts of a row if
    /// the server has recorded them.
    fn new<'a>(
        logits: &[T],
        experts: usize,
        used: usize,
        recorded: impl Fn(usize) -> Option<&'a [u16]>,
    ) -> Routing<T> {
        let mut routing = Routing { used, chosen: Vec::new(), weights: Vec::new() };
        for (row, logits) in logits.chunks(experts).enumerate() {
            let first = routing.chosen.len();
            match recorded(row) {
                Some(experts) => routing.chosen.extend_from_slice(experts),
                None => routing.chosen.extend(highest(logits, used)),
            }
            let chosen = routing.chosen[first..].iter().map(|expert| logits[usize::from(*expert)]);
            let top = chosen.clone().reduce(|top, logit| top.max(logit)).unwrap_or(T::zero());
            let shares: Vec<T> = chosen.map(|logit| (logit - top).exp()).collect();
            let mut sum = T::zero();
            shares.iter().for_each(|share| sum += *share);
            routing.weights.extend(shares.iter().map(|share| *share / sum));
        }
        routing
    }

    /// The places of each expert that any row goes through, in the order of the experts.
    fn by_expert(&self, experts: usize) -> Vec<(usize, Vec<usize>)> {
        let mut places = vec![Vec::new(); experts];
        for (place, expert) in self.chosen.iter().enumerate() {
            places[usize::from(*expert)].push(place);
        }
        places.into_iter().enumerate().filter(|(_, places)| !places.is_empty()).collect()
    }

    /// The rows of `x` at some places.
    fn rows_at(&self, places: &[usize], x: &[T], width: usize) -> Vec<T> {
        let rows = places.iter().map(|place| &x[place / self.used * width..][..width]);
        rows.flatten().copied().collect()
    }

    /// Adds rows at some places to the rows of `sum`, each multiplied with its factor.
    fn add_at(&self, places: &[usize], rows: &[T], factors: impl Fn(usize) -> T, sum: &mut [T]) {
        let width = rows.len() / places.len();
        for (place, row) in places.iter().zip(rows.chunks(width)) {
            let factor = factors(*place);
            let sum = &mut sum[place / self.used * width..][..width];
            sum.iter_mut().zip(row).for_each(|(sum, value)| *sum += *value * factor);
        }
    }
}

/// The indices of the highest logits. Of two that are equal, the first counts as higher.
fn highest<T: Float>(logits: &[T], count: usize) -> Vec<u16> {
    let mut order: Vec<u16> = (0..logits.len() as u16).collect();
    let descending = |a: &u16, b: &u16| {
        let (a, b) = (logits[usize::from(*a)], logits[usize::from(*b)]);
        b.partial_cmp(&a).unwrap_or(Ordering::Equal)
    };
    order.sort_by(descending);
    order.truncate(count);
    order
}

impl Experts {
    /// The routing of normed rows.
    pub fn route<'a, T: Float>(
        &self,
        x: &[T],
        used: usize,
        recorded: impl Fn(usize) -> Option<&'a [u16]>,
    ) -> Result<Routing<T>> {
        let logits = product(&self.router, None, x, self.width()?)?;
        Ok(Routing::new(&logits, self.experts.len(), used, recorded))
    }

    fn width(&self) -> Result<usize> {
        self.experts[0].down.rows()
    }

    /// The outputs for normed rows. If there is a `unit`, the experts round activations as the
    /// server does on a CPU.
    pub fn forward<T: Float>(
        &self,
        unit: Option<Int8Unit>,
        activation: Activation,
        x: &[T],
        routing: &Routing<T>,
    ) -> Result<Vec<T>> {
        let parts = self.by_expert(unit, x, routing)?;
        let outputs: Vec<Vec<T>> = parts
            .par_iter()
            .map(|rows| {
                let h = activation.gated::<T>(&rows.gate, &rows.up)?;
                let (_, between) = h.dims2()?;
                let down = &self.experts[rows.expert].down;
                with_values(&h, |h: &[T]| product(down, unit, h, between))?
            })
            .collect::<Result<_>>()?;
        let mut sum = vec![T::zero(); x.len()];
        // The order is that of the experts, whichever was computed first.
        for (rows, y) in parts.iter().zip(&outputs) {
            routing.add_at(&rows.places, y, |place| routing.weights[place], &mut sum);
        }
        Ok(sum)
    }

    /// The rows of each expert that any row goes through, in the order of the experts.
    fn by_expert<T: Float>(
        &self,
        unit: Option<Int8Unit>,
        x: &[T],
        routing: &Routing<T>,
    ) -> Result<Vec<ExpertRows>> {
        let width = self.width()?;
        let rows = routing.by_expert(self.experts.len()).into_par_iter().map(|(expert, places)| {
            let Expert { gate, up, .. } = &self.experts[expert];
            let x = routing.rows_at(&places, x, width);
            let between = |weight: &Weight| {
                matrix(product(weight, unit, &x, width)?, places.len(), weight.rows()?)
            };
            let (gate, up) = (between(gate)?, between(up)?);
            Ok(ExpertRows { expert, places, gate, up })
        });
        rows.collect()
    }

    /// The gradient with respect to the normed rows `x`. What the experts make of them is computed
    /// again.
    ///
    /// With y = Σ gᵢ·Eᵢ(x): ∂y/∂gᵢ = Eᵢ(x), and ∂gᵢ/∂sⱼ = gᵢ·([i = j] − gⱼ) for chosen experts. The
    /// product dy·Eᵢ(x) is (dy·down)·h, so that no output of an expert is kept.
    pub fn backward<T: Float>(
        &self,
        unit: Option<Int8Unit>,
        activation: Activation,
        x: &[T],
        dy: &[T],
        routing: &Routing<T>,
    ) -> Result<Vec<T>> {
        let width = self.width()?;
        let parts = self.by_expert(unit, x, routing)?;
        let through: Vec<(Vec<T>, Vec<T>)> = parts
            .par_iter()
            .map(|ExpertRows { expert, places, gate, up }| {
                let of = &self.experts[*expert];
                let dy = matrix(routing.rows_at(places, dy, width), places.len(), width)?;
                let mut dh = values::<T>(&of.down.backward(&dy)?)?;
                let h = values::<T>(&activation.gated::<T>(gate, up)?)?;
                let between = h.len() / places.len();
                let d_weights = dh.chunks(between).zip(h.chunks(between));
                let d_weights: Vec<T> = d_weights.map(|(dh, h)| dot(dh, h)).collect();
                for (dh, place) in dh.chunks_mut(between).zip(places) {
                    dh.iter_mut().for_each(|dh| *dh *= routing.weights[*place]);
                }
                let dh = matrix(dh, places.len(), between)?;
                let (d_gate, d_up) = activation.gated_backward::<T>(&dh, gate, up)?;
                let dx = add::<T>(&of.gate.backward(&d_gate)?, &of.up.backward(&d_up)?)?;
                Ok((values(&dx)?, d_weights))
            })
            .collect::<Result<_>>()?;
        let mut dx = vec![T::zero(); x.len()];
        let mut d_weights = vec![T::zero(); routing.weights.len()];
        for (rows, (own, of_places)) in parts.iter().zip(&through) {
            routing.add_at(&rows.places, own, |_| T::one(), &mut dx);
            rows.places.iter().zip(of_places).for_each(|(place, d)| d_weights[*place] = *d);
        }
        self.add_router_gradient(routing, &d_weights, &mut dx)?;
        Ok(dx)
    }

    /// Adds what reaches x through the router: ds = g·(dg − Σ g·dg) for the chosen experts, and no
    /// gradient for the others.
    fn add_router_gradient<T: Float>(
        &self,
        routing: &Routing<T>,
        d_weights: &[T],
        dx: &mut [T],
    ) -> Result<()> {
        let (used, experts) = (routing.used, self.experts.len());
        let rows = d_weights.len() / used;
        let mut d_logits = vec![T::zero(); rows * experts];
        for row in 0..rows {
            let places = row * used..(row + 1) * used;
            let (g, dg) = (&routing.weights[places.clone()], &d_weights[places.clone()]);
            let mean = dot(g, dg);
            for ((g, dg), expert) in g.iter().zip(dg).zip(&routing.chosen[places]) {
                d_logits[row * experts + usize::from(*expert)] = *g * (*dg - mean);
            }
        }
        let through = self.router.backward(&matrix(d_logits, rows, experts)?)?;
        with_values(&through, |through: &[T]| {
            dx.iter_mut().zip(through).for_each(|(dx, through)| *dx += *through);
        })
    }
}

/// W·x for rows of x.
fn product<T: Float>(
    weight: &Weight,
    unit: Option<Int8Unit>,
    x: &[T],
    width: usize,
) -> Result<Vec<T>> {
    let mut y = vec![T::zero(); x.len() / width * weight.rows()?];
    weight.add_product(unit, x, &mut y)?;
    Ok(y)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_goes_through_the_likeliest_experts_or_those_that_are_recorded() {
        let logits = [0.0, 2.0, 1.0, 2.0, 3.0, -1.0, 0.0, 0.0];
        let live = Routing::new(&logits, 4, 2, |_| None);
        assert_eq!(live.chosen, [1, 3, 0, 2], "the first of equal logits");
        let recorded = Routing::new(&logits, 4, 2, |row| (row == 1).then_some(&[1, 3][..]));
        assert_eq!(recorded.chosen, [1, 3, 1, 3]);
        // exp(−1) and exp(0), divided by their sum.
        let share = 1.0 / (1.0 + 1f64.exp());
        for (weight, expected) in recorded.weights.iter().zip([0.5, 0.5, share, 1.0 - share]) {
            assert!((weight - expected).abs() < 1e-12, "{weight} for {expected}");
        }
        let far = Routing::new(&[0.0, -2000.0, -2000.0], 3, 2, |_| Some(&[1, 2][..]));
        assert_eq!(far.weights, [0.5, 0.5], "unlikely ones have weights that are numbers");
    }

    #[test]
    fn the_places_of_an_expert_name_its_rows() {
        let routing = Routing { used: 2, chosen: vec![3, 1, 1, 0], weights: vec![1.0; 4] };
        assert_eq!(routing.by_expert(4), [(0, vec![3]), (1, vec![1, 2]), (3, vec![0])]);
        assert_eq!(routing.rows_at(&[1, 2], &[5.0, 6.0], 1), [5.0, 6.0]);
    }
}
