//! Reads the candidates for an editor's next edit that people rated.

use anyhow::{Context, Result};
use rehearsal::recording::replacements;
use serde::Deserialize;
use serde_json::Value;
use std::path::Path;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Score {
    /// People called it bad.
    Bad,
    /// They called it acceptable.
    Valid,
    /// It is what they wanted next.
    NextEdit,
}

impl Score {
    pub fn name(self) -> &'static str {
        match self {
            Score::NextEdit => "wanted",
            Score::Valid => "acceptable",
            Score::Bad => "bad",
        }
    }
}

/// What the server offers first: the file that it changes, the text of that, and the text that it
/// leads to.
pub struct Offered {
    pub path: String,
    pub before: String,
    pub after: String,
}

/// The candidates that people rated.
#[derive(Debug, Deserialize)]
pub struct Rated {
    edits: Vec<Candidate>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate {
    document_uri: String,
    /// A list of `[start, end, text]` as in recordings. Null stands for no edit.
    #[serde(default)]
    edit: Value,
    score_category: Score,
}

impl Rated {
    pub fn read(folder: &Path) -> Result<Rated> {
        let path = folder.join("scoredEdits.json");
        let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        serde_json::from_str(&text).with_context(|| path.display().to_string())
    }

    /// Returns how people rated what leads to the text of an offer. Where two candidates lead
    /// there, the worse rating counts.
    pub fn score_of(&self, offered: &Offered) -> Option<Score> {
        let leads_there = |candidate: &&Candidate| {
            candidate.document_uri.ends_with(&offered.path)
                && replacements(&offered.before, &candidate.edit).is_ok_and(|edit| {
                    let mut text = offered.before.clone();
                    edit.iter().for_each(|one| text.replace_range(one.range.clone(), &one.text));
                    is_same(&text, &offered.after)
                })
        };
        self.edits.iter().filter(leads_there).map(|candidate| candidate.score_category).min()
    }
}

/// Returns true if two texts differ in nothing but the sort of their line breaks, which candidates
/// of models have in one way and files in another.
fn is_same(a: &str, b: &str) -> bool {
    a.replace("\r\n", "\n") == b.replace("\r\n", "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Made up, in the form of the rated candidates.
    const RATED: &str = r#"{"edits": [
        {"documentUri": "file:///r/src/shop.ts", "edit": null,
         "scoreCategory": "valid", "score": 0},
        {"documentUri": "file:///r/src/shop.ts", "edit": [[26, 30, "basket"]],
         "scoreCategory": "nextEdit", "score": 0},
        {"documentUri": "file:///r/src/shop.ts", "edit": [[22, 22, "re"]],
         "scoreCategory": "bad", "score": 0},
        {"documentUri": "file:///r/src/shop.ts", "edit": [[0, 0, "\n"]],
         "scoreCategory": "valid", "score": 0}
    ]}"#;

    #[test]
    fn an_offer_is_rated_by_the_text_that_it_leads_to() {
        let rated: Rated = serde_json::from_str(RATED).unwrap();
        let head = "// 🙂\nlet basket = 1;\n";
        let before = format!("{head}use(cart);\n");
        let score = |after: &str| {
            let (before, after) = (before.clone(), after.to_owned());
            let offered = Offered { path: "src/shop.ts".into(), before, after };
            rated.score_of(&offered).map(Score::name)
        };
        assert_eq!(score(&format!("{head}use(basket);\n")), Some("wanted"));
        assert_eq!(score(&format!("{head}use(basket);\n").replace('\n', "\r\n")), Some("wanted"));
        assert_eq!(score(&format!("{head}reuse(cart);\n")), Some("bad"));
        assert_eq!(score(&format!("\n{head}use(cart);\n")), Some("acceptable"));
        assert_eq!(score(&format!("{head}use(x);\n")), None, "nobody has rated it");
    }
}
