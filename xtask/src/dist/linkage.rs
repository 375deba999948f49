//! Which libraries of the system a packaged program needs, and the oldest versions of them that
//! will do. The tag of a wheel and the dependencies of a `.deb` are read from the programs, so that
//! they cannot promise what the programs do not keep.

use super::contents::{Contents, File};
use anyhow::{Context, Result, bail};
use elf::abi::{DT_NEEDED, ELFMAGIC};
use elf::endian::AnyEndian;
use elf::{ElfBytes, ParseError};
use std::collections::{BTreeMap, BTreeSet};

type Version = Vec<u32>;

#[derive(Debug, Default, PartialEq)]
pub struct Linkage {
    /// Libraries that are not in the package.
    needed: BTreeSet<String>,
    /// The newest version that a symbol asks for, by its family: `GLIBC`, `GLIBCXX`.
    versions: BTreeMap<String, Version>,
}

impl Linkage {
    pub fn of(contents: &Contents) -> Result<Linkage> {
        let mut linkage = Linkage::default();
        for file in contents.programs.iter().chain(&contents.libraries) {
            // Programs for macOS and Windows have other formats and promise nothing here.
            if file.bytes.starts_with(&ELFMAGIC) {
                linkage.add(file).with_context(|| file.name.clone())?;
            }
        }
        for own in &contents.libraries {
            linkage.needed.remove(&own.name);
        }
        Ok(linkage)
    }

    fn add(&mut self, file: &File) -> Result<(), ParseError> {
        let elf = ElfBytes::<AnyEndian>::minimal_parse(&file.bytes)?;
        let Some((symbols, strings)) = elf.dynamic_symbol_table()? else { return Ok(()) };
        for entry in elf.dynamic()?.into_iter().flatten() {
            if entry.d_tag == DT_NEEDED {
                self.needed.insert(strings.get(entry.d_val() as usize)?.to_owned());
            }
        }
        let Some(versions) = elf.symbol_version_table()? else { return Ok(()) };
        for index in 0..symbols.len() {
            if let Some(wanted) = versions.get_requirement(index)? {
                self.want(wanted.name);
            }
        }
        Ok(())
    }

    /// Adds a version such as `GLIBC_2.28`. `GLIBC_PRIVATE` and the like have no number.
    fn want(&mut self, name: &str) {
        let Some((family, number)) = name.rsplit_once('_') else { return };
        let Ok(version) = number.split('.').map(str::parse).collect::<Result<Version, _>>() else {
            return;
        };
        let newest = self.versions.entry(family.to_owned()).or_default();
        *newest = version.max(std::mem::take(newest));
    }

    /// The oldest glibc that the programs run with.
    pub fn glibc(&self) -> Option<(u32, u32)> {
        let version = self.versions.get("GLIBC")?;
        Some((*version.first()?, version.get(1).copied().unwrap_or(0)))
    }

    /// The libraries that are not part of the C library, and so may be absent on a machine.
    pub fn besides_libc(&self) -> Vec<&str> {
        let is_of_libc = |name: &str| {
            let parts =
                ["libc.", "libm.", "libdl.", "libpthread.", "librt.", "ld-linux", "ld-musl"];
            parts.iter().any(|part| name.starts_with(part))
        };
        self.needed.iter().map(String::as_str).filter(|name| !is_of_libc(name)).collect()
    }

    /// Returns true if the programs run on every Linux with their glibc. PEP 600 lists the
    /// libraries that every such machine has; the C++ library is one of them in old versions only.
    pub fn is_manylinux(&self) -> bool {
        let always_there = ["libgcc_s.so.1", "libz.so.1"];
        self.besides_libc().iter().all(|library| always_there.contains(library))
    }

    /// Debian's packages that have these libraries.
    pub fn debian_packages(&self) -> Result<Vec<String>> {
        let (major, minor) = self.glibc().context("the programs do not name a glibc")?;
        let mut packages = vec![format!("libc6 (>= {major}.{minor})")];
        for library in self.besides_libc() {
            packages.push(match library {
                "libgcc_s.so.1" => "libgcc-s1".to_owned(),
                "libgomp.so.1" => "libgomp1".to_owned(),
                "libz.so.1" => "zlib1g".to_owned(),
                "libstdc++.so.6" => format!("libstdc++6 (>= {})", self.gcc()?),
                _ => bail!("{library}: no Debian package is known that has it"),
            });
        }
        Ok(packages)
    }

    /// The GCC whose C++ library has the symbols that are asked for.
    fn gcc(&self) -> Result<u32> {
        /// `GLIBCXX_3.4.N` and the first GCC that had it, by
        /// <https://gcc.gnu.org/onlinedocs/libstdc++/manual/abi.html>.
        const FIRST: [(u32, u32); 11] = [
            (21, 5),
            (22, 6),
            (24, 7),
            (25, 8),
            (27, 9),
            (28, 9),
            (29, 11),
            (30, 12),
            (32, 13),
            (33, 14),
            (34, 15),
        ];
        let wanted = self.versions.get("GLIBCXX").and_then(|version| version.get(2)).copied();
        let wanted = wanted.unwrap_or(0);
        let found = FIRST.iter().find(|(last, _)| wanted <= *last);
        let (_, gcc) = found.with_context(|| format!("GLIBCXX_3.4.{wanted} is too new to know"))?;
        Ok(*gcc)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Linkage {
        /// Returns that of a program that asks for these versions of symbols and these libraries.
        pub fn sample(versions: &[&str], needed: &[&str]) -> Linkage {
            let mut linkage = Linkage::default();
            versions.iter().for_each(|name| linkage.want(name));
            linkage.needed = needed.iter().map(|name| (*name).to_owned()).collect();
            linkage
        }
    }

    #[test]
    fn versions_are_compared_as_numbers() {
        let linkage =
            Linkage::sample(&["GLIBC_2.9", "GLIBC_2.28", "GLIBC_2.2.5", "GLIBC_PRIVATE"], &[]);
        assert_eq!(linkage.glibc(), Some((2, 28)));
        assert_eq!(Linkage::sample(&[], &[]).glibc(), None);
    }

    #[test]
    fn debian_is_told_what_the_programs_need() {
        let names = ["libc.so.6", "libm.so.6", "libstdc++.so.6", "ld-linux-x86-64.so.2"];
        let linkage = Linkage::sample(&["GLIBC_2.28", "GLIBCXX_3.4.26"], &names);
        assert_eq!(linkage.besides_libc(), ["libstdc++.so.6"]);
        assert!(!linkage.is_manylinux());
        assert!(Linkage::sample(&["GLIBC_2.28"], &["libc.so.6", "libgcc_s.so.1"]).is_manylinux());
        let packages = linkage.debian_packages().unwrap();
        assert_eq!(packages, ["libc6 (>= 2.28)", "libstdc++6 (>= 9)"]);
        let error = Linkage::sample(&["GLIBC_2.28"], &["libx.so.1"]).debian_packages().unwrap_err();
        assert!(error.to_string().contains("libx.so.1"), "{error}");
    }

    /// The program that runs this test is linked with the system's C library.
    #[test]
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    fn a_real_program_is_read() {
        let (_, mut contents) = super::super::contents::tests::sample();
        let own = std::env::current_exe().unwrap();
        contents.programs = vec![File { name: "own".into(), bytes: std::fs::read(own).unwrap() }];
        let linkage = Linkage::of(&contents).unwrap();
        assert!(linkage.needed.contains("libc.so.6"), "{linkage:?}");
        assert!(linkage.glibc().unwrap() >= (2, 17), "{linkage:?}");
    }
}
