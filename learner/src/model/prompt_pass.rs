//! The prompt pass: it computes the base's keys and values for `prompt[..adapter_from]` of
//! many episodes at once, without a gradient.
//!
//! Episodes of one document share long prefixes. The prompts of a group therefore form a
//! prefix tree, and a row is computed only once for all prompts that share it. This is exact,
//! because attention is causal. The pass runs layer by layer over all rows of a group.

use crate::kernels::float::Float;
use crate::kernels::{add_to_rows, matrix, scale_in_place, values, with_values};
use crate::limits::{PROMPT_KV_BYTES_MAX, PROMPT_PASS_ROWS_MAX};
use crate::machine::threads::Threads;
use crate::model::Transformer;
use crate::model::architecture::FeedForward;
use crate::model::attention::Sequence;
use crate::model::known_prompts::{OpenPrompts, PromptFile};
use crate::model::prefix_tree::PrefixTree;
use crate::model::weights::{DOWN, GATE, K, Layer, O, Q, UP, V};
use anyhow::bail;
use candle_core::{Device, Result, Tensor};
use rayon::prelude::*;

/// The number of rows of which the feed-forward part is computed at once, because its
/// activations are the widest.
const FEED_FORWARD_ROWS: usize = 512;

/// The place where the keys and values of a prompt lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PromptPlace {
    /// In memory, because they were computed: the index of a group, and that of the prompt in it.
    Computed { group: usize, prompt: usize },
    /// In a file, because they were known: the index of the file.
    Known(usize),
}

/// The keys, which are rotated, and the values of a group.
struct GroupKv {
    layers: GroupLayers,
    /// The paths of the group's tree.
    paths: Vec<Vec<u32>>,
}

enum GroupLayers {
    /// For each layer, two tensors `rows × kv_heads·head_width` of type [`Float::KV`].
    Cpu(Vec<(Tensor, Tensor)>),
    #[cfg(feature = "cuda")]
    Gpu(crate::model::gpu::passes::GpuKv),
}

impl GroupLayers {
    fn on_cpu(&self) -> Result<&[(Tensor, Tensor)]> {
        match self {
            GroupLayers::Cpu(layers) => Ok(layers),
            #[cfg(feature = "cuda")]
            GroupLayers::Gpu(_) => candle_core::bail!("the prompts lie in the memory of the GPU"),
        }
    }
}

/// The keys and values of every prompt of a job.
pub struct PromptKv {
    groups: Vec<GroupKv>,
    files: Vec<PromptFile>,
    places: Vec<PromptPlace>,
    /// The number of rows of all groups.
    pub rows: usize,
    /// The number of prompts that were known and not computed.
    pub known: usize,
}

impl PromptKv {
    /// Computes the prompts that are not `known`, as the server does on a CPU. `done` is called
    /// after every layer with the number of prompts that are done, and its error ends the pass.
    pub fn compute<T: Float>(
        model: &Transformer<T>,
        prompts: &[&[u32]],
        known: Option<OpenPrompts>,
        threads: &Threads,
        mut done: impl FnMut(usize) -> anyhow::Result<()>,
    ) -> anyhow::Result<PromptKv> {
        let known = known.unwrap_or_default();
        let files: Vec<Option<usize>> = prompts.iter().map(|prompt| known.index(prompt)).collect();
        let mut kv = PromptKv {
            groups: Vec::new(),
            files: known.into_files(),
            places: Vec::with_capacity(prompts.len()),
            rows: 0,
            known: files.iter().flatten().count(),
        };
        let mut finished = kv.known;
        let mut tree = PrefixTree::default();
        for (prompt, file) in prompts.iter().copied().zip(files) {
            if let Some(file) = file {
                kv.places.push(PromptPlace::Known(file));
                continue;
            }
            let own = prompt.len() - tree.shared(prompt).0;
            if !tree.paths.is_empty() && tree.tokens.len() + own > PROMPT_PASS_ROWS_MAX {
                let tree = std::mem::take(&mut tree);
                finished += kv.compute_group(model, tree, threads, |part| done(finished + part))?;
            }
            let (group, place) = (kv.groups.len(), tree.paths.len());
            kv.places.push(PromptPlace::Computed { group, prompt: place });
            tree.insert(prompt);
        }
        if !tree.paths.is_empty() {
            kv.compute_group(model, tree, threads, |part| done(finished + part))?;
        }
        Ok(kv)
    }

