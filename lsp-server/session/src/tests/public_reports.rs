//! Reports of the public trackers of tools of this kind, each tried here. The page
//! docs/lab/public-reports.md says what came of each.

use super::*;

const fn scripted(answers: &'static [&'static str]) -> ScriptedEngine {
    ScriptedEngine { answers, learned: None, takes: Duration::ZERO }
}

/// A session in which `|` marks the cursor of the document, with an engine that always gives these
/// answers.
async fn session_on(
    marked: &str,
    language: &str,
    answers: &'static [&'static str],
) -> (tempfile::TempDir, Arc<Session>, Position) {
    let (folder, session) = session_with(scripted(answers)).await;
    let cursor = marked.find('|').unwrap();
    let text = Rope::from_str(&marked.replacen('|', "", 1));
    let at = marked[..cursor].chars().count();
    let path = "/a.rs".into();
    let document = Document { path, language: language.into(), version: 1, text };
    let position = document.position(at, Encoding::Utf16);
    session.open(URI.into(), document);
    (folder, session, position)
}

/// What is offered at the cursor, and the line as it is once the first offer is accepted.
async fn accepted_line(marked: &str, answer: &'static [&'static str]) -> Option<String> {
    let (_folder, session, at) = session_on(marked, "javascript", answer).await;
    let offers = session.complete(URI, at, AUTOMATIC, None).await.unwrap().suggestions;
    let offer = offers.first()?.clone();
    let end = Position { column: at.column + offer.replaces, ..at };
    session.change(URI, 2, vec![(Some((offer.position, end)), offer.text)]).unwrap();
    let state = session.state.lock();
    let text = &state.documents[URI].text;
    Some(text.line(at.line as usize).to_string().trim_end_matches(['\n', '\r']).to_owned())
}

fn insert(session: &Session, at: Position, text: &str) {
    session.change(URI, 2, vec![(Some((at, at)), text.into())]).unwrap();
}

fn at(line: u32, column: u32) -> Position {
    Position { line, column }
}

fn text_of(session: &Session) -> String {
    session.state.lock().documents[URI].text.to_string()
}

/// zed-industries/zed#18278: an offer with an emoji, and what is typed of it, ended the editor.
#[tokio::test]
async fn an_offer_with_an_emoji_can_be_typed_and_accepted() {
    let answers = &["📁 of größe\";"];
    let (_folder, session, cursor) = session_on("x = \"|\n", "javascript", answers).await;
    session.complete(URI, cursor, AUTOMATIC, None).await.unwrap();
    insert(&session, cursor, "📁");
    let after = at(0, cursor.column + 2);
    let rest = session.complete(URI, after, AUTOMATIC, None).await.unwrap().suggestions;
    assert_eq!(texts(&rest), [" of größe\";"]);
    insert(&session, after, " of größe\";");
    assert_eq!(session.services.recorder.counts().accepted, 1);
}

/// zed-industries/zed#25142: a key outside of ASCII with several cursors ended the editor.
#[tokio::test]
async fn a_key_outside_of_ascii_with_several_cursors_is_followed() {
    let (_folder, session, cursor) = session_on("aº = 1\nb|\n", "text", &["º = 2"]).await;
    let offer = session.complete(URI, cursor, AUTOMATIC, None).await.unwrap().suggestions.remove(0);
    let changes = [at(1, 1), at(0, 1)].map(|at| (Some((at, at)), "º".to_owned()));
    session.change(URI, 2, changes.to_vec()).unwrap();
    assert_eq!(text_of(&session), "aºº = 1\nbº\n");
    let rest =
        session.complete(URI, at(1, 2), AUTOMATIC, None).await.unwrap().suggestions.remove(0);
    assert_eq!((rest.id, rest.text.as_str()), (offer.id, " = 2"));
}

