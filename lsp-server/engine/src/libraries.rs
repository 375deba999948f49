//! Whether the libraries beside the program are whole. The loader maps a library before it knows,
//! and the process ends with a bus error where the file is shorter than what is mapped.

use elf::ElfStream;
use elf::abi::ELFMAGIC;
use elf::endian::AnyEndian;
use std::fs::File;
use std::io::{Read, Seek};
use std::path::Path;

/// # Errors
/// A library of the folder is damaged, or cannot be read. The message names it and what to do.
pub fn check(folder: &Path) -> Result<(), String> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        let folder = folder.display();
        return Err(format!("{folder}: the libraries cannot be read; install Hone again"));
    };
    for path in entries.flatten().map(|entry| entry.path()) {
        let is_library = path.extension().is_some_and(|extension| extension == "so");
        if is_library && !is_whole(&path) {
            // The name alone, because a report that may be shown to others leaves out paths.
            let name = path.file_name().unwrap_or_default().display();
            return Err(format!("{name}, beside hone, is damaged; install Hone again"));
        }
    }
    Ok(())
}

/// Whether all that the loader maps is in the file. Its content is not read. A file in another
/// format than ELF is passed: the loader refuses it, or has its own rules for it.
fn is_whole(path: &Path) -> bool {
    let Ok(mut file) = File::open(path) else { return false };
    let mut magic = [0; ELFMAGIC.len()];
    if file.read_exact(&mut magic).is_err() || magic != ELFMAGIC {
        return true;
    }
    let Ok(bytes) = file.metadata().map(|metadata| metadata.len()) else { return false };
    if file.rewind().is_err() {
        return false;
    }
    let Ok(library) = ElfStream::<AnyEndian, _>::open_stream(file) else { return false };
    library.segments().iter().all(|segment| {
        segment.p_offset.checked_add(segment.p_filesz).is_some_and(|end| end <= bytes)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An ELF file of 200 bytes: a header of 64, one segment's of 56, and the segment.
    fn a_library() -> Vec<u8> {
        let mut bytes = [&ELFMAGIC[..], &[2, 1, 1], &[0; 9]].concat();
        // A library for x86-64, of version 1.
        bytes.extend([3, 0, 62, 0, 1, 0, 0, 0]);
        for number in [0u64, 64, 0] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend([0; 4]);
        for number in [64u16, 56, 1, 64, 0, 0] {
            bytes.extend(number.to_le_bytes());
        }
        // To be loaded and read: 80 bytes from 120 on.
        bytes.extend([1, 0, 0, 0, 4, 0, 0, 0]);
        for number in [120u64, 120, 120, 80, 80, 4096] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.resize(200, 0);
        bytes
    }

    #[test]
    fn a_library_that_is_cut_off_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let library = folder.path().join("libggml-vulkan.so");
        std::fs::write(&library, a_library()).unwrap();
        std::fs::write(folder.path().join("libggml-other.so"), "in no known format").unwrap();
        std::fs::write(folder.path().join("NOTICE"), "no library").unwrap();
        assert_eq!(check(folder.path()), Ok(()));

        let file = File::options().write(true).open(&library).unwrap();
        for bytes in [199, 100, 10] {
            file.set_len(bytes).unwrap();
            let error = check(folder.path()).unwrap_err();
            assert_eq!(error, "libggml-vulkan.so, beside hone, is damaged; install Hone again");
        }
        let error = check(&folder.path().join("missing")).unwrap_err();
        assert!(error.contains("missing: the libraries cannot be read"), "{error}");
    }
}
