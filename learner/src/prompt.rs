//! The prompt pass: the base's keys and values for `prompt[..adapter_from]` of
//! many episodes at once, without gradient.
//!
//! Episodes of one document share long prefixes, so the prompts of a group form
//! a prefix tree: a row is computed once for every prompt that starts with it.
//! Attention is causal, so this is exact. The pass runs layer by layer over all
//! rows of a group.

use crate::attention::Sequence;
use crate::kernels::{add, matrix, rms_norm, swiglu, with_values};
use crate::model::{Model, bias};
use crate::real::Real;
use crate::threads::Threads;
use crate::weights::{DOWN, GATE, K, O, Q, UP, V};
use anyhow::bail;
use candle_core::{Device, Result, Tensor};
use rayon::prelude::*;
use std::ops::Range;

/// Tree rows computed in one pass: the activations of all are in memory at once.
pub const GROUP_ROWS: usize = 4096;

/// Rows of the feed-forward computed at once: its activations are the widest.
const FEED_FORWARD_ROWS: usize = 512;

/// Keys and values of all prompts of a job, in bytes at most.
const KV_BYTES_LIMIT: usize = 1 << 30;

/// Where a prompt's rows lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    group: usize,
    prompt: usize,
}

/// The new rows a prompt adds to the tree of its group.
#[derive(Debug, PartialEq, Eq)]
struct Branch {
    prompt: usize,
    /// Rows of the group.
    rows: Range<usize>,
    /// Position in the prompt of the first of them.
    start: usize,
}

/// The prefix tree of one group of prompts.
#[derive(Debug, Default)]
struct Tree {
    /// Token of each row.
    tokens: Vec<u32>,
    /// Position of each row.
    positions: Vec<usize>,
    branches: Vec<Branch>,
    /// Row of each token of each prompt.
    paths: Vec<Vec<u32>>,
}

impl Tree {
    /// Rows `prompt` would share with the tree, and the prompt it shares them with.
    fn shared(&self, prompt: &[u32]) -> (usize, usize) {
        let common = |path: &[u32]| {
            path.iter()
                .zip(prompt)
                .take_while(|(row, token)| self.tokens[**row as usize] == **token)
                .count()
        };
        let mut best = (0, 0);
        for (index, path) in self.paths.iter().enumerate() {
            let shared = common(path);
            if shared > best.0 {
                best = (shared, index);
            }
        }
        best
    }

    fn insert(&mut self, prompt: &[u32]) {
        let (shared, with) = self.shared(prompt);
        let mut path = if shared > 0 { self.paths[with][..shared].to_vec() } else { Vec::new() };
        let first = self.tokens.len();
        let own = prompt.len() - shared;
        path.extend((first..first + own).map(|row| row as u32));
        self.tokens.extend_from_slice(&prompt[shared..]);
        self.positions.extend(shared..prompt.len());
        if own > 0 {
            self.branches.push(Branch {
                prompt: self.paths.len(),
                rows: first..first + own,
                start: shared,
            });
        }
        self.paths.push(path);
    }
}

/// Keys (rotated) and values of a group, per layer.
struct GroupKv {
    /// `rows × kv_heads·head_width`, of type [`Real::KV`].
    layers: Vec<(Tensor, Tensor)>,
    paths: Vec<Vec<u32>>,
}

/// Keys and values of every prompt of a job.
pub struct PromptKv {
    groups: Vec<GroupKv>,
    places: Vec<Place>,
    /// Tree rows computed, over all groups.
    pub rows: usize,
}

impl PromptKv {
    /// Computes the prompts. `done` hears after every layer how many of them that
    /// makes, and ends the pass with an error.
    pub fn compute<T: Real>(
        model: &Model<T>,
        prompts: &[&[u32]],
        threads: &Threads,
        mut done: impl FnMut(usize) -> anyhow::Result<()>,
    ) -> anyhow::Result<PromptKv> {
        let mut kv = PromptKv { groups: Vec::new(), places: Vec::new(), rows: 0 };
        let mut tree = Tree::default();
        for prompt in prompts {
            let own = prompt.len() - tree.shared(prompt).0;
            if !tree.paths.is_empty() && tree.tokens.len() + own > GROUP_ROWS {
                kv.finish(model, std::mem::take(&mut tree), threads, &mut done)?;
            }
            kv.places.push(Place { group: kv.groups.len(), prompt: tree.paths.len() });
            tree.insert(prompt);
        }
        if !tree.paths.is_empty() {
            kv.finish(model, tree, threads, &mut done)?;
        }
        Ok(kv)
    }

    fn finish<T: Real>(
        &mut self,
        model: &Model<T>,
        tree: Tree,
        threads: &Threads,
        done: &mut impl FnMut(usize) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        self.rows += tree.tokens.len();
        let shape = &model.shape;
        let row_bytes =
            2 * shape.layers * shape.kv_heads * shape.head_width * T::KV.size_in_bytes();
        if self.rows * row_bytes > KV_BYTES_LIMIT {
            bail!(
                "the prompts' keys and values need more than {} MiB; send fewer episodes",
                KV_BYTES_LIMIT >> 20
            )
        }
        let finished = self.places.len() - tree.paths.len();
        let layers = pass(model, &tree, threads, |layer| {
            done(finished + tree.paths.len() * layer / shape.layers)
        })?;
        self.groups.push(GroupKv { layers, paths: tree.paths });
        Ok(())
    }

