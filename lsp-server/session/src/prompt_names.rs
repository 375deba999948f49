//! The names of documents as a model reads them: those of files that hold such code. The model does
//! not know addresses, and under the ending of a notebook it knows no code.

use completion::document::Document;
use completion::languages;
use completion::prompt::PromptContext;
use host::addresses;
use std::path::Path;
use std::sync::Arc;

/// The ending of a notebook's file. The text that the model knows under it is not that of cells.
const ENDING: &str = ".ipynb";

/// The context with the document under a name that the model knows for its code.
pub fn named_for_model(context: Arc<PromptContext>, document: &Document) -> Arc<PromptContext> {
    let name = if addresses::is_address(&document.path) {
        name_in_address(document)
    } else {
        context.path.clone()
    };
    let ending = languages::ending(&document.language);
    let path = match (name.strip_suffix(ENDING), ending) {
        (Some(stem), Some(ending)) => format!("{stem}.{ending}"),
        _ => name,
    };
    if path == context.path {
        return context;
    }
    Arc::new(PromptContext { path, ..(*context).clone() })
}

/// The name of the file within an address. One that was never saved has no ending, and gets its
/// language as one, as a new file does.
fn name_in_address(document: &Document) -> String {
    let path = addresses::path_in(&document.path);
    let name = Path::new(&*path).file_name().map(|name| name.to_string_lossy().into_owned());
    let name = name.unwrap_or_default();
    if Path::new(&name).extension().is_some() {
        name
    } else {
        format!("{name}.{}", document.language)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(path: &str, language: &str, so_far: &str) -> String {
        let (path, language) = (path.to_owned(), language.to_owned());
        let document = Document { path, language, version: 1, text: "".into() };
        let context = PromptContext { path: so_far.to_owned(), ..PromptContext::default() };
        named_for_model(Arc::new(context), &document).path.clone()
    }

    #[test]
    fn the_model_reads_the_name_of_a_file() {
        assert_eq!(named("/p/src/a b.py", "python", "src/a b.py"), "src/a b.py");
        assert_eq!(named("/p/rates.ipynb", "python", "rates.ipynb"), "rates.py");
        assert_eq!(named("/p/rates.ipynb", "klingon", "rates.ipynb"), "rates.ipynb");
        let past = "git:/p/a%20b.py?%7B%22ref%22:%22HEAD%22%7D";
        assert_eq!(named(past, "python", "a%20b.py?%7B%22ref%22:%22HEAD%22%7D"), "a b.py");
        assert_eq!(
            named("untitled:Untitled-1", "python", "untitled:Untitled-1"),
            "Untitled-1.python"
        );
        assert_eq!(named("vscode-vfs://github/o/x.ipynb", "r", "x.ipynb"), "x.r");
    }
}
