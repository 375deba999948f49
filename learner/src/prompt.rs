//! The prompt pass: the base's keys and values for `prompt[..adapter_from]` of
//! many episodes at once, without gradient.
//!
//! Episodes of one document share long prefixes, so the prompts of a group form
//! a prefix tree: a row is computed once for every prompt that starts with it.
//! Attention is causal, so this is exact. The pass runs layer by layer over all
//! rows of a group.

use crate::attention::Sequence;
use crate::dot8::Unit;
use crate::kernels::{matrix, rms_norm_rows, swiglu_in_place, values};
use crate::model::Model;
use crate::real::Real;
use crate::threads::Threads;
use crate::weights::{DOWN, GATE, K, O, Q, UP, V};
use anyhow::bail;
use candle_core::{Device, Result, Tensor};
use models::disk_cache::DiskCache as Shelf;
use rayon::prelude::*;
use std::collections::{HashMap, HashSet};
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

impl GroupKv {
    /// One prompt as [`PromptKv::bytes`] wrote it; `None` if it is not that.
    fn read<T: Real>(model: &Model<T>, prompt: &[u32], bytes: &[u8]) -> Option<GroupKv> {
        let rows = prompt.len();
        let width = model.shape.kv_heads * model.shape.head_width;
        let part = rows * width * T::KV.size_in_bytes();
        if part == 0 || bytes.len() != 2 * part * model.shape.layers {
            return None;
        }
        let tensor = |bytes| Tensor::from_raw_buffer(bytes, T::KV, &[rows, width], &Device::Cpu);
        let layers = bytes
            .chunks_exact(2 * part)
            .map(|layer| Some((tensor(&layer[..part]).ok()?, tensor(&layer[part..]).ok()?)))
            .collect::<Option<_>>()?;
        Some(GroupKv { layers, paths: vec![(0..rows as u32).collect()] })
    }
}

/// Keys and values of every prompt of a job.
pub struct PromptKv {
    groups: Vec<GroupKv>,
    places: Vec<Place>,
    /// Tree rows computed, over all groups.
    pub rows: usize,
}

impl PromptKv {
    /// Computes the prompts as the server's CPU does. `done` hears after every
    /// layer how many of them that makes, and ends the pass with an error.
    pub fn compute<T: Real>(
        model: &Model<T>,
        prompts: &[&[u32]],
        shelf: Option<&mut Shelf>,
        threads: &Threads,
        done: impl FnMut(usize) -> anyhow::Result<()>,
    ) -> anyhow::Result<PromptKv> {
        PromptKv::compute_with(Unit::find(), model, prompts, shelf, threads, done)
    }

    /// The same with products of 8-bit integers by `unit`, or of floats.
    pub fn compute_with<T: Real>(
        unit: Option<Unit>,
        model: &Model<T>,
        prompts: &[&[u32]],
        shelf: Option<&mut Shelf>,
        threads: &Threads,
        mut done: impl FnMut(usize) -> anyhow::Result<()>,
    ) -> anyhow::Result<PromptKv> {
        let mut kv = PromptKv { groups: Vec::new(), places: Vec::new(), rows: 0 };
        kv.places.resize(prompts.len(), Place { group: 0, prompt: 0 });
        let missing = match &shelf {
            Some(shelf) => kv.fetch(model, prompts, shelf)?,
            None => (0..prompts.len()).collect(),
        };
        let mut finished = prompts.len() - missing.len();
        let mut tree = Tree::default();
        for index in &missing {
            let prompt = prompts[*index];
            let own = prompt.len() - tree.shared(prompt).0;
            if !tree.paths.is_empty() && tree.tokens.len() + own > GROUP_ROWS {
                let tree = std::mem::take(&mut tree);
                finished += kv.finish(unit, model, tree, threads, |part| done(finished + part))?;
            }
            kv.places[*index] = Place { group: kv.groups.len(), prompt: tree.paths.len() };
            tree.insert(prompt);
        }
        if !tree.paths.is_empty() {
            kv.finish(unit, model, tree, threads, |part| done(finished + part))?;
        }
        if let Some(shelf) = shelf {
            kv.put(prompts, &missing, shelf)?;
        }
        Ok(kv)
    }

