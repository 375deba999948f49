//! Reads the keys and values of a prompt out of a sequence's state as llama.cpp writes it, for the
//! learner, which would compute the same.
//!
//! llama.cpp promises nothing about this form, so everything is checked that can be. Where it is
//! another than the one known here, the learner computes the prompt.
//!
//! The form is that of `llama_context::state_seq_get_data` and `llama_kv_cache::state_write`: a
//! magic number, the sequence, the number of streams, and for each of them its number of cells and,
//! if that is not 0,
//!
//! 1. for each cell its position and its sequences;
//! 2. whether values are transposed, the number of layers, and two numbers about rotation;
//! 3. for each layer the type of a key, the bytes of a row, and a row for each cell;
//! 4. the same for the values.

/// ggml's number for 16-bit floats.
const F16: u32 = 1;

/// The rows of the positions `0..tokens`, as `DiskCache::handed` describes them. `None` if the
/// state is of another form or lacks one of the positions.
pub(super) fn rows(state: &[u8], tokens: usize) -> Option<Vec<u8>> {
    let mut state = Reader(state);
    let (_magic, _sequence) = (state.number()?, state.number()?);
    let streams = state.number()?;
    let mut found = None;
    for _ in 0..streams {
        let cells = state.number()? as usize;
        if cells == 0 {
            continue;
        }
        if found.is_some() {
            return None;
        }
        found = Some(stream(&mut state, cells, tokens)?);
    }
    // Something is left if there is a second cache, as models with a sliding window have it.
    found.filter(|_| state.0.is_empty())
}

/// The rows of a stream.
fn stream(state: &mut Reader, cells: usize, tokens: usize) -> Option<Vec<u8>> {
    let mut cell_of = vec![None; tokens];
    for cell in 0..cells {
        let position = state.number()? as usize;
        let sequences = state.number()? as usize;
        state.take(sequences.checked_mul(4)?)?;
        if let Some(known) = cell_of.get_mut(position) {
            *known = Some(cell);
        }
    }
    let cell_of = cell_of.into_iter().collect::<Option<Vec<usize>>>()?;
    let are_transposed = state.number()? != 0;
    let layers = state.number()?;
    let are_rotated_further = [state.number()?, state.number()?] != [0, 0];
    if are_transposed || are_rotated_further {
        return None;
    }
    let mut all = || (0..layers).map(|_| layer(state, cells)).collect::<Option<Vec<&[u8]>>>();
    let (keys, values) = (all()?, all()?);
    let is_in_order = cell_of.iter().enumerate().all(|(position, cell)| position == *cell);
    let parts = || keys.iter().zip(&values).flat_map(|(keys, values)| [*keys, *values]);
    let mut rows = Vec::with_capacity(parts().map(|part| part.len() / cells * tokens).sum());
    for part in parts() {
        let width = part.len() / cells;
        if is_in_order {
            // It is nearly always, and one copy takes less of the engine's time than many.
            rows.extend_from_slice(&part[..tokens * width]);
            continue;
        }
        cell_of.iter().for_each(|cell| rows.extend_from_slice(&part[cell * width..][..width]));
    }
    Some(rows)
}

/// The rows of all cells in one layer.
fn layer<'a>(state: &mut Reader<'a>, cells: usize) -> Option<&'a [u8]> {
    let is_f16 = state.number()? == F16;
    let width = usize::try_from(state.long()?).ok().filter(|_| is_f16)?;
    state.take(cells.checked_mul(width)?)
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(bytes)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<u32> {
        Some(u32::from_ne_bytes(self.take(4)?.try_into().ok()?))
    }

    fn long(&mut self) -> Option<u64> {
        Some(u64::from_ne_bytes(self.take(8)?.try_into().ok()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The state of a sequence, with two streams, the second of which has cells at these positions.
    /// A row of a layer has two bytes, which say the position and which row it is.
    fn state(positions: &[u8], transposed: u32, key_type: u32) -> Vec<u8> {
        let numbers = |numbers: &[u32]| -> Vec<u8> {
            numbers.iter().flat_map(|number| number.to_ne_bytes()).collect()
        };
        let mut bytes = numbers(&[7, 1, 2, 0, positions.len() as u32]);
        for position in positions {
            bytes.extend(numbers(&[u32::from(*position), 1, 0]));
        }
        bytes.extend(numbers(&[transposed, 2, 0, 0]));
        for kind in [10, 20, 11, 21] {
            bytes.extend(numbers(&[key_type]));
            bytes.extend(2u64.to_ne_bytes());
            positions.iter().for_each(|position| bytes.extend([*position, kind]));
        }
        bytes
    }

    #[test]
    fn rows_are_in_the_order_of_the_prompt_and_layer_by_layer() {
        // Keys are written first for all layers: 10 and 20, and then values, 11 and 21.
        let wanted = [0, 10, 1, 10, 0, 11, 1, 11, 0, 20, 1, 20, 0, 21, 1, 21];
        assert_eq!(rows(&state(&[1, 0, 2], 0, F16), 2).unwrap(), wanted);
        assert_eq!(rows(&state(&[0, 1, 2], 0, F16), 2).unwrap(), wanted);
    }

    #[test]
    fn another_form_is_not_guessed() {
        let known = state(&[0, 1], 0, F16);
        assert!(rows(&known, 2).is_some());
        assert!(rows(&known, 3).is_none(), "a position is missing");
        assert!(rows(&state(&[0, 1], 1, F16), 2).is_none(), "values are transposed");
        assert!(rows(&state(&[0, 1], 0, 8), 2).is_none(), "keys have another type");
        assert!(rows(&[&known[..], &[0]].concat(), 2).is_none(), "something is left");
        for end in 0..known.len() {
            assert!(rows(&known[..end], 2).is_none(), "cut off after {end} bytes");
        }
    }
}
