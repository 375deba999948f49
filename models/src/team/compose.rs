//! One adapter of both parts. Their ranks stand side by side: with A = [Aₛ; Aₚ] and
//! B = [Bₛ Bₚ], B·A = Bₛ·Aₛ + Bₚ·Aₚ. The adapter is an ordinary one for whoever serves it.

use super::core::Core;
use super::frame::{Frame, FrameMap, RANK};
use crate::adapter::{LoraAdapter, LoraPair};
use anyhow::{Result, ensure};

/// The shared part changes a map by `GAIN`·B·C·A. With it, a step of the usual learning rate in C
/// changes a map's output about as much as it does in a private part.
pub const GAIN: f32 = 16.0;

/// The adapter of a shared and a private part, the shared ranks first. The private part's values
/// stay as they are.
///
/// # Errors
/// The private part was learned on another base model.
pub fn compose(frame: &Frame, core: &Core, private: Option<&LoraAdapter>) -> Result<LoraAdapter> {
    let scale = private.map_or(1.0, scale);
    if let Some(private) = private {
        ensure!(
            private.shared_rank == 0 && private.base_sha256 == frame.base_sha256,
            "the private part was learned on another base model, or is none"
        );
        ensure!(private.pairs.len() == frame.maps.len(), "the private part adapts other maps");
    }
    let private_rank = private.map_or(0, |private| private.rank);
    let rank = RANK + private_rank;
    let mut pairs = Vec::with_capacity(frame.maps.len());
    for (index, map) in frame.maps.iter().enumerate() {
        let mut a = shared_a(&map.a(), &core.values(index), map.rows_in, scale);
        let mut b = map.b();
        if let Some(private) = private {
            let own = private.pairs.iter().find(|pair| {
                pair.name == map.name
                    && (pair.rows_out, pair.rows_in) == (map.rows_out, map.rows_in)
            });
            let Some(own) = own else { anyhow::bail!("the private part has no {}", map.name) };
            a.extend_from_slice(&own.a);
            b = side_by_side(&b, RANK, &own.b, private_rank);
        }
        let FrameMap { name, rows_out, rows_in } = map.clone();
        pairs.push(LoraPair { name, rows_out, rows_in, a, b });
    }
    Ok(LoraAdapter {
        architecture: frame.architecture.clone(),
        base_sha256: frame.base_sha256.clone(),
        rank,
        shared_rank: RANK,
        alpha: scale * rank as f32,
        invocation: private.map(|private| private.invocation.clone()).unwrap_or_default(),
        pairs,
    })
}

/// The private part of an adapter; `None` if there is nothing but the shared part.
pub fn private_part(adapter: &LoraAdapter) -> Option<LoraAdapter> {
    let (shared, rank) = (adapter.shared_rank, adapter.rank);
    if shared >= rank {
        return None;
    }
    let pairs = adapter.pairs.iter().map(|pair| LoraPair {
        a: pair.a[shared * pair.rows_in..].to_vec(),
        b: pair.b.chunks(rank).flat_map(|row| row[shared..].to_vec()).collect(),
        ..pair.clone()
    });
    Some(LoraAdapter {
        rank: rank - shared,
        shared_rank: 0,
        alpha: scale(adapter) * (rank - shared) as f32,
        pairs: pairs.collect(),
        ..adapter.clone()
    })
}

/// Returns what a pair's product is multiplied with.
fn scale(adapter: &LoraAdapter) -> f32 {
    adapter.alpha / adapter.rank as f32
}

/// The shared rows of A in an adapter of this scale: `GAIN`/scale·C·A.
pub fn shared_a(a: &[f32], core: &[f32], rows_in: usize, scale: f32) -> Vec<f32> {
    let factor = GAIN / scale;
    let mut product = vec![0.0; RANK * rows_in];
    for (row, weights) in product.chunks_mut(rows_in).zip(core.chunks(RANK)) {
        for (weight, a) in weights.iter().zip(a.chunks(rows_in)) {
            for (sum, a) in row.iter_mut().zip(a) {
                *sum += factor * weight * a;
            }
        }
    }
    product
}

