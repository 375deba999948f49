//! The experts that a mixture of experts chose while it served.
//!
//! The learner replays this choice, because two engines round differently and choose others where
//! two experts are nearly as likely. What is recorded is the identity of the experts and not their
//! weights, which the learner computes.

use crate::limits::CHOSEN_EXPERTS_BYTES_MAX;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD as BASE64;
use serde::{Deserialize, Serialize};

/// Stands for an expert where none was chosen. The engine computes the last layer only for tokens
/// behind which something is predicted, and knows nothing of a token whose keys and values come
/// from a file.
pub const NOT_CHOSEN: u16 = u16::MAX;

/// The same in a record with a byte for each expert.
const NOT_CHOSEN_BYTE: u8 = u8::MAX;

/// The way in which a model's choices are laid out: for each token those of each layer, as bytes if
/// the numbers of all experts fit into a byte and as little-endian pairs of bytes otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExpertLayout {
    /// The experts of a layer.
    pub experts: u16,
    /// Those of them that each token uses.
    pub used: u16,
    pub layers: u16,
}

impl ExpertLayout {
    fn id_bytes(&self) -> usize {
        if self.experts <= u16::from(NOT_CHOSEN_BYTE) { 1 } else { 2 }
    }

    /// The bytes of a token: 384 for Qwen3-Coder-30B-A3B (48 layers, 8 of 128 experts).
    pub fn token_bytes(&self) -> usize {
        self.ids_of_token() * self.id_bytes()
    }

    fn ids_of_token(&self) -> usize {
        usize::from(self.used) * usize::from(self.layers)
    }

    /// The choices of `tokens` tokens of which nothing is known.
    pub fn unknown(&self, tokens: usize) -> Vec<u8> {
        vec![NOT_CHOSEN_BYTE; tokens * self.token_bytes()]
    }

    /// Notes the experts of one token in one layer. Does nothing if there is no such token, layer
    /// or expert, or another number of experts than a token uses.
    pub fn put(&self, choices: &mut [u8], token: usize, layer: usize, chosen: &[u16]) {
        let is_sound = layer < usize::from(self.layers)
            && chosen.len() == usize::from(self.used)
            && chosen.iter().all(|id| *id < self.experts);
        let (width, of_layer) = (self.id_bytes(), usize::from(self.used) * self.id_bytes());
        let at = token * self.token_bytes() + layer * of_layer;
        let Some(place) = choices.get_mut(at..at + of_layer).filter(|_| is_sound) else { return };
        for (place, id) in place.chunks_exact_mut(width).zip(chosen) {
            place.copy_from_slice(&id.to_le_bytes()[..width]);
        }
    }
}

/// The experts of the first tokens that the adapter acts on, in the prompt and then in the answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChosenExperts {
    #[serde(flatten)]
    pub layout: ExpertLayout,
    /// The choices of all tokens, in base64.
    ids: String,
}

impl ChosenExperts {
    /// The record of some tokens' choices: of all, or of as many as may be recorded. `None` if that
    /// is no token.
    pub fn new(layout: ExpertLayout, choices: &[u8]) -> Option<ChosenExperts> {
        let token = layout.token_bytes().max(1);
        let tokens = choices.len().min(CHOSEN_EXPERTS_BYTES_MAX) / token;
        let ids = BASE64.encode(&choices[..tokens * token]);
        (tokens > 0).then_some(ChosenExperts { layout, ids })
    }