/// zed-industries/zed#48712: a prompt that was cut within a Chinese character ended the editor.
#[tokio::test]
async fn a_long_text_of_wide_characters_is_cut_between_them() {
    let line = "同样因为信息不足，研究生复制的行要对应😀\n".repeat(2_000);
    let marked = format!("{line}讷|{line}");
    let (_folder, session, cursor) = session_on(&marked, "markdown", &["讷x"]).await;
    assert_eq!(session.complete(URI, cursor, AUTOMATIC, None).await.unwrap().suggestions.len(), 1);
    let one_line = format!("{}|{}", "讷😀".repeat(20_000), "讷".repeat(20_000));
    let (_folder, session, cursor) = session_on(&one_line, "markdown", &["x"]).await;
    session.complete(URI, cursor, AUTOMATIC, None).await.unwrap();
}

/// zed-industries/zed#52489: a line that looks like a mark of the prompt switched completions off.
#[tokio::test]
async fn marks_of_a_prompt_in_the_text_switch_nothing_off() {
    for line in ["// =======", "<<<<<<< HEAD", "// <|fim_middle|>", "<|endoftext|>", "\0"] {
        let marked = format!("{line}\nx|\n{line}\n");
        let (_folder, session, cursor) = session_on(&marked, "rust", &[" = 1;"]).await;
        let offers = session.complete(URI, cursor, AUTOMATIC, None).await.unwrap().suggestions;
        assert_eq!(texts(&offers), [" = 1;"], "{line}");
    }
}

/// zed-industries/zed#62635: line breaks alone were offered.
#[tokio::test]
async fn line_breaks_alone_are_not_offered() {
    for trigger in [AUTOMATIC, Trigger::Invoked] {
        let (_folder, session, cursor) =
            session_on("fn a() {|\n}\n", "rust", &["\n\n\n", "\r\n", "\n    \n"]).await;
        assert_eq!(session.complete(URI, cursor, trigger, None).await.unwrap().suggestions, []);
    }
}

/// zed-industries/zed#31877: of an offer that begins with a line break, the break alone could not
/// be accepted.
#[tokio::test]
async fn the_line_break_of_an_offer_can_be_accepted_alone() {
    let answers = &["\n    a();\n    b();\n}"];
    let (_folder, session, cursor) = session_on("fn f() {|\n}\n", "rust", answers).await;
    let offer =
        session.complete(URI, cursor, Trigger::Invoked, None).await.unwrap().suggestions.remove(0);
    assert_eq!(offer.text, "\n    a();\n    b();");
    insert(&session, cursor, "\n    ");
    session.partly_accepted(&offer.id, 5);
    let rest = session.complete(URI, at(1, 4), AUTOMATIC, None).await.unwrap().suggestions;
    assert_eq!(texts(&rest), ["a();\n    b();"]);
}

/// zed-industries/zed#56310: with several cursors, the offer is accepted at one of them. Where the
/// editor puts it in at all of them, it is one acceptance.
#[tokio::test]
async fn an_offer_that_is_accepted_at_several_cursors_is_accepted_once() {
    let (_folder, session, cursor) = session_on("foo\nfoo\nfoo|\n", "text", &["(bar)"]).await;
    session.complete(URI, cursor, AUTOMATIC, None).await.unwrap();
    let all = [2, 1, 0].map(|line| (Some((at(line, 3), at(line, 3))), "(bar)".to_owned()));
    session.change(URI, 2, all.to_vec()).unwrap();
    assert_eq!(text_of(&session), "foo(bar)\nfoo(bar)\nfoo(bar)\n");
    let counts = session.services.recorder.counts();
    assert_eq!((counts.accepted, counts.rejected_edit), (1, 0));
}

/// zbirenbaum/copilot.lua#235: undoing an accepted offer took what was typed before it as well.
#[tokio::test]
async fn an_offer_is_one_edit_and_undoing_it_is_seen() {
    let (_folder, session, cursor) = session_on("123|\n", "text", &[" 456"]).await;
    let offer = session.complete(URI, cursor, AUTOMATIC, None).await.unwrap().suggestions.remove(0);
    assert_eq!((offer.position, offer.replaces), (cursor, 0), "nothing that was typed is in it");
    insert(&session, cursor, &offer.text);
    session.change(URI, 3, vec![(Some((cursor, at(0, 7))), String::new())]).unwrap();
    assert_eq!(text_of(&session), "123\n");
    assert!(has_event(&session, |kind| matches!(
        kind,
        EventKind::Kept { check: feedback::event::KeptCheck::Undone, .. }
    )));
}

