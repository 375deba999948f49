//! Finds llama.cpp's libraries next to the program, and checks that they are whole. The loader maps
//! a library before it knows, and the process ends with a bus error where the file is shorter than
//! what is mapped.

use elf::ElfStream;
use elf::abi::ELFMAGIC;
use elf::endian::AnyEndian;
use std::fs::File;
use std::io::{Read, Seek};
use std::path::{Path, PathBuf};

/// The folder of the libraries, from the folder above that of the program.
const FOLDER: &str = "lib/hone";

/// Returns the folder of llama.cpp's libraries: `../lib/hone` of the program, as it is installed,
/// or the program's own. No other folder is searched.
///
/// # Errors
/// Neither has any.
pub fn folder(program: &Path) -> Result<PathBuf, String> {
    let name = program.display();
    // A program that was started by a link has its libraries where it is itself.
    let real = program.canonicalize().map_err(|error| format!("{name}: {error}"))?;
    let own = real.parent().unwrap_or(Path::new("/"));
    let installed = own.parent().map(|above| above.join(FOLDER));
    let found = installed.into_iter().chain([own.to_owned()]).find(|folder| has_kernels(folder));
    found.ok_or_else(|| {
        format!("{name}: its libraries are not in ../{FOLDER} next to it; unpack the whole archive")
    })
}

/// Returns true if a library of ggml for the CPU is in the folder.
fn has_kernels(folder: &Path) -> bool {
    let names = std::fs::read_dir(folder).into_iter().flatten().flatten();
    names.map(|entry| entry.file_name()).any(|name| {
        let name = name.to_string_lossy();
        name.strip_prefix("lib").unwrap_or(&name).starts_with("ggml-cpu")
    })
}

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
            return Err(format!("{name}, next to hone, is damaged; install Hone again"));
        }
    }
    Ok(())
}

/// Returns true if all that the loader maps is in the file. Its content is not read. A file in
/// another format than ELF is passed: the loader refuses it, or has its own rules for it.
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

    /// Without `../lib/hone`, libraries of this name were loaded from the current folder.
    #[test]
    fn libraries_are_searched_next_to_the_program_alone() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let make = |folder: &str, file: &str| {
            std::fs::create_dir_all(root.join(folder)).unwrap();
            std::fs::write(root.join(folder).join(file), "").unwrap();
        };
        make("bin", "hone");
        make("stranger", "libggml-cpu-haswell.so");
        make("lib/hone", "libllama.so");
        let program = root.join("bin/hone");
        let refused = || folder(&program).unwrap_err();
        assert!(refused().contains("unpack the whole archive"), "{}", refused());
        make("bin", "libggml-cpu-haswell.so");
        assert_eq!(folder(&program), Ok(root.join("bin")));
        make("lib/hone", "libggml-cpu-haswell.so");
        assert_eq!(folder(&program), Ok(root.join("lib/hone")));
        #[cfg(unix)]
        {
            let link = root.join("stranger/hone");
            std::os::unix::fs::symlink(&program, &link).unwrap();
            assert_eq!(folder(&link), Ok(root.join("lib/hone")), "where the program is itself");
        }
        assert!(folder(&root.join("missing")).is_err());
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
            assert_eq!(error, "libggml-vulkan.so, next to hone, is damaged; install Hone again");
        }
        let error = check(&folder.path().join("missing")).unwrap_err();
        assert!(error.contains("missing: the libraries cannot be read"), "{error}");
    }
}
