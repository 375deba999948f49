//! How a number of bytes is written for people: in one unit everywhere, also in the editors'
//! plugins.

use std::fmt::{self, Display, Formatter};

const MIB: u64 = 1 << 20;

/// A number of bytes, as in `469 MiB`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size(pub u64);

impl Display for Size {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            1..MIB => f.write_str("under 1 MiB"),
            bytes => write!(f, "{} MiB", (bytes.saturating_add(MIB / 2)) / MIB),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_told_in_whole_mib() {
        let told = |bytes| Size(bytes).to_string();
        assert_eq!(told(491_400_064), "469 MiB");
        assert_eq!(told(18_556_686_752), "17697 MiB");
        assert_eq!([told(0), told(1), told(MIB)], ["0 MiB", "under 1 MiB", "1 MiB"]);
    }
}