fn has_event(session: &Session, wanted: impl Fn(&EventKind) -> bool) -> bool {
    let mut found = false;
    let visit = &mut |event: Event| {
        found |= wanted(&event.kind);
        ControlFlow::Continue(())
    };
    session.services.recorder.log().scan(0, visit).unwrap();
    found
}

/// zbirenbaum/copilot.lua#42: the last bracket of a block was left out, because a bracket of the
/// block around it stood below.
#[tokio::test]
async fn the_bracket_of_the_offer_is_not_taken_for_the_one_below() {
    let marked = "setup({\n    cmp = {},\n    |\n})\n";
    let answers = &["panel = {\n        enabled = true,\n    },\n})"];
    let (_folder, session, cursor) = session_on(marked, "javascript", answers).await;
    let offers = session.complete(URI, cursor, Trigger::Invoked, None).await.unwrap().suggestions;
    assert_eq!(texts(&offers), ["panel = {\n        enabled = true,\n    },"]);
}

/// zbirenbaum/copilot.lua#469: each accepted word asked for a new suggestion, which was another
/// one.
#[tokio::test]
async fn after_a_word_the_rest_of_the_same_offer_follows() {
    let (_folder, session, cursor) = session_on("|\n", "text", &["one two three"]).await;
    let offer = session.complete(URI, cursor, AUTOMATIC, None).await.unwrap().suggestions.remove(0);
    let mut column = 0;
    for (word, rest) in [("one", " two three"), (" two", " three")] {
        insert(&session, at(0, column), word);
        session.partly_accepted(&offer.id, word.len() as u32);
        column += word.len() as u32;
        let next = session
            .complete(URI, at(0, column), AUTOMATIC, None)
            .await
            .unwrap()
            .suggestions
            .remove(0);
        assert_eq!((&next.id, next.text.as_str()), (&offer.id, rest));
    }
    assert_eq!(session.services.recorder.counts().total, 1, "the engine was asked once");
}

/// zbirenbaum/copilot.lua#628: a client types a blank and deletes it after accepting, to have the
/// line indented.
#[tokio::test]
async fn a_blank_that_comes_and_goes_after_accepting_is_followed() {
    let (_folder, session, cursor) = session_on("    |\n", "lua", &["call()"]).await;
    let offer = session.complete(URI, cursor, AUTOMATIC, None).await.unwrap().suggestions.remove(0);
    insert(&session, cursor, &offer.text);
    let end = at(0, 10);
    insert(&session, end, " ");
    session.change(URI, 4, vec![(Some((end, at(0, 11))), String::new())]).unwrap();
    assert_eq!(text_of(&session), "    call()\n");
    let counts = session.services.recorder.counts();
    assert_eq!((counts.accepted, counts.rejected_edit), (1, 0));
}

/// zbirenbaum/copilot.lua#190 and copilotlsp-nvim/copilot-lsp#12: a suggestion stayed on screen
/// when insert mode or the document was left. Nobody rejected it by that.
#[tokio::test]
async fn an_offer_that_was_left_with_its_mode_or_document_is_not_rejected() {
    for leave in [
        |session: &Session, id: &str| session.rejected(id, Outcome::Superseded),
        |session: &Session, _: &str| session.close(URI),
    ] {
        let (_folder, session, cursor) = session_on("x|\n", "text", &[" = 1"]).await;
        let offer =
            session.complete(URI, cursor, AUTOMATIC, None).await.unwrap().suggestions.remove(0);
        session.shown(&offer.id);
        leave(&session, &offer.id);
        session.services.clock.advance(REJECT_TIMEOUT_MS);
        session.tick();
        let counts = session.services.recorder.counts();
        assert_eq!((counts.superseded, counts.rejected_timeout), (1, 0));
    }
}

