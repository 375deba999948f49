//! `hone-fetch FOLDER`: fetches the default model into a folder of models. `cargo xtask demo` runs
//! it while `hone`, which fetches models for users, is still being compiled.

use model_fetch::hub;
use models::manifest::Catalogue;
use models::store::Store;
use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    match fetch() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("hone-fetch: {error}");
            ExitCode::FAILURE
        }
    }
}

fn fetch() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args_os().nth(1).ok_or("usage: hone-fetch FOLDER")?;
    let folder = PathBuf::from(folder);
    let catalogue = Catalogue::load(&folder)?;
    hub::pull(&Store::new(folder), catalogue.default_model(), &mut ())?;
    Ok(())
}
