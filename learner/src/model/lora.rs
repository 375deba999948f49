//! LoRA (arXiv:2106.09685): y = Wx + (alpha/r)·B(Ax) for every linear map of every layer.

use crate::kernels::float::Float;
use crate::kernels::int8_dot::Int8Unit;
use crate::kernels::matmul::LowRank;
use crate::kernels::{matrix, values};
use crate::model::weights::{MAPS, Shape, Weight};
use anyhow::{Context, bail};
use candle_core::{Result, Tensor};
use models::adapter::{LoraAdapter, LoraPair};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// The two factors that belong to one linear map.
#[derive(Debug, Clone)]
pub struct LoraLayer {
    /// `rank × in`.
    pub a: Tensor,
    /// `out × rank`.
    pub b: Tensor,
}

/// The product that [`LoraLayer::forward`] keeps for the gradient: (alpha/r)·xAᵀ, `rows × rank`.
pub type Reduced = Tensor;

/// The gradient of one pair, with the same shapes.
#[derive(Debug, Clone)]
pub struct LoraGradient {
    pub a: Tensor,
    pub b: Tensor,
}

impl LoraLayer {
    /// Adds the part of the adapter to the output `y` of the frozen map.
    pub fn forward<T: Float>(
        &self,
        x: &Tensor,
        y: &Tensor,
        scale: f64,
    ) -> Result<(Tensor, Reduced)> {
        let reduced = x.matmul(&self.a.t()?)?.affine(scale, 0.0)?;
        let y = crate::kernels::add::<T>(y, &reduced.matmul(&self.b.t()?)?)?;
        Ok((y, reduced))
    }

    /// Computes x · Wᵀ as [`Weight::forward`] does, with the part of the adapter, scale · B·A·x.
    pub fn forward_through<T: Float>(
        &self,
        unit: Option<Int8Unit>,
        weight: &Weight,
        x: &Tensor,
        scale: f64,
    ) -> Result<(Tensor, Reduced)> {
        match weight {
            Weight::Plain(_) => self.forward::<T>(x, &weight.forward(unit, x)?, scale),
            Weight::Quantised(weight) => {
                weight.forward_adapted(unit, x, &LowRank { a: &self.a, b: &self.b, scale })
            }
        }
    }

    /// The gradient of the pair, and its part of dx.
    ///
    /// With u = s·xAᵀ: dB = dyᵀu, du' = s·dy·B, dA = du'ᵀx, and the part of dx is du'·A.
    pub fn backward(
        &self,
        x: &Tensor,
        reduced: &Reduced,
        dy: &Tensor,
        scale: f64,
    ) -> Result<(LoraGradient, Tensor)> {
        let d_reduced = dy.matmul(&self.b)?.affine(scale, 0.0)?;
        let gradient = LoraGradient { a: d_reduced.t()?.matmul(x)?, b: dy.t()?.matmul(reduced)? };
        Ok((gradient, d_reduced.matmul(&self.a)?))
    }
}

/// The adapter: in each layer a pair for every map, in the order of [`Shape::maps`]. The lower
/// layers may have none, and are then those of the base.
#[derive(Debug, Clone)]
pub struct Lora {
    pub rank: usize,
    /// The number of ranks, from the first on, that are shared with a team (`models::team`).
    pub shared_rank: usize,
    pub alpha: f32,
    pub layers: Vec<Vec<LoraLayer>>,
}

impl Lora {
    pub fn scale(&self) -> f64 {
        f64::from(self.alpha) / self.rank as f64
    }

    /// The first layer that has pairs. The adapter changes nothing below it.
    pub fn first_layer(&self) -> usize {
        self.layers.iter().take_while(|layer| layer.is_empty()).count()
    }

    /// A new adapter, which changes nothing yet: A is uniform in ±1/√in (PEFT's
    /// `kaiming_uniform_(a=√5)`), and B is zero.
    pub fn fresh(shape: &Shape, rank: usize, alpha: f32, seed: u64) -> Result<Lora> {
        let mut random = StdRng::seed_from_u64(seed);
        let layers = (0..shape.layers)
            .map(|_| {
                let maps = shape.maps().iter();
                maps.map(|map| {
                    let (rows_out, rows_in) = shape.map(*map);
                    let bound = 1.0 / (rows_in as f32).sqrt();
                    let a: Vec<f32> =
                        (0..rank * rows_in).map(|_| random.random_range(-bound..bound)).collect();
                    Ok(LoraLayer {
                        a: matrix(a, rank, rows_in)?,
                        b: matrix(vec![0f32; rows_out * rank], rows_out, rank)?,
                    })
                })
                .collect::<Result<_>>()
            })
            .collect::<Result<_>>()?;
        Ok(Lora { rank, shared_rank: 0, alpha, layers })
    }

