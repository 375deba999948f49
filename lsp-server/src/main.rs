//! `hone`: completions that learn from your Tab key, on your machine.

fn main() {
    hone::cli::main()
}
