//! The sources of keys and values of prompts that need not be computed: the daemon, which
//! has computed them to complete, or another learner of the same rehearsal.

use crate::kernels::float::Float;
use crate::model::Transformer;
use crate::model::prefix_tree::PrefixTree;
use candle_core::{Device, Result, Tensor};
use models::disk_cache::DiskCache;
use std::collections::{HashMap, HashSet};

/// The caches in which prompts are looked up.
#[derive(Default)]
pub struct KnownPrompts {
    /// Shared by the learners of a rehearsal, which also write to it.
    shared: Option<DiskCache>,
    /// The files that the daemon has put there. They are only read.
    handed: Option<DiskCache>,
}

impl KnownPrompts {
    pub fn new(shared: Option<DiskCache>, handed: Option<DiskCache>) -> KnownPrompts {
        KnownPrompts { shared, handed }
    }

    pub fn contains(&self, prompt: &[u32]) -> bool {
        [&self.shared, &self.handed].into_iter().flatten().any(|cache| cache.contains(prompt))
    }

    fn get(&self, prompt: &[u32]) -> Option<Vec<u8>> {
        [&self.shared, &self.handed].into_iter().flatten().find_map(|cache| cache.get(prompt))
    }

    /// Keeps prompts that had to be computed, if there is a cache for them. The update continues if
    /// that fails. `bytes` gives the rows of a prompt by its index.
    ///
    /// # Errors
    /// The rows cannot be copied.
    pub fn keep(
        &mut self,
        prompts: &[&[u32]],
        computed: &[usize],
        bytes: impl Fn(usize) -> Result<Vec<u8>>,
    ) -> Result<()> {
        let Some(shared) = &mut self.shared else { return Ok(()) };
        let mut written = HashSet::new();
        for index in computed.iter().filter(|index| !prompts[**index].is_empty()) {
            if written.insert(prompts[*index])
                && let Err(error) = shared.put(prompts[*index], &bytes(*index)?)
            {
                eprintln!("hone-learner: cannot write a prompt to the cache: {error}");
            }
        }
        Ok(())
    }
}

/// The keys and values that were found. Prompts share the rows of a common beginning, as those do
/// that are computed.
pub(super) struct FoundRows<'a> {
    pub(super) tree: PrefixTree,
    /// For each layer the bytes of the keys and those of the values, of the tree's rows.
    layers: Vec<[Vec<u8>; 2]>,
    /// The index in the tree of each prompt that was looked up; `None` if it was not found.
    places: HashMap<&'a [u32], Option<usize>>,
    /// Bytes of a row.
    row: usize,
}

impl<'a> FoundRows<'a> {
    pub(super) fn none<T: Float>(model: &Transformer<T>) -> FoundRows<'a> {
        let shape = &model.shape;
        FoundRows {
            tree: PrefixTree::default(),
            layers: vec![Default::default(); shape.layers],
            places: HashMap::new(),
            row: shape.kv_heads * shape.head_width * T::KV.size_in_bytes(),
        }
    }

    /// Looks a prompt up. Returns its index in the tree.
    pub(super) fn find(&mut self, known: &KnownPrompts, prompt: &'a [u32]) -> Option<usize> {
        if let Some(place) = self.places.get(prompt) {
            return *place;
        }
        let part = prompt.len() * self.row;
        let fits = |bytes: &Vec<u8>| part > 0 && bytes.len() == 2 * part * self.layers.len();
        let place = known.get(prompt).filter(fits).map(|bytes| {
            let shared = self.tree.insert(prompt);
            for (layer, bytes) in self.layers.iter_mut().zip(bytes.chunks_exact(2 * part)) {
                for (rows, part) in layer.iter_mut().zip(bytes.chunks_exact(part)) {
                    rows.extend_from_slice(&part[shared * self.row..]);
                }
            }
            self.tree.paths.len() - 1
        });
        self.places.insert(prompt, place);
        place
    }

    /// The keys and values of the tree's rows, layer by layer.
    pub(super) fn layers<T: Float>(
        self,
        model: &Transformer<T>,
    ) -> Result<(Vec<(Tensor, Tensor)>, PrefixTree)> {
        let width = model.shape.kv_heads * model.shape.head_width;
        let shape = [self.tree.tokens.len(), width];
        let tensor = |bytes: Vec<u8>| Tensor::from_raw_buffer(&bytes, T::KV, &shape, &Device::Cpu);
        let layers = self.layers.into_iter().map(|[k, v]| Ok((tensor(k)?, tensor(v)?)));
        Ok((layers.collect::<Result<_>>()?, self.tree))
    }
}
