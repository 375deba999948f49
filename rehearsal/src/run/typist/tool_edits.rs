//! The edits of tools that are in the open file and are to be undone.

/// What the tools have done to the open file and have not undone.
#[derive(Default)]
pub(super) struct ToolEdits {
    /// Lines at the top of the file that are no part of it.
    pub imports: usize,
    pub import_is_due: bool,
    /// Lines that were indented anew, as they were.
    pub indented: Vec<(usize, String)>,
    pub final_newline: bool,
    /// A line that ends in blanks.
    pub trailing: Option<usize>,
    pub leaves_blanks: bool,
    /// The line at whose end a second cursor has typed something.
    pub far: Option<usize>,
}
