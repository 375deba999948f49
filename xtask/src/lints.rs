//! Clippy and the compiler in one build. `cargo clippy` is a build of its own that shares nothing
//! with `cargo build`: it reads every dependency again, which takes minutes. Here cargo calls this
//! program instead of the compiler (`RUSTC_WORKSPACE_WRAPPER`) for each crate of the workspace, and
//! it lints what it compiles. Warnings are errors.
//!
//! It also spares the machine what nobody waits for: a library that is compiled a second time for
//! its unit tests is not optimised, and of the examples, which no test runs, only the types are
//! checked.

use crate::workspace::Workspace;
use anyhow::{Context, Result, ensure};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The name under which this program is the compiler. Cargo keeps what it made apart from
/// what another compiler made, by this path.
const WRAPPER: &str = "rustc-and-clippy";

/// True if this process has made the copy that cargo calls.
static IS_COPIED: OnceLock<()> = OnceLock::new();

/// For what is compiled and hardly used. Hone's own unit tests take a quarter of a minute longer at
/// this level, and two minutes less to compile.
const NOT_OPTIMISED: [&str; 2] = ["-C", "opt-level=0"];

const DENY_WARNINGS: [&str; 2] = ["-D", "warnings"];

/// Lets a cargo command lint what it compiles.
pub fn with_lints<'a>(workspace: &Workspace, cargo: &'a mut Command) -> Result<&'a mut Command> {
    let wrapper = workspace.target.join(WRAPPER);
    if IS_COPIED.get().is_none() {
        copy_to(&wrapper)?;
        let _ = IS_COPIED.set(());
    }
    Ok(cargo.env("RUSTC_WORKSPACE_WRAPPER", wrapper))
}

/// Cargo calls a copy of this program, because it may build the program anew meanwhile. The file of
/// the running program is then gone, so it is copied once, before the first build.
fn copy_to(wrapper: &Path) -> Result<()> {
    let own = std::env::current_exe().context("cannot find this program's own path")?;
    let bytes = fs::read(&own).with_context(|| own.display().to_string())?;
    if fs::read(wrapper).ok().as_ref() != Some(&bytes) {
        fs::copy(&own, wrapper).with_context(|| wrapper.display().to_string())?;
    }
    Ok(())
}

/// Returns true if cargo has called this program as the compiler.
pub fn is_compiler(arguments: &[OsString]) -> bool {
    let name = arguments.first().map(Path::new).and_then(Path::file_stem);
    name.is_some_and(|name| name == WRAPPER) && arguments.len() > 1
}

/// `rustc-and-clippy rustc …`: what rustc does, and what clippy says. Clippy is the compiler with
/// more lints and without the optimiser's first passes, which only libraries need: what users'
/// programs compute with is in them. Clippy reads a library when its tests are compiled, because
/// they are compiled with the whole library.
pub fn compile(arguments: &[OsString]) -> Result<()> {
    let (rustc, arguments) = (&arguments[1], &arguments[2..]);
    if !arguments.iter().any(|argument| argument == "--out-dir") {
        // Cargo only asks what the compiler can do.
        return run(Command::new(rustc).args(arguments));
    }
    if is_example(arguments) {
        return read_example(rustc, arguments);
    }
    let mut command = if is_library(arguments) && !is_test(arguments) {
        Command::new(rustc)
    } else {
        clippy(rustc)
    };
    command.args(arguments).args(DENY_WARNINGS);
    if is_hardly_used(arguments) {
        command.args(NOT_OPTIMISED);
    }
    run(&mut command)
}

fn clippy(rustc: &OsString) -> Command {
    let mut clippy = Command::new("clippy-driver");
    clippy.arg(rustc);
    clippy
}

fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot start {command:?}"))?;
    ensure!(status.success(), "{} failed ({status})", command.get_program().display());
    Ok(())
}