/// huggingface/llm-ls#87: the carriage return of a line was shown as `^M`.
#[tokio::test]
async fn no_carriage_return_is_offered_in_a_line() {
    let line = accepted_line("x = |\r\ny\r\n", &["f();\r\ng();\r\n"]).await;
    assert_eq!(line.as_deref(), Some("x = f();"));
}

/// codota/TabNine#102 and copilot-emacs/copilot.el#62: marks within a string were closed again.
#[tokio::test]
async fn a_bracket_within_a_string_is_closed_once() {
    let cases: [(&str, &'static [&'static str], &str); 4] = [
        ("`${|}`", &["name}`;"], "`${name}`;"),
        ("f(\"a[|]\")", &["0]\");"], "f(\"a[0]\");"),
        ("if (\"A sad smile (|\")", &["\") {"], "if (\"A sad smile (\") {"),
        ("`${f(|)}`", &["x)}`"], "`${f(x)}`"),
    ];
    for (marked, answer, right) in cases {
        let marked = format!("{marked}\n");
        assert_eq!(accepted_line(&marked, answer).await.as_deref(), Some(right), "{marked}");
    }
}

/// rcjsuen/dockerfile-language-server#244: several changes of one message were applied to the text
/// before the first of them.
#[tokio::test]
async fn the_changes_of_a_message_follow_each_other() {
    let (_folder, session, _) = session_on("FROM node|\n", "dockerfile", &["x"]).await;
    let mut changes = vec![(Some((at(0, 9), at(0, 9))), "\n".to_owned())];
    for (column, key) in "WORKDIR".chars().enumerate() {
        let place = at(1, column as u32);
        changes.push((Some((place, place)), key.to_string()));
    }
    session.change(URI, 2, changes).unwrap();
    assert_eq!(text_of(&session), "FROM node\nWORKDIR\n");
}

/// julia-vscode/LanguageServer.jl#535: what was on the disk took the place of an open document's
/// text.
#[tokio::test]
async fn a_file_that_changes_on_the_disk_leaves_the_open_document_alone() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "old\n").unwrap();
    let (_folder, session, _) = session_on("|\n", "text", &["x"]).await;
    let path = file.path().to_string_lossy().into_owned();
    let text = Rope::from_str("new\n");
    session.open(
        URI.into(),
        Document { path: path.clone(), language: "text".into(), version: 1, text },
    );
    session.look_at_imports(URI);
    assert_eq!(text_of(&session), "new\n");
}

/// rstudio/rstudio#15867: an editor opened documents without their text, and each request was an
/// error that did not say so.
#[tokio::test]
async fn a_line_that_is_not_there_is_named_with_what_to_do() {
    let (_folder, session, _) = session_on("|", "r", &["x"]).await;
    let error = session.complete(URI, at(12, 3), AUTOMATIC, None).await.unwrap_err().to_string();
    assert!(error.contains("line 12 is past the end"), "{error}");
    assert!(error.contains("out of step") && error.contains("open the file again"), "{error}");
}

/// Kilo-Org/kilocode#4546: the blank before the first word of an offer was lost.
#[tokio::test]
async fn the_blank_before_an_offer_is_part_of_it() {
    let line = accepted_line("let x|\n", &[" = 1;"]).await;
    assert_eq!(line.as_deref(), Some("let x = 1;"));
}

/// microsoft/vscode-copilot-release#12676, TabbyML/tabby#3263: behind an indentation, an offer
/// began with one blank more.
#[tokio::test]
async fn an_offer_behind_an_indentation_begins_with_its_first_word() {
    let marked = "fn f() {\n    let x = 1;\n    |\n}\n";
    let (_folder, session, cursor) = session_on(marked, "rust", &[" g(x);"]).await;
    let offer = session.complete(URI, cursor, AUTOMATIC, None).await.unwrap().suggestions.remove(0);
    assert_eq!(offer.text, "g(x);");
    session.change(URI, 2, vec![(Some((cursor, cursor)), offer.text.clone())]).unwrap();
    assert_eq!(session.services.recorder.counts().accepted, 1);
}

