//! The experts of a mixture of experts, as a GGUF file describes them.
//!
//! llama.cpp ends the process on some of the numbers that are refused here, so that every reader of
//! a model file asks this module first.

use crate::gguf::Gguf;

/// The most experts of a layer that llama.cpp has room for (`LLAMA_MAX_EXPERTS`).
pub const EXPERTS_MAX: usize = 1024;

/// The number of experts of every layer, and how many of them each token uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Experts {
    pub count: usize,
    pub used: usize,
}

impl Experts {
    /// The experts of a model; `None` if its layers have a single feed-forward part.
    ///
    /// # Errors
    /// The numbers cannot be. The message is one line that names the key.
    pub fn of(gguf: &Gguf) -> Result<Option<Experts>, String> {
        let architecture = gguf.architecture().unwrap_or_default();
        let size = |name: &str| -> Result<Option<usize>, String> {
            let key = format!("{architecture}.{name}");
            match gguf.metadata.get(&key) {
                None => Ok(None),
                Some(value) => match value.as_u32() {
                    Some(number) => Ok(Some(number as usize)),
                    None => Err(format!("{key} is not one number")),
                },
            }
        };
        let Some(count) = size("expert_count")?.filter(|count| *count > 0) else {
            return Ok(None);
        };
        if count > EXPERTS_MAX {
            return Err(format!(
                "it has {count} experts a layer, and at most {EXPERTS_MAX} can be"
            ));
        }
        let used = size("expert_used_count")?
            .ok_or_else(|| format!("{architecture}.expert_used_count is missing"))?;
        if used == 0 || used > count {
            return Err(format!("its tokens use {used} of {count} experts, which cannot be"));
        }
        Ok(Some(Experts { count, used }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gguf_write::Builder;

    fn experts(numbers: &[(&str, u32)]) -> Result<Option<Experts>, String> {
        let mut builder = Builder::default();
        builder.string("general.architecture", "qwen3moe");
        numbers.iter().for_each(|(key, number)| builder.u32(&format!("qwen3moe.{key}"), *number));
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), builder.finish()).unwrap();
        Experts::of(&Gguf::open(file.path()).unwrap())
    }

    #[test]
    fn the_numbers_of_experts_are_read_and_those_that_cannot_be_are_refused() {
        let read = experts(&[("expert_count", 128), ("expert_used_count", 8)]);
        assert_eq!(read, Ok(Some(Experts { count: 128, used: 8 })));
        assert_eq!(experts(&[]), Ok(None));
        assert_eq!(experts(&[("expert_count", 0), ("expert_used_count", 8)]), Ok(None));
        for (numbers, reason) in [
            (&[("expert_count", 8)][..], "qwen3moe.expert_used_count is missing"),
            (&[("expert_count", 8), ("expert_used_count", 0)], "use 0 of 8 experts"),
            (&[("expert_count", 8), ("expert_used_count", 9)], "use 9 of 8 experts"),
            (&[("expert_count", 1025), ("expert_used_count", 9)], "has 1025 experts a layer"),
        ] {
            let error = experts(numbers).unwrap_err();
            assert!(error.contains(reason) && !error.contains('\n'), "{error}");
        }
    }
}