    /// Where the `index`-th prompt lies.
    pub fn place(&self, index: usize) -> Place {
        self.places[index]
    }

    /// Keys and values of one prompt in one layer, `adapter_from × kv_width`;
    /// `None` for an empty prompt.
    pub fn prefix<T: Real>(&self, place: Place, layer: usize) -> Result<Option<(Tensor, Tensor)>> {
        let group = &self.groups[place.group];
        let path = &group.paths[place.prompt];
        if path.is_empty() {
            return Ok(None);
        }
        let path = Tensor::new(path.as_slice(), &Device::Cpu)?;
        let (k, v) = &group.layers[layer];
        let of = |x: &Tensor| x.index_select(&path, 0)?.to_dtype(T::DTYPE);
        Ok(Some((of(k)?, of(v)?)))
    }
}

/// The base over one tree; `done` hears how many layers are finished.
fn pass<T: Real>(
    model: &Model<T>,
    tree: &Tree,
    threads: &Threads,
    mut done: impl FnMut(usize) -> anyhow::Result<()>,
) -> anyhow::Result<Vec<(Tensor, Tensor)>> {
    let mut kept = Vec::with_capacity(model.layers.len());
    if tree.tokens.is_empty() {
        return Ok(kept);
    }
    let mut x = model.embedding.embed::<T>(&tree.tokens)?;
    for index in 0..model.layers.len() {
        let (kv, y) = threads.run(|| layer(model, tree, index, x))?;
        x = y;
        kept.push(kv);
        done(index + 1)?;
    }
    Ok(kept)
}

/// Keys and values of a layer, and its output. The last layer has none: nothing
/// reads what it says of the prompt.
fn layer<T: Real>(
    model: &Model<T>,
    tree: &Tree,
    index: usize,
    x: Tensor,
) -> Result<((Tensor, Tensor), Tensor)> {
    let shape = &model.shape;
    let heads = model.heads();
    let layer = &model.layers[index];
    let linear = |map: usize, x: &Tensor| layer.maps[map].forward_constant(x);
    let normed = rms_norm(&x, &layer.attention_norm, shape.rms_epsilon)?;
    let k = bias(linear(K, &normed)?, &layer.bias[K])?;
    let k = model.rope.rotate::<T>(&k, &tree.positions)?;
    let v = bias(linear(V, &normed)?, &layer.bias[V])?;
    let kept = (k.to_dtype(T::KV)?, v.to_dtype(T::KV)?);
    if index + 1 == model.layers.len() {
        return Ok((kept, x));
    }
    let q = bias(linear(Q, &normed)?, &layer.bias[Q])?;
    let q = model.rope.rotate::<T>(&q, &tree.positions)?;
    drop(normed);

    let parts: Vec<Tensor> = tree
        .branches
        .par_iter()
        .map(|branch| {
            let end = branch.start + branch.rows.len();
            let path = Tensor::new(&tree.paths[branch.prompt][..end], &Device::Cpu)?;
            let sequence = Sequence {
                q: q.narrow(0, branch.rows.start, branch.rows.len())?,
                k: k.index_select(&path, 0)?,
                v: v.index_select(&path, 0)?,
                past: branch.start,
            };
            sequence.forward::<T>(heads)
        })
        .collect::<Result<_>>()?;
    // Branches were appended in the order of their rows.
    let attended = Tensor::cat(&parts, 0)?;
    let x = add::<T>(&x, &linear(O, &attended)?)?;
    drop((q, attended, parts));

    let (rows, width) = x.dims2()?;
    let mut after = Vec::with_capacity(rows * width);
    for from in (0..rows).step_by(FEED_FORWARD_ROWS) {
        let block = x.narrow(0, from, FEED_FORWARD_ROWS.min(rows - from))?;
        let normed = rms_norm(&block, &layer.feed_forward_norm, shape.rms_epsilon)?;
        let h = swiglu::<T>(&linear(GATE, &normed)?, &linear(UP, &normed)?)?;
        let block = add::<T>(&block, &linear(DOWN, &h)?)?;
        with_values(&block, |block: &[T]| after.extend_from_slice(block))?;
    }
    Ok((kept, matrix(after, rows, width)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompts_of_one_document_share_their_rows() {
        let mut tree = Tree::default();
        tree.insert(&[1, 2, 3, 4]);
        tree.insert(&[1, 2, 9]);
        tree.insert(&[1, 2, 3, 4, 5]);
        tree.insert(&[1, 2]);
        tree.insert(&[7]);
        assert_eq!(tree.tokens, [1, 2, 3, 4, 9, 5, 7]);
        assert_eq!(tree.positions, [0, 1, 2, 3, 2, 4, 0]);
        assert_eq!(
            tree.paths,
            [vec![0, 1, 2, 3], vec![0, 1, 4], vec![0, 1, 2, 3, 5], vec![0, 1], vec![6]]
        );
        assert_eq!(tree.branches.len(), 4, "the fourth prompt adds no row");
    }
}