    /// This adapter, which has shared ranks alone, with a private part next to them.
    pub fn with_private_part(self, fresh: Lora) -> Result<Lora> {
        let factor = self.scale() / fresh.scale();
        let joined = |shared: LoraLayer, own: LoraLayer| -> Result<LoraLayer> {
            let a = Tensor::cat(&[shared.a.affine(factor, 0.0)?, own.a], 0)?;
            let b = Tensor::cat(&[shared.b, own.b], 1)?.contiguous()?;
            Ok(LoraLayer { a, b })
        };
        let (scale, rank) = (fresh.scale(), self.rank + fresh.rank);
        let layers = self.layers.into_iter().zip(fresh.layers);
        let layers = layers
            .map(|(shared, own)| {
                shared.into_iter().zip(own).map(|(s, o)| joined(s, o)).collect::<Result<_>>()
            })
            .collect::<Result<_>>()?;
        let alpha = (scale * rank as f64) as f32;
        Ok(Lora { rank, shared_rank: self.shared_rank, alpha, layers })
    }

    /// Returns true if a value belongs to a shared rank: value `at` of tensor `index` in the order
    /// of [`Lora::tensors`], whose rows have this width.
    pub fn is_shared(&self, index: usize, at: usize, width: usize) -> bool {
        let rank = if index.is_multiple_of(2) { at / width } else { at % width };
        rank < self.shared_rank
    }

    /// Every trained tensor, in the fixed order that the optimizer relies on: by layer, then
    /// by map, A before B.
    pub fn tensors(&self) -> impl Iterator<Item = &Tensor> {
        self.layers.iter().flatten().flat_map(|layer| [&layer.a, &layer.b])
    }

    /// The same, to be replaced. A tensor's own values are never changed, because clones of an
    /// adapter share them.
    pub fn tensors_mut(&mut self) -> impl Iterator<Item = &mut Tensor> {
        self.layers.iter_mut().flatten().flat_map(|layer| [&mut layer.a, &mut layer.b])
    }

    /// Replaces every trained tensor, in the order of [`Lora::tensors`].
    pub fn replace(&mut self, tensors: Vec<Tensor>) {
        for (slot, tensor) in self.tensors_mut().zip(tensors) {
            *slot = tensor;
        }
    }

    /// The adapter in the form that is written to a file.
    pub fn to_adapter(
        &self,
        shape: &Shape,
        base_sha256: &str,
        invocation: Vec<u32>,
    ) -> Result<LoraAdapter> {
        let mut pairs = Vec::with_capacity(self.layers.len() * shape.maps().len());
        for (layer, maps) in self.layers.iter().enumerate() {
            for (map, lora) in shape.maps().iter().zip(maps) {
                pairs.push(LoraPair {
                    name: format!("blk.{layer}.{}.weight", MAPS[*map]),
                    rows_out: lora.b.dim(0)?,
                    rows_in: lora.a.dim(1)?,
                    a: values(&lora.a)?,
                    b: values(&lora.b)?,
                });
            }
        }
        Ok(LoraAdapter {
            architecture: shape.architecture.clone(),
            base_sha256: base_sha256.to_owned(),
            rank: self.rank,
            shared_rank: self.shared_rank,
            alpha: self.alpha,
            invocation,
            pairs,
        })
    }

    /// The reverse of [`Lora::to_adapter`].
    ///
    /// # Errors
    /// A pair of a layer is missing, has another shape, or contains a value that is not finite.
    pub fn from_adapter(adapter: &LoraAdapter, shape: &Shape) -> anyhow::Result<Lora> {
        let (pairs, maps) = (adapter.pairs.len(), shape.maps().len());
        let adapted = pairs / maps;
        if pairs == 0 || !pairs.is_multiple_of(maps) || adapted > shape.layers {
            let expected = shape.layers * maps;
            bail!(
                "the adapter has {pairs} LoRA pairs, and {expected} were expected, or whole \
                 layers of them, {maps} each"
            );
        }
        let first = shape.layers - adapted;
        let layers = (0..shape.layers)
            .map(|layer| {
                let maps = if layer < first { &[] } else { shape.maps() };
                maps.iter()
                    .map(|&map| {
                        let name = format!("blk.{layer}.{}.weight", MAPS[map]);
                        let pair = adapter
                            .pairs
                            .iter()
                            .find(|pair| pair.name == name)
                            .with_context(|| format!("the adapter has no pair for {name}"))?;
                        let (rows_out, rows_in) = shape.map(map);
                        if (pair.rows_out, pair.rows_in) != (rows_out, rows_in)
                            || pair.a.len() != adapter.rank * rows_in
                            || pair.b.len() != rows_out * adapter.rank
                        {
                            bail!("the adapter's pair for {name} has another shape than the base");
                        }
                        if !pair.a.iter().chain(&pair.b).all(|value| value.is_finite()) {
                            bail!("the adapter's pair for {name} holds a value that is not finite");
                        }
                        Ok(LoraLayer {
                            a: matrix(pair.a.clone(), adapter.rank, rows_in)?,
                            b: matrix(pair.b.clone(), rows_out, adapter.rank)?,
                        })
                    })
                    .collect::<anyhow::Result<Vec<_>>>()
            })
            .collect::<anyhow::Result<_>>()?;
        let LoraAdapter { rank, shared_rank, alpha, .. } = *adapter;
        Ok(Lora { rank, shared_rank, alpha, layers })
    }
}
