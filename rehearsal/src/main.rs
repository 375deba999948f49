//! The program `hone-rehearse`, which `hone rehearse` starts.

use std::process::ExitCode;

fn main() -> ExitCode {
    rehearsal::cli::main()
}