    /// The expert of each token, layer and place, or [`NOT_CHOSEN`].
    ///
    /// # Errors
    /// It was not recorded of a model with this layout, or not by a correct daemon. The message
    /// says what is wrong with the record.
    pub fn ids(&self, model: ExpertLayout) -> Result<Vec<u16>, String> {
        let ExpertLayout { experts, used, layers } = self.layout;
        if self.layout != model {
            return Err(format!(
                "it has {used} of {experts} experts in {layers} layers, and the model {} of {} in \
                 {}",
                model.used, model.experts, model.layers
            ));
        }
        let bytes = BASE64.decode(&self.ids);
        let bytes = bytes.map_err(|_| "its chosen experts are no base64".to_owned())?;
        if bytes.len() % model.token_bytes().max(1) != 0 {
            return Err("its last token has too few chosen experts".into());
        }
        let ids = bytes.chunks_exact(model.id_bytes()).map(|id| match *id {
            [NOT_CHOSEN_BYTE] => NOT_CHOSEN,
            [id] => u16::from(id),
            _ => u16::from_le_bytes([id[0], id[1]]),
        });
        let ids: Vec<u16> = ids.collect();
        for (index, chosen) in ids.chunks(usize::from(used)).enumerate() {
            let layer = index % usize::from(layers);
            if chosen.iter().all(|id| *id == NOT_CHOSEN) {
                continue;
            }
            if let Some(id) = chosen.iter().find(|id| **id >= experts) {
                return Err(format!("it has expert {id} of {experts} in layer {layer}"));
            }
            if (1..chosen.len()).any(|at| chosen[..at].contains(&chosen[at])) {
                return Err(format!("it has the same expert twice in layer {layer}"));
            }
        }
        Ok(ids)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: ExpertLayout = ExpertLayout { experts: 8, used: 2, layers: 3 };
    const WIDE: ExpertLayout = ExpertLayout { experts: 300, used: 2, layers: 3 };

    #[test]
    fn what_was_chosen_is_read_back() {
        for (layout, last) in [(SMALL, 7), (WIDE, 299)] {
            let mut choices = layout.unknown(2);
            layout.put(&mut choices, 0, 1, &[3, 0]);
            layout.put(&mut choices, 1, 2, &[last, 1]);
            // Nothing of this can be, and nothing of it is noted.
            layout.put(&mut choices, 2, 0, &[1, 2]);
            layout.put(&mut choices, 0, 3, &[1, 2]);
            layout.put(&mut choices, 0, 0, &[1]);
            layout.put(&mut choices, 0, 0, &[1, layout.experts]);
            let record = ChosenExperts::new(layout, &choices).unwrap();
            const NO: u16 = NOT_CHOSEN;
            let expected = [NO, NO, 3, 0, NO, NO, NO, NO, NO, NO, last, 1];
            assert_eq!(record.ids(layout).unwrap(), expected);
            let json = serde_json::to_string(&record).unwrap();
            assert_eq!(serde_json::from_str::<ChosenExperts>(&json).unwrap(), record);
        }
    }

    /// The arithmetic of docs/lab/experts.md.
    #[test]
    fn a_token_of_the_30b_model_has_384_bytes() {
        let layout = ExpertLayout { experts: 128, used: 8, layers: 48 };
        assert_eq!(layout.token_bytes(), 384);
        assert_eq!(CHOSEN_EXPERTS_BYTES_MAX / layout.token_bytes(), 64);
        let long = ChosenExperts::new(layout, &layout.unknown(65)).unwrap();
        assert_eq!(long.ids(layout).unwrap().len(), 64 * 8 * 48, "the first tokens");
        assert_eq!(ChosenExperts::new(layout, &[]), None);
    }

    #[test]
    fn a_record_that_cannot_be_is_refused_in_one_line() {
        let record = |ids: &[u8]| ChosenExperts { layout: SMALL, ids: BASE64.encode(ids) };
        let sound = record(&[0, 1, 2, 3, 255, 255]);
        assert!(sound.ids(SMALL).is_ok());
        let other = ExpertLayout { layers: 4, ..SMALL };
        for (record, model, reason) in [
            (sound.clone(), other, "2 of 8 experts in 3 layers, and the model 2 of 8 in 4"),
            (sound, WIDE, "2 of 8 experts in 3 layers, and the model 2 of 300 in 3"),
            (record(&[0, 1, 2, 8, 4, 5]), SMALL, "it has expert 8 of 8 in layer 1"),
            (record(&[0, 1, 255, 8, 4, 5]), SMALL, "it has expert 65535 of 8 in layer 1"),
            (record(&[0, 1, 2, 3, 5, 5]), SMALL, "the same expert twice in layer 2"),
            (record(&[0, 1, 2, 3, 5]), SMALL, "its last token has too few"),
            (ChosenExperts { layout: SMALL, ids: "?".into() }, SMALL, "are no base64"),
        ] {
            let error = record.ids(model).unwrap_err();
            assert!(error.contains(reason) && !error.contains('\n'), "{error}");
        }
    }
}