    /// The keys and values of the `index`-th prompt, as the files of known prompts have them;
    /// `None` if it was known.
    ///
    /// # Errors
    /// They cannot be copied.
    pub fn computed(&self, index: usize) -> Result<Option<Vec<u8>>> {
        let PromptPlace::Computed { group, prompt } = self.places[index] else { return Ok(None) };
        let mut bytes = Vec::new();
        let group = &self.groups[group];
        let path = Tensor::new(group.paths[prompt].as_slice(), &Device::Cpu)?;
        for (k, v) in group.layers.on_cpu()? {
            for x in [k, v] {
                x.index_select(&path, 0)?.write_bytes(&mut bytes)?;
            }
        }
        Ok(Some(bytes))
    }

    /// Counts rows whose keys and values are about to be kept.
    ///
    /// # Errors
    /// They would need more than [`PROMPT_KV_BYTES_MAX`].
    fn reserve<T: Float>(&mut self, rows: usize, model: &Transformer<T>) -> anyhow::Result<()> {
        self.rows += rows;
        if self.rows > rows_max(model) {
            bail!(
                "the prompts' keys and values need more than {} MiB; send fewer episodes",
                PROMPT_KV_BYTES_MAX >> 20
            )
        }
        Ok(())
    }

    /// Computes the prompts of one tree. Returns how many they are.
    fn compute_group<T: Float>(
        &mut self,
        model: &Transformer<T>,
        tree: PrefixTree,
        threads: &Threads,
        mut done: impl FnMut(usize) -> anyhow::Result<()>,
    ) -> anyhow::Result<usize> {
        self.reserve(tree.tokens.len(), model)?;
        let prompts = tree.paths.len();
        let layers = group_layers(model, &tree, threads, |layer| {
            done(prompts * layer / model.shape.layers)
        })?;
        self.groups.push(GroupKv { layers, paths: tree.paths });
        Ok(prompts)
    }

    /// Returns where the keys and values of the `index`-th prompt lie.
    pub fn place(&self, index: usize) -> PromptPlace {
        self.places[index]
    }

    /// The keys and values of one prompt in one layer, each `adapter_from × kv_width`. `None`
    /// for an empty prompt.
    pub fn prefix<T: Float>(
        &self,
        place: PromptPlace,
        layer: usize,
    ) -> Result<Option<(Tensor, Tensor)>> {
        let (group, prompt) = match place {
            PromptPlace::Known(file) => return self.files[file].layer::<T>(layer).map(Some),
            PromptPlace::Computed { group, prompt } => (&self.groups[group], prompt),
        };
        let path = &group.paths[prompt];
        if path.is_empty() {
            return Ok(None);
        }
        let path = Tensor::new(path.as_slice(), &Device::Cpu)?;
        let (k, v) = &group.layers.on_cpu()?[layer];
        let of = |x: &Tensor| x.index_select(&path, 0)?.to_dtype(T::DTYPE);
        Ok(Some((of(k)?, of(v)?)))
    }
}

#[cfg(feature = "cuda")]
impl PromptKv {
    pub(super) fn on_gpu(
        &self,
        place: PromptPlace,
    ) -> anyhow::Result<crate::model::gpu::passes::PromptRows<'_>> {
        if let PromptPlace::Computed { group, prompt } = place
            && let GroupKv { layers: GroupLayers::Gpu(layers), paths } = &self.groups[group]
        {
            return Ok((layers, &paths[prompt]));
        }
        bail!("the prompts do not lie in the memory of the GPU")
    }
}

/// The most rows whose keys and values are kept.
fn rows_max<T: Float>(model: &Transformer<T>) -> usize {
    let shape = &model.shape;
    let row_bytes = 2 * shape.layers * shape.kv_heads * shape.head_width * T::KV.size_in_bytes();
    PROMPT_KV_BYTES_MAX / row_bytes
}

/// Chooses the prompts whose keys and values are kept together. They are chosen in this `order` of
/// their indices, and one that does not fit keeps none behind it out. Known ones always fit,
/// because they stay in their files.
pub fn fitting<T: Float>(
    model: &Transformer<T>,
    prompts: &[&[u32]],
    known: &OpenPrompts,
    order: &[usize],
) -> Vec<bool> {
    choose_within(rows_max(model), prompts, |prompt| known.index(prompt).is_some(), order)
}

