//! What is computed ahead: while an offer is read, the engine computes the answer to the request
//! that comes once it is accepted, and for a likely offer that on the next line too. So the next
//! offer stands at once. Where the model ends a line, the next one is computed in any case.

use super::State;
use crate::request::{CursorContext, PendingRequest, Trigger, stop_rule};
use completion::postprocess::NearbyText;
use engine::Request;
use feedback::event::Decision;
use offers::Offer;
use rand::Rng;
use ropey::Rope;
use services::Services;
use services::reason::Reason;
use services::settings::Current;

/// P(accepted) from which on the next line is computed while an offer is read. It takes as long as
/// the offer did, and for the others it would be computed for nobody too often. What stands behind
/// an offer takes little more than one pass, and is computed for each.
const PROBABILITY_MIN: f32 = 0.3;

/// Lines above the cursor from which the width of an indentation is learned.
const LINES_ABOVE: usize = 100;

/// The indentation of a text that has none.
const INDENTATION: &str = "    ";

/// Ends of a line behind which editors indent the next one more.
const OPENING: &[char] = &['{', '(', '[', ':'];

impl State {
    /// Has the requests computed that come once this offer is accepted.
    pub(super) fn follow_offer(
        &self,
        services: &Services,
        asked: &PendingRequest,
        offer: &Offer,
        decision: &Decision,
    ) {
        let place = &asked.context;
        if place.entry.is_some() {
            return;
        }
        let mut text = place.text.clone();
        text.insert(place.cursor, &offer.text);
        let behind = at(place, text, place.cursor + offer.text.chars().count());
        let is_likely =
            decision.gate.as_ref().is_some_and(|gate| gate.probability >= PROBABILITY_MIN);
        let next = is_likely.then(|| next_line(&behind));
        let places = [behind].into_iter().chain(next).collect();
        self.compute_ahead(services, places, &asked.settings);
    }

    /// Has the request of the next line computed, where the model ends this one.
    pub(super) fn follow_line(&self, services: &Services, asked: &PendingRequest, reason: &Reason) {
        let place = &asked.context;
        let is_written = !place.around.line_before.trim().is_empty();
        if is_written && *reason == Reason::NothingToAdd && place.entry.is_none() {
            self.compute_ahead(services, vec![next_line(place)], &asked.settings);
        }
    }

    fn compute_ahead(&self, services: &Services, places: Vec<CursorContext>, config: &Current) {
        let is_line_free = |place: &CursorContext| place.around.rest_of_line.trim().is_empty();
        // A rehearsal's clock does not advance, so nothing is computed ahead.
        if !services.clock.passes() || !places.iter().all(is_line_free) {
            return;
        }
        let numbered = (self.asked..).zip(&places);
        let requests: Vec<Request> = numbered
            .map_while(|(asked, place)| self.likely(services, place, asked, config))
            .collect();
        if !requests.is_empty() {
            services.engine.ahead(requests);
        }
    }

    /// The request that an editor sends at this place, before which `asked` others went to the
    /// engine.
    fn likely(
        &self,
        services: &Services,
        place: &CursorContext,
        asked: u64,
        config: &Current,
    ) -> Option<Request> {
        if self.notebooks.is_cell(&place.uri) {
            return None;
        }
        let window = config.lab.window();
        let prompt = self.prompts.ahead(&place.uri, &place.text, place.cursor, window)?;
        let draw = place.draws(asked).random();
        let (adapter, _) = services.adapters.draw_arm(draw, config.lab.trial);
        let trigger = Trigger::Automatic;
        let rule = stop_rule(&place.text, place.cursor, &place.language, trigger, config);
        Some(place.request(prompt, adapter, rule, trigger, config))
    }
}

/// The same document with another text and another cursor.
fn at(place: &CursorContext, text: Rope, cursor: usize) -> CursorContext {
    CursorContext {
        uri: place.uri.clone(),
        path: place.path.clone(),
        language: place.language.clone(),
        around: NearbyText::of(&text, cursor),
        read: (text.clone(), cursor),
        text,
        cursor,
        position: place.position,
        entry: None,
        indentation: place.indentation.clone(),
        idle_ms: 0,
        rejects_here: 0,
    }
}

/// The place on a new line below this one, indented as editors do it.
fn next_line(place: &CursorContext) -> CursorContext {
    let line = &place.around.line_before;
    let mut new = if place.around.has_crlf { "\r\n" } else { "\n" }.to_owned();
    new.push_str(blanks(line));
    if line.trim_end().ends_with(OPENING) {
        new.push_str(&indentation(&place.text, place.cursor));
    }
    let mut text = place.text.clone();
    text.insert(place.cursor, &new);
    at(place, text, place.cursor + new.chars().count())
}

/// The blanks at the start of a line.
fn blanks(line: &str) -> &str {
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}

/// One step of indentation: the least that a line above the cursor has.
fn indentation(text: &Rope, cursor: usize) -> String {
    let last = text.char_to_line(cursor);
    let above = (last.saturating_sub(LINES_ABOVE)..last).filter_map(|line| text.get_line(line));
    let all = above.filter_map(|line| {
        let line: String = line.chars().take_while(|c| matches!(c, ' ' | '\t')).collect();
        (!line.is_empty()).then_some(line)
    });
    let least = all.min_by_key(String::len).unwrap_or_else(|| INDENTATION.to_owned());
    if least.starts_with('\t') { "\t".to_owned() } else { least }
}

#[cfg(test)]
mod tests {
    use super::*;
    use completion::document::Position;

    /// The text of the next line's place, with `|` at the cursor.
    fn below(marked: &str) -> String {
        let cursor = marked.chars().position(|c| c == '|').unwrap();
        let text = Rope::from_str(&marked.replacen('|', "", 1));
        let place = CursorContext {
            uri: "file:///a".into(),
            path: "/a".into(),
            language: "rust".into(),
            around: NearbyText::of(&text, cursor),
            read: (text.clone(), cursor),
            text,
            cursor,
            position: Position { line: 0, column: 0 },
            entry: None,
            indentation: None,
            idle_ms: 0,
            rejects_here: 0,
        };
        let next = next_line(&place);
        let mut text = next.text.to_string();
        text.insert(next.cursor, '|');
        text
    }

    #[test]
    fn the_next_line_is_indented_as_editors_do_it() {
        assert_eq!(below("a\n  b|\nc"), "a\n  b\n  |\nc");
        assert_eq!(below("a\n  b:|"), "a\n  b:\n      |", "nothing above shows the width");
        assert_eq!(below("a {\n  b {|"), "a {\n  b {\n      |");
        assert_eq!(below("a {\n  b\n  c {|"), "a {\n  b\n  c {\n    |");
        assert_eq!(below("a {\n\tb\n\tc {|"), "a {\n\tb\n\tc {\n\t\t|");
        assert_eq!(below("a\r\n  b|\r\n"), "a\r\n  b\r\n  |\r\n");
    }
}
