//! The line that the user reads when llama.cpp ends the process. It does so instead of returning an
//! error where some numbers of a model's file cannot be, and the engine cannot prevent it. One line
//! names the file then, as after every other error, instead of a core dump.

use super::leave;
use llama_cpp_sys_2 as sys;
use parking_lot::Mutex;
use std::ffi::{CStr, c_char};
use std::io::Write;
use std::path::{Path, PathBuf};

/// The model that was loaded last.
static MODEL: Mutex<Option<PathBuf>> = Mutex::new(None);

/// Makes llama.cpp call [`on_abort`] before it ends the process.
pub fn install() {
    // SAFETY: the callback is a function of this program and stays.
    unsafe { sys::ggml_set_abort_callback(Some(on_abort)) };
}

/// Remembers the model that is loaded next, for the line that names it.
pub fn name_model(path: &Path) {
    *MODEL.lock() = Some(path.to_owned());
}

unsafe extern "C" fn on_abort(message: *const c_char) {
    // SAFETY: ggml gives a text that ends with 0 and lives until this function returns.
    let message = unsafe { CStr::from_ptr(message) }.to_string_lossy();
    // A thread that holds the lock may be the one that ends here.
    let path = MODEL.try_lock().and_then(|path| path.clone());
    let _ = writeln!(std::io::stderr(), "Error: {}", line(path.as_deref(), &message));
    leave(1)
}

fn line(path: Option<&Path>, message: &str) -> String {
    let what = without_folder(message.lines().next().unwrap_or_default());
    match path {
        Some(path) => format!(
            "{}: llama.cpp cannot continue with this model ({what}); use another one",
            path.display()
        ),
        None => format!("llama.cpp cannot continue ({what})"),
    }
}

/// A message begins with the path of a source file on the machine where llama.cpp was compiled.
fn without_folder(message: &str) -> &str {
    let (path, _) = message.split_once(": ").unwrap_or((message, ""));
    let folder = path.rfind(['/', '\\']).map_or(0, |slash| slash + 1);
    &message[folder..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_names_the_model_and_no_folder_of_the_build() {
        let message = "/home/build/src/llama-model.cpp:1422: GGML_ASSERT(a / b > 0) failed\nmore";
        assert_eq!(
            line(Some(Path::new("/m/own.gguf")), message),
            "/m/own.gguf: llama.cpp cannot continue with this model \
             (llama-model.cpp:1422: GGML_ASSERT(a / b > 0) failed); use another one"
        );
        assert_eq!(line(None, "out of memory"), "llama.cpp cannot continue (out of memory)");
        assert_eq!(without_folder(r"C:\src\ggml.c:7: a/b"), "ggml.c:7: a/b");
    }
}