/// Returns true if the keys and values of this prompt can be kept at all.
pub fn fits_alone<T: Float>(model: &Transformer<T>, prompt: &[u32]) -> bool {
    prompt.len() <= rows_max(model)
}

/// Chooses prompts, in this order, that need no more than `rows_max` rows together. Known ones
/// need none.
fn choose_within(
    rows_max: usize,
    prompts: &[&[u32]],
    is_known: impl Fn(&[u32]) -> bool,
    order: &[usize],
) -> Vec<bool> {
    let known: Vec<bool> = prompts.iter().map(|prompt| is_known(prompt)).collect();
    let rows = |chosen: &[bool]| {
        let computed = (0..prompts.len()).filter(|index| chosen[*index] && !known[*index]);
        rows_of(computed.map(|index| prompts[index]))
    };
    let all = vec![true; prompts.len()];
    if rows(&all) <= rows_max {
        return all;
    }
    let mut chosen = known.clone();
    for index in order {
        chosen[*index] = true;
        // A prompt may move others to another group, so all of them are counted again.
        chosen[*index] = known[*index] || rows(&chosen) <= rows_max;
    }
    chosen
}

/// The number of rows of these prompts, as [`PromptKv::compute`] keeps them: the prompts of a
/// group share theirs.
fn rows_of<'a>(prompts: impl Iterator<Item = &'a [u32]>) -> usize {
    let (mut rows, mut tree) = (0, PrefixTree::default());
    for prompt in prompts {
        let own = prompt.len() - tree.shared(prompt).0;
        if !tree.paths.is_empty() && tree.tokens.len() + own > PROMPT_PASS_ROWS_MAX {
            tree = PrefixTree::default();
        }
        rows += prompt.len() - tree.insert(prompt);
    }
    rows
}

/// Runs the base over the rows of one tree, on the GPU if the model is there. `done` is called with
/// the number of layers that are done.
fn group_layers<T: Float>(
    model: &Transformer<T>,
    tree: &PrefixTree,
    threads: &Threads,
    done: impl FnMut(usize) -> anyhow::Result<()>,
) -> anyhow::Result<GroupLayers> {
    #[cfg(feature = "cuda")]
    if let Some(gpu) = &model.gpu {
        let mut done = done;
        let pass = || gpu.prompt_pass(tree).map_err(candle_core::Error::wrap);
        let layers = threads.run(pass)?;
        done(model.layers.len())?;
        return Ok(GroupLayers::Gpu(layers));
    }
    Ok(GroupLayers::Cpu(pass(model, tree, threads, done)?))
}