/// Lets clippy check an example. An empty file stands for the program, so that cargo does not take
/// it for one that is still to be built. A build without this compiler makes the program.
fn read_example(rustc: &OsString, arguments: &[OsString]) -> Result<()> {
    run(clippy(rustc).args(without_code(arguments)).args(DENY_WARNINGS))?;
    let program = program(arguments).context("an example without a name")?;
    fs::write(&program, "").with_context(|| program.display().to_string())
}

/// Returns the arguments that check the same and make no code.
fn without_code(arguments: &[OsString]) -> Vec<OsString> {
    let emits = |argument: &OsString| argument.to_string_lossy().starts_with("--emit=");
    let checks = OsString::from("--emit=dep-info,metadata");
    arguments
        .iter()
        .map(|given| if emits(given) { checks.clone() } else { given.clone() })
        .collect()
}

/// Returns the path of the program that these arguments make.
fn program(arguments: &[OsString]) -> Option<PathBuf> {
    let named = |option: &str| {
        let at = arguments.iter().position(|argument| argument == option)?;
        arguments.get(at + 1)
    };
    let text = |argument: &OsString| argument.to_string_lossy().into_owned();
    let hash = arguments.iter().map(text);
    let mut hash =
        hash.filter_map(|argument| Some(argument.strip_prefix("extra-filename=")?.to_owned()));
    let name = text(named("--crate-name")?) + &hash.next_back().unwrap_or_default();
    Some(Path::new(named("--out-dir")?).join(name + std::env::consts::EXE_SUFFIX))
}

fn is_example(arguments: &[OsString]) -> bool {
    source(arguments)
        .is_some_and(|source| source.components().any(|part| part.as_os_str() == "examples"))
}

/// Returns true if these arguments compile the unit tests of a library. What integration tests
/// compute with is in libraries, which are optimised.
fn is_hardly_used(arguments: &[OsString]) -> bool {
    is_test(arguments) && source(arguments).is_some_and(|source| source.ends_with("src/lib.rs"))
}

fn is_test(arguments: &[OsString]) -> bool {
    arguments.iter().any(|argument| argument == "--test")
}

fn source(arguments: &[OsString]) -> Option<&Path> {
    let is_source = |path: &&Path| path.extension().is_some_and(|extension| extension == "rs");
    arguments.iter().map(Path::new).find(is_source)
}

fn is_library(arguments: &[OsString]) -> bool {
    arguments.windows(2).any(|pair| pair[0] == "--crate-type" && pair[1] == "lib")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(line: &str) -> Vec<OsString> {
        line.split_whitespace().map(OsString::from).collect()
    }

    #[test]
    fn unit_tests_are_not_optimised() {
        for (line, is_spared) in [
            ("--crate-name hone lsp-server/src/lib.rs --test --out-dir /t", true),
            ("--crate-name hone lsp-server/src/lib.rs --crate-type lib", false),
            ("--crate-name integration learner/tests/integration/main.rs --test", false),
            ("--crate-name ___ --print=file-names", false),
        ] {
            assert_eq!(is_hardly_used(&arguments(line)), is_spared, "{line}");
        }
    }

    #[test]
    fn of_examples_the_types_are_checked_and_no_program_is_made() {
        let given = arguments(
            "--crate-name step learner/examples/step.rs --emit=dep-info,link -C metadata=12 \
             -C extra-filename=-ab --out-dir /t/examples",
        );
        assert!(is_example(&given));
        let checks = arguments(
            "--crate-name step learner/examples/step.rs --emit=dep-info,metadata -C metadata=12 \
             -C extra-filename=-ab --out-dir /t/examples",
        );
        assert_eq!(without_code(&given), checks);
        let name = format!("step-ab{}", std::env::consts::EXE_SUFFIX);
        assert_eq!(program(&given), Some(Path::new("/t/examples").join(name)));
        assert!(!is_example(&arguments("--crate-name hone lsp-server/src/lib.rs")));
    }

    #[test]
    fn only_the_copy_is_the_compiler() {
        assert!(is_compiler(&arguments("/t/rustc-and-clippy rustc -vV")));
        assert!(!is_compiler(&arguments("/t/rustc-and-clippy")));
        assert!(!is_compiler(&arguments("/t/release/xtask test")));
    }
}