/// [left right], both row-major.
fn side_by_side(left: &[f32], left_width: usize, right: &[f32], right_width: usize) -> Vec<f32> {
    let rows = left.chunks(left_width).zip(right.chunks(right_width));
    rows.flat_map(|(left, right)| left.iter().chain(right).copied().collect::<Vec<_>>()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::team::frame::CORE_NUMBERS;
    use crate::team::frame::tests::small;

    const PRIVATE_RANK: usize = 3;

    fn private(frame: &Frame) -> LoraAdapter {
        let value = |i: usize| (i * 7919 % 1009) as f32 / 1009.0 - 0.5;
        let pairs = frame.maps.iter().map(|map| LoraPair {
            name: map.name.clone(),
            rows_out: map.rows_out,
            rows_in: map.rows_in,
            a: (0..PRIVATE_RANK * map.rows_in).map(value).collect(),
            b: (0..PRIVATE_RANK * map.rows_out).map(|i| value(i + 5)).collect(),
        });
        LoraAdapter {
            architecture: "qwen2".into(),
            base_sha256: frame.base_sha256.clone(),
            rank: PRIVATE_RANK,
            shared_rank: 0,
            alpha: 6.0,
            invocation: vec![7],
            pairs: pairs.collect(),
        }
    }

    fn core(frame: &Frame) -> Core {
        let numbers = (0..frame.numbers() as i32).map(|i| i * 31 % 601 - 300).collect();
        Core::new(frame, 1, numbers).unwrap()
    }

    /// scale·B·A, in 64 bits.
    fn product(adapter: &LoraAdapter, map: usize) -> Vec<f64> {
        let pair = &adapter.pairs[map];
        let scale = f64::from(adapter.alpha) / adapter.rank as f64;
        let mut product = vec![];
        for row in pair.b.chunks(adapter.rank) {
            for column in 0..pair.rows_in {
                let a = |rank: usize| f64::from(pair.a[rank * pair.rows_in + column]);
                let terms = row.iter().enumerate().map(|(rank, b)| f64::from(*b) * a(rank));
                product.push(scale * terms.sum::<f64>());
            }
        }
        product
    }

    /// `GAIN`·B·C·A, in 64 bits and straight from the definition.
    fn shared_product(frame: &Frame, core: &Core, map: usize) -> Vec<f64> {
        let (FrameMap { rows_in, .. }, a, b) =
            (&frame.maps[map], frame.maps[map].a(), frame.maps[map].b());
        let values = core.values(map);
        let mut product = vec![];
        for row in b.chunks(RANK) {
            for column in 0..*rows_in {
                let mut sum = 0.0;
                for (b, weights) in row.iter().zip(values.chunks(RANK)) {
                    for (weight, a) in weights.iter().zip(a.chunks(*rows_in)) {
                        sum += f64::from(*b) * f64::from(*weight) * f64::from(a[column]);
                    }
                }
                product.push(f64::from(GAIN) * sum);
            }
        }
        product
    }

    #[test]
    fn the_composed_adapter_is_the_sum_of_its_parts() {
        let frame = small();
        let (core, private) = (core(&frame), private(&frame));
        let both = compose(&frame, &core, Some(&private)).unwrap();
        assert_eq!((both.rank, both.shared_rank), (RANK + PRIVATE_RANK, RANK));
        for map in 0..frame.maps.len() {
            let shared = shared_product(&frame, &core, map);
            let sum = shared.iter().zip(product(&private, map)).map(|(s, p)| s + p);
            for (both, sum) in product(&both, map).iter().zip(sum) {
                assert!((both - sum).abs() < 1e-6 * sum.abs().max(1.0), "{both} is not {sum}");
            }
            assert!(shared.iter().any(|value| value.abs() > 1e-3), "the shared part does nothing");
        }
    }

    #[test]
    fn the_private_part_comes_out_as_it_went_in() {
        let frame = small();
        let own = private(&frame);
        let both = compose(&frame, &core(&frame), Some(&own)).unwrap();
        assert_eq!(private_part(&both), Some(own));
        let alone = compose(&frame, &core(&frame), None).unwrap();
        assert_eq!(private_part(&alone), None);
        assert_eq!(alone.alpha / alone.rank as f32, 1.0);
    }

    /// The mean of the members' C gives the mean of the members' products, which is what makes
    /// averaging C exact. The mean of A and the mean of B would not.
    #[test]
    fn the_mean_of_the_cores_is_the_mean_of_the_products() {
        let frame = small();
        let count = frame.numbers() as i32;
        let core = |number: &dyn Fn(i32) -> i32| {
            Core::new(&frame, 1, (0..count).map(number).collect()).unwrap()
        };
        let (one, other) = (core(&|i| 2 * (i % 50)), core(&|i| -4 * (i % 11)));
        let mean = core(&|i| i % 50 - 2 * (i % 11));
        for map in 0..frame.maps.len() {
            let products = [&one, &other, &mean].map(|core| shared_product(&frame, core, map));
            for ((one, other), mean) in products[0].iter().zip(&products[1]).zip(&products[2]) {
                assert!(((one + other) / 2.0 - mean).abs() < 1e-12);
            }
        }
        assert_eq!(one.numbers().len(), frame.maps.len() * CORE_NUMBERS);
    }

    #[test]
    fn a_private_part_of_another_base_or_with_other_maps_is_refused() {
        let frame = small();
        let refused =
            |private: &LoraAdapter| compose(&frame, &core(&frame), Some(private)).is_err();
        assert!(refused(&LoraAdapter { base_sha256: "other".into(), ..private(&frame) }));
        assert!(refused(&LoraAdapter { shared_rank: 1, ..private(&frame) }));
        let mut fewer = private(&frame);
        fewer.pairs.pop();
        assert!(refused(&fewer));
        let mut other = private(&frame);
        other.pairs[1].name = "blk.9.ffn_down.weight".into();
        assert!(refused(&other));
    }
}