/// Runs the base over the rows of one tree on the CPU. `done` is called with the number of layers
/// that are done.
fn pass<T: Float>(
    model: &Transformer<T>,
    tree: &PrefixTree,
    threads: &Threads,
    mut done: impl FnMut(usize) -> anyhow::Result<()>,
) -> anyhow::Result<Vec<(Tensor, Tensor)>> {
    let mut kept = Vec::with_capacity(model.layers.len());
    if tree.tokens.is_empty() {
        return Ok(kept);
    }
    let mut x = values(&model.embedding.embed::<T>(&tree.tokens)?)?;
    scale_in_place(&mut x, model.shape.block.embedding_scale);
    let mut rows = TreeRows {
        model,
        tree,
        angles: model.rope.angles(&tree.positions, 1.0),
        x,
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
    model: &'a Transformer<T>,
    tree: &'a PrefixTree,
    /// (sin, cos) of the rotation of each row.
    angles: Vec<(T, T)>,
    x: Vec<T>,
    /// Memory that is used again in every layer. To get new memory from the system takes
    /// longer than what is computed there.
    buffers: [Vec<T>; 4],
}

/// Fills the buffer with `rows` copies of `first`, or with zeros.
fn filled<T: Float>(buffer: &mut Vec<T>, rows: usize, width: usize, first: Option<&[T]>) {
    buffer.clear();
    match first {
        Some(first) => (0..rows).for_each(|_| buffer.extend_from_slice(first)),
        None => buffer.resize(rows * width, T::zero()),
    }
}

impl<T: Float> TreeRows<'_, T> {
    /// Computes the keys and values of a layer, and then its output in `x`. The last layer
    /// has no output, because nothing reads it.
    fn layer(&mut self, index: usize) -> Result<(Tensor, Tensor)> {
        let TreeRows { model, tree, angles, x, buffers } = self;
        let shape = &model.shape;
        let layer = &model.layers[index];
        let maps = Maps { model, layer };
        let rows = tree.tokens.len();
        let (q_width, kv_width) = (shape.map(Q).0, shape.map(K).0);
        let [normed, q, k, v] = buffers;

        filled(normed, rows, shape.width, None);
        layer.attention_norm.forward_rows(x, normed);
        maps.fill(K, normed, k)?;
        if let Some([_, norm]) = &layer.head_norms {
            norm.in_place(k);
        }
        model.rope.rotate_rows(k, kv_width, angles);
        maps.fill(V, normed, v)?;
        let as_kept =
            |x: &[T]| Tensor::from_slice(x, (rows, kv_width), &Device::Cpu)?.to_dtype(T::KV);
        let kept = (as_kept(k)?, as_kept(v)?);
        if index + 1 == model.layers.len() {
            layer.release();
            return Ok(kept);
        }
        maps.fill(Q, normed, q)?;
        if let Some([norm, _]) = &layer.head_norms {
            norm.in_place(q);
        }
        model.rope.rotate_rows(q, q_width, angles);
        attention(model, tree, q, k, v)?;
        maps.add(O, q, x)?;

        let [normed, gate, up, _] = buffers;
        for x in x.chunks_mut(FEED_FORWARD_ROWS * shape.width) {
            let rows = x.len() / shape.width;
            filled(normed, rows, shape.width, None);
            layer.feed_forward_norm.forward_rows(x, normed);
            match (shape.block.feed_forward, &layer.experts) {
                (FeedForward::Experts(sizes), Some(experts)) => {
                    let routing = experts.route(normed, sizes.used, |_| None)?;
                    let activation = shape.block.activation;
                    let mut y = experts.forward(model.unit, activation, normed, &routing)?;
                    scale_in_place(&mut y, shape.block.residual_scale);
                    x.iter_mut().zip(y).for_each(|(x, y)| *x += y);
                }
                (FeedForward::Plain, _) => {
                    maps.fill(UP, normed, up)?;
                    shape.block.activation.apply_in_place(up);
                    maps.add(DOWN, up, x)?;
                }
                _ => {
                    maps.fill(UP, normed, up)?;
                    maps.fill(GATE, normed, gate)?;
                    shape.block.activation.gate_in_place(gate, up);
                    maps.add(DOWN, gate, x)?;
                }
            }
        }
        layer.release();
        Ok(kept)
    }
}

/// The maps of a layer, which compute rows of activations.
struct Maps<'a, T> {
    model: &'a Transformer<T>,
    layer: &'a Layer<T>,
}

impl<T: Float> Maps<'_, T> {
    /// y = W·x + b, where `y` gets the length that it needs.
    fn fill(&self, map: usize, x: &[T], y: &mut Vec<T>) -> Result<()> {
        let shape = &self.model.shape;
        let (width_out, width_in) = shape.map(map);
        let map = &self.layer.maps[shape.place(map)];
        filled(y, x.len() / width_in, width_out, map.bias.as_deref());
        map.weight.add_product(self.model.unit, x, y)
    }

    /// y += (W·x + b) · the factor of residuals. This multiplies x with the factor, which costs
    /// less than to multiply the product.
    fn add(&self, map: usize, x: &mut [T], y: &mut [T]) -> Result<()> {
        let shape = &self.model.shape;
        let factor = shape.block.residual_scale;
        let map = &self.layer.maps[shape.place(map)];
        scale_in_place(x, factor);
        if let Some(bias) = &map.bias {
            add_to_rows(y, bias, T::from_f64(factor));
        }
        map.weight.add_product(self.model.unit, x, y)
    }
}

