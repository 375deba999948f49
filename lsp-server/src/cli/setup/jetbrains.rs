//! The template for LSP4IJ, by which JetBrains' editors start `hone lsp`. A template is a folder
//! with `template.json` and a page of instructions.

use super::file::SettingsFile;
use super::recipe::Editor;
use crate::cli::confirm::confirmed;
use crate::cli::surroundings::Surroundings;
use anyhow::{Result, ensure};
use std::io::IsTerminal;
use std::path::Path;

const INSTRUCTIONS: &str = include_str!("jetbrains/README.md");

/// The command in the template, which the user's own program takes the place of.
const COMMANDS: [&str; 2] = [r#""sh -c \"hone lsp\"""#, r#""hone.exe lsp""#];

/// Writes the template into a folder, or tells what to do with it.
pub fn run(around: &Surroundings, folder: Option<&Path>, yes: bool) -> Result<()> {
    let Some(folder) = folder else {
        tell!("`hone setup jetbrains FOLDER` makes the folder that this is about:");
        return emit!("{}", INSTRUCTIONS.trim_end());
    };
    let folder = std::path::absolute(folder)?;
    for (name, text) in
        [("template.json", template(&around.program)), ("README.md", INSTRUCTIONS.into())]
    {
        let path = folder.join(name);
        let file = SettingsFile::read(&path)?;
        if file.text() == text {
            continue;
        }
        if !file.text().is_empty() && !yes {
            let is_asked = std::io::stdin().is_terminal();
            ensure!(is_asked, "nothing was written: {} differs; say --yes", path.display());
            let is_wanted = confirmed(&format!("Replace {}?", path.display()))?;
            ensure!(is_wanted, "nothing was written");
        }
        file.replace(&text)?;
    }
    say!("the template is in {}; its README.md says what to do with it", folder.display())
}

/// The template with this program as its command, because an editor that is started from the
/// desktop need not have the shell's PATH. A path that would need quotes is left to PATH.
fn template(program: &Path) -> String {
    let shipped = Editor::Jetbrains.recipe(Editor::Jetbrains.form());
    let is_plain = |c: char| c.is_alphanumeric() || "/\\:._-".contains(c);
    let Some(program) = program.to_str().filter(|path| path.chars().all(is_plain)) else {
        return shipped.to_owned();
    };
    let command = format!("\"{} lsp\"", program.replace('\\', "\\\\"));
    COMMANDS.iter().fold(shipped.to_owned(), |text, own| text.replace(own, &command))
}

#[cfg(test)]
mod tests {
    use super::*;
    use completion::languages;
    use serde_json::Value;
    use std::collections::HashSet;

    #[test]
    fn the_template_has_what_lsp4ij_reads() {
        let shipped = Editor::Jetbrains.recipe(Editor::Jetbrains.form());
        let parsed: Value = serde_json::from_str(shipped).unwrap();
        assert_eq!(parsed["programArgs"]["default"], "sh -c \"hone lsp\"");
        let own: Value = serde_json::from_str(&template(Path::new("/opt/hone/bin/hone"))).unwrap();
        for system in ["default", "windows"] {
            assert_eq!(own["programArgs"][system], "/opt/hone/bin/hone lsp");
        }
        assert_eq!(template(Path::new("/home/a b/hone")), shipped);
        let mappings = parsed["fileTypeMappings"].as_array().unwrap();
        assert!(mappings.len() >= 40, "{}", mappings.len());
        let mut patterns = HashSet::new();
        for mapping in mappings {
            let language = mapping["languageId"].as_str().unwrap();
            for pattern in mapping["fileType"]["patterns"].as_array().unwrap() {
                let pattern = pattern.as_str().unwrap();
                assert!(patterns.insert(pattern), "{pattern} is there twice");
                let known = pattern.strip_prefix("*.").and_then(languages::of_ending);
                assert!(known.is_none_or(|known| known == language), "{pattern}: {language}");
            }
        }
    }
}