    /// Takes from the shelf what lies there; answers which prompts do not.
    fn fetch<T: Real>(
        &mut self,
        model: &Model<T>,
        prompts: &[&[u32]],
        shelf: &Shelf,
    ) -> anyhow::Result<Vec<usize>> {
        let mut missing = Vec::new();
        let mut known: HashMap<&[u32], Option<Place>> = HashMap::new();
        for (index, prompt) in prompts.iter().enumerate() {
            let place = match known.get(prompt) {
                Some(place) => *place,
                None => {
                    let kv =
                        shelf.get(prompt).and_then(|bytes| GroupKv::read(model, prompt, &bytes));
                    let place = kv.map(|kv| {
                        self.groups.push(kv);
                        Place { group: self.groups.len() - 1, prompt: 0 }
                    });
                    if place.is_some() {
                        self.grow(prompt.len(), model)?;
                    }
                    known.insert(prompt, place);
                    place
                }
            };
            match place {
                Some(place) => self.places[index] = place,
                None => missing.push(index),
            }
        }
        Ok(missing)
    }

    /// Leaves on the shelf what had to be computed. That it could not be is no
    /// reason to fail an update.
    fn put(&self, prompts: &[&[u32]], computed: &[usize], shelf: &mut Shelf) -> Result<()> {
        let mut put = HashSet::new();
        for index in computed.iter().filter(|index| !prompts[**index].is_empty()) {
            if put.insert(prompts[*index])
                && let Err(error) = shelf.put(prompts[*index], &self.bytes(self.places[*index])?)
            {
                eprintln!("hone-learner: a prompt could not be kept: {error}");
            }
        }
        Ok(())
    }

    /// Keys and values of one prompt, layer by layer, as [`GroupKv::read`] reads them.
    fn bytes(&self, place: Place) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let group = &self.groups[place.group];
        let path = Tensor::new(group.paths[place.prompt].as_slice(), &Device::Cpu)?;
        for (k, v) in &group.layers {
            for x in [k, v] {
                x.index_select(&path, 0)?.write_bytes(&mut bytes)?;
            }
        }
        Ok(bytes)
    }

    /// Notes rows that are held from now on.
    fn grow<T: Real>(&mut self, rows: usize, model: &Model<T>) -> anyhow::Result<()> {
        self.rows += rows;
        let shape = &model.shape;
        let row_bytes =
            2 * shape.layers * shape.kv_heads * shape.head_width * T::KV.size_in_bytes();
        if self.rows * row_bytes > KV_BYTES_LIMIT {
            bail!(
                "the prompts' keys and values need more than {} MiB; send fewer episodes",
                KV_BYTES_LIMIT >> 20
            )
        }
        Ok(())
    }

    fn finish<T: Real>(
        &mut self,
        unit: Option<Unit>,
        model: &Model<T>,
        tree: Tree,
        threads: &Threads,
        mut done: impl FnMut(usize) -> anyhow::Result<()>,
    ) -> anyhow::Result<usize> {
        self.grow(tree.tokens.len(), model)?;
        let prompts = tree.paths.len();
        let layers =
            pass(unit, model, &tree, threads, |layer| done(prompts * layer / model.shape.layers))?;
        self.groups.push(GroupKv { layers, paths: tree.paths });
        Ok(prompts)
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
    unit: Option<Unit>,
    model: &Model<T>,
    tree: &Tree,
    threads: &Threads,
    mut done: impl FnMut(usize) -> anyhow::Result<()>,
) -> anyhow::Result<Vec<(Tensor, Tensor)>> {
    let mut kept = Vec::with_capacity(model.layers.len());
    if tree.tokens.is_empty() {
        return Ok(kept);
    }
    let mut rows = TreeRows {
        unit,
        model,
        tree,
        angles: model.rope.angles(&tree.positions, 1.0),
        x: values(&model.embedding.embed::<T>(&tree.tokens)?)?,
        buffers: Default::default(),
    };
    for index in 0..model.layers.len() {
        kept.push(threads.run(|| rows.layer(index))?);
        done(index + 1)?;
    }
    Ok(kept)
}