/// TabbyML/tabby#1266: an offer was shown while text was selected. To type over the selection is no
/// verdict on an offer behind it.
#[tokio::test]
async fn typing_over_a_selection_before_the_offer_is_no_verdict() {
    let (_folder, session, cursor) = session_on("let name|\n", "text", &[" = 1"]).await;
    let offer = session.complete(URI, cursor, AUTOMATIC, None).await.unwrap().suggestions.remove(0);
    session.shown(&offer.id);
    session.change(URI, 2, vec![(Some((at(0, 4), cursor)), "x".into())]).unwrap();
    let counts = session.services.recorder.counts();
    assert_eq!((counts.rejected_edit, counts.superseded), (0, 1));
}

/// continuedev/continue#4721: the lines behind the cursor were offered once more.
#[tokio::test]
async fn the_lines_below_are_not_offered_again() {
    let marked = "def f():\n    |\n    b()\n    c()\n";
    let answers = &["a()\n    b()\n    c()", "b()\n    c()"];
    let (_folder, session, cursor) = session_on(marked, "python", answers).await;
    let offers = session.complete(URI, cursor, Trigger::Invoked, None).await.unwrap().suggestions;
    assert_eq!(texts(&offers), ["a()"]);
}

/// ggml-org/llama.vim#16: a new request for every key that was typed as it was suggested, and
/// microsoft/vscode#146524: a request for every movement of the cursor, so that the text flickered.
#[tokio::test]
async fn asking_again_without_an_edit_gives_the_same_offer() {
    let (_folder, session, cursor) = session_on("x|\n", "text", &[" = 1"]).await;
    let first = session.complete(URI, cursor, AUTOMATIC, None).await.unwrap().suggestions;
    for _ in 0..3 {
        assert_eq!(
            session.complete(URI, cursor, AUTOMATIC, None).await.unwrap().suggestions,
            first
        );
    }
    assert_eq!(session.services.recorder.counts().total, 1);
}

/// ggml-org/llama.vim#22: with the cursor moved to the left, the suggestion stayed and stood within
/// the word.
#[tokio::test]
async fn an_offer_does_not_follow_the_cursor_to_the_left() {
    let (_folder, session, cursor) = session_on("let|\n", "text", &[" x = 1"]).await;
    let offer = session.complete(URI, cursor, AUTOMATIC, None).await.unwrap().suggestions.remove(0);
    let left = at(0, 1);
    let others = session.complete(URI, left, AUTOMATIC, None).await.unwrap().suggestions;
    assert!(others.iter().all(|other| other.id != offer.id && other.position == left));
}

/// ggml-org/llama.vim#11: accepting a word removed what stood behind the cursor.
#[tokio::test]
async fn no_more_than_closing_marks_are_replaced_behind_the_cursor() {
    let line = accepted_line("f(|, rest) // why\n", &["one(two)"]).await;
    assert_eq!(line.as_deref(), Some("f(one(two), rest) // why"));
    let line = accepted_line("x = | + y\n", &["f(1);"]).await;
    assert!(line.is_some_and(|line| line.ends_with(" + y")));
}

/// TabbyML/tabby#2380: the written form of a special token was part of what was shown.
#[tokio::test]
async fn the_written_form_of_a_special_token_is_not_shown() {
    for answer in [&["x = 1<|endoftext|>"], &["x<file_sep>y"], &["x<|fim_pad|>"]] {
        let (_folder, session, cursor) = session_on("|\n", "text", answer).await;
        let offers = session.complete(URI, cursor, AUTOMATIC, None).await.unwrap().suggestions;
        assert!(offers.iter().all(|offer| !offer.text.contains('<')), "{offers:?}");
    }
}