/// Replaces the queries of all rows of a tree by the output of attention: the rows of a branch see
/// the path to them. Branches are in the order of their rows.
fn attention<T: Float>(
    model: &Transformer<T>,
    tree: &PrefixTree,
    q: &mut [T],
    k: &[T],
    v: &[T],
) -> Result<()> {
    let width = |x: &[T]| x.len() / tree.tokens.len();
    let q_width = width(q);
    let mut rest = q;
    let mut of_branches = Vec::with_capacity(tree.branches.len());
    for branch in &tree.branches {
        let own_values = branch.rows.len() * q_width;
        let (own, behind) = std::mem::take(&mut rest).split_at_mut(own_values);
        of_branches.push(own);
        rest = behind;
    }
    tree.branches.par_iter().zip(of_branches).try_for_each(|(branch, own)| -> Result<()> {
        let path = &tree.paths[branch.prompt][..branch.start + branch.rows.len()];
        let along = |x: &[T]| {
            let width = width(x);
            let mut rows = Vec::with_capacity(path.len() * width);
            for row in path {
                rows.extend_from_slice(&x[*row as usize * width..][..width]);
            }
            matrix(rows, path.len(), width)
        };
        let q = Tensor::from_slice(own, (branch.rows.len(), q_width), &Device::Cpu)?;
        let sequence = Sequence { q, k: along(k)?, v: along(v)?, past: branch.start };
        let output = sequence.forward::<T>(model.heads())?;
        with_values(&output, |output: &[T]| own.copy_from_slice(output))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_prompts_are_kept_as_fit_with_the_rows_that_they_share() {
        let prompts: [&[u32]; 4] = [&[1, 2, 3, 4], &[1, 2, 9], &[1, 2, 9], &[7]];
        let chosen = |rows_max, is_known: &dyn Fn(&[u32]) -> bool, order: &[usize]| {
            let chosen = choose_within(rows_max, &prompts, is_known, order);
            (0..prompts.len()).filter(|index| chosen[*index]).collect::<Vec<_>>()
        };
        let is_second = |prompt: &[u32]| prompt == prompts[1];
        let cases: [(usize, &[usize], &[usize]); 6] = [
            (0, &[], &[1, 2]),
            (2, &[3], &[1, 2, 3]),
            (3, &[1, 2], &[1, 2, 3]),
            (4, &[0], &[0, 1, 2]),
            (5, &[0, 1, 2], &[0, 1, 2, 3]),
            (6, &[0, 1, 2, 3], &[0, 1, 2, 3]),
        ];
        for (rows_max, none_known, some_known) in cases {
            assert_eq!(chosen(rows_max, &|_| false, &[0, 1, 2, 3]), none_known, "{rows_max}");
            // The second and third prompt need no row.
            assert_eq!(chosen(rows_max, &is_second, &[0, 1, 2, 3]), some_known, "{rows_max}");
        }
        assert_eq!(chosen(0, &|_| true, &[0, 1, 2, 3]), [0, 1, 2, 3], "known ones need no row");
        let is_known = |_: &[u32]| false;
        assert_eq!(chosen(4, &is_known, &[3, 0, 1, 2]), [1, 2, 3], "what does not fit is passed");
        assert_eq!(chosen(5, &is_known, &[2, 3, 0, 1]), [1, 2, 3], "the same rows cost nothing");
        assert_eq!(chosen(3, &is_known, &[0, 3, 1, 2]), [3], "one that is too long alone");
    }

    /// Prompts are chosen in another order than they are computed in, and the groups that they are
    /// computed in depend on which are chosen.
    #[test]
    fn the_rows_of_chosen_prompts_are_counted_in_the_groups_that_compute_them() {
        let long = PROMPT_PASS_ROWS_MAX as u32;
        let begun: Vec<u32> = (0..long - 1).collect();
        let longer = |last: u32| [&begun[..], &[last]].concat();
        let (first, second) = (longer(long), longer(long + 1));
        // The last two share no row, because one group has no room for both.
        let prompts: [&[u32]; 3] = [&[long + 2], &first, &second];
        let unknown = |_: &[u32]| false;
        let rows = |of: &[&[u32]]| rows_of(of.iter().copied());
        assert_eq!(rows(&prompts), 2 * PROMPT_PASS_ROWS_MAX + 1);
        let room = PROMPT_PASS_ROWS_MAX + 1;
        assert_eq!(choose_within(room, &prompts, unknown, &[2, 1, 0]), [true, false, true]);
        assert_eq!(choose_within(2 * room, &prompts, unknown, &[2, 1, 0]), [true; 3]);
    }
}