/// All rows of a tree on their way through the layers.
struct TreeRows<'a, T> {
    unit: Option<Unit>,
    model: &'a Model<T>,
    tree: &'a Tree,
    /// Of the rows' rotations.
    angles: Vec<(T, T)>,
    x: Vec<T>,
    /// Kept from layer to layer: fresh memory costs more than what is written there.
    buffers: [Vec<T>; 4],
}

/// `rows` copies of `first`, or of zeros, over what the buffer held.
fn filled<T: Real>(buffer: &mut Vec<T>, rows: usize, width: usize, first: Option<&[T]>) {
    buffer.clear();
    match first {
        Some(first) => (0..rows).for_each(|_| buffer.extend_from_slice(first)),
        None => buffer.resize(rows * width, T::zero()),
    }
}

impl<T: Real> TreeRows<'_, T> {
    /// Keys and values of a layer; `x` becomes its output. The last layer has
    /// none: nothing reads what it says of the prompt.
    fn layer(&mut self, index: usize) -> Result<(Tensor, Tensor)> {
        let TreeRows { unit, model, tree, angles, x, buffers } = self;
        let shape = &model.shape;
        let layer = &model.layers[index];
        let rows = tree.tokens.len();
        let (q_width, kv_width) = (shape.map(Q).0, shape.map(K).0);
        let [normed, q, k, v] = buffers;

        filled(normed, rows, shape.width, None);
        rms_norm_rows(x, &layer.attention_norm, shape.rms_epsilon, normed);
        filled(k, rows, kv_width, layer.bias[K].as_deref());
        layer.maps[K].add_constant(*unit, normed, k)?;
        model.rope.rotate_rows(k, kv_width, angles);
        filled(v, rows, kv_width, layer.bias[V].as_deref());
        layer.maps[V].add_constant(*unit, normed, v)?;
        let as_kept =
            |x: &[T]| Tensor::from_slice(x, (rows, kv_width), &Device::Cpu)?.to_dtype(T::KV);
        let kept = (as_kept(k)?, as_kept(v)?);
        if index + 1 == model.layers.len() {
            return Ok(kept);
        }
        filled(q, rows, q_width, layer.bias[Q].as_deref());
        layer.maps[Q].add_constant(*unit, normed, q)?;
        model.rope.rotate_rows(q, q_width, angles);
        let attended = attention(model, tree, q, k, v)?;
        layer.maps[O].add_constant(*unit, &attended, x)?;

        let [normed, gate, up, _] = buffers;
        for x in x.chunks_mut(FEED_FORWARD_ROWS * shape.width) {
            let rows = x.len() / shape.width;
            filled(normed, rows, shape.width, None);
            rms_norm_rows(x, &layer.feed_forward_norm, shape.rms_epsilon, normed);
            filled(gate, rows, shape.feed_forward, None);
            layer.maps[GATE].add_constant(*unit, normed, gate)?;
            filled(up, rows, shape.feed_forward, None);
            layer.maps[UP].add_constant(*unit, normed, up)?;
            swiglu_in_place(gate, up);
            layer.maps[DOWN].add_constant(*unit, gate, x)?;
        }
        Ok(kept)
    }
}

/// Every branch's rows see the path to them. Branches were appended in the order
/// of their rows, and so are the results.
fn attention<T: Real>(model: &Model<T>, tree: &Tree, q: &[T], k: &[T], v: &[T]) -> Result<Vec<T>> {
    let width = |x: &[T]| x.len() / tree.tokens.len();
    let parts: Vec<Vec<T>> = tree
        .branches
        .par_iter()
        .map(|branch| {
            let path = &tree.paths[branch.prompt][..branch.start + branch.rows.len()];
            let along = |x: &[T]| {
                let width = width(x);
                let mut rows = Vec::with_capacity(path.len() * width);
                for row in path {
                    rows.extend_from_slice(&x[*row as usize * width..][..width]);
                }
                matrix(rows, path.len(), width)
            };
            let own = &q[branch.rows.start * width(q)..branch.rows.end * width(q)];
            let q = Tensor::from_slice(own, (branch.rows.len(), width(q)), &Device::Cpu)?;
            let sequence = Sequence { q, k: along(k)?, v: along(v)?, past: branch.start };
            values(&sequence.forward::<T>(model.heads())?)
        })
        .collect::<Result<_>>()?;
    Ok(parts.concat())
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
