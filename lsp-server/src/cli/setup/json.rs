//! Settings in JSON with comments, as VS Code and Zed have them. All but what is set stays as it is
//! written: comments, order, indentation and commas.

use super::Unsafe;
use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstNode, CstObject, CstRootNode};

/// Returns the settings with these members, which are those of an object without its braces.
pub fn with_members(text: &str, members: &str) -> Result<String, Unsafe> {
    let not_json = |error: &dyn std::fmt::Display| Unsafe(format!("it cannot be read ({error})"));
    let root = CstRootNode::parse(text, &options()).map_err(|error| not_json(&error))?;
    let wanted = CstRootNode::parse(&format!("{{{members}}}"), &options());
    let wanted = wanted.ok().and_then(|wanted| wanted.object_value());
    let wanted = wanted.ok_or_else(|| Unsafe("the recipe is no JSON".into()))?;
    let settings = root.object_value_or_create();
    let settings = settings.ok_or_else(|| Unsafe("it is no object".into()))?;
    let comments = comments(&root.clone().into());
    set(&settings, &wanted)?;
    let changed = root.to_string();
    // What comes out is read again, because it is somebody's own file.
    let again = CstRootNode::parse(&changed, &options()).map_err(|error| not_json(&error))?;
    let holds = again.object_value().is_some_and(|settings| holds(&settings, &wanted));
    if !holds || self::comments(&again.into()) != comments {
        return Err(Unsafe("it would lose a comment".into()));
    }
    Ok(changed)
}

fn options() -> ParseOptions {
    ParseOptions {
        allow_comments: true,
        allow_loose_object_property_names: false,
        allow_trailing_commas: true,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    }
}

fn set(settings: &CstObject, wanted: &CstObject) -> Result<(), Unsafe> {
    for member in wanted.properties() {
        let (Some(name), Some(value)) = (member.decoded_name(), member.value()) else { continue };
        let of_name =
            |one: &jsonc_parser::cst::CstObjectProp| one.decoded_name() == Some(name.clone());
        if settings.properties().iter().filter(|one| of_name(one)).count() > 1 {
            return Err(Unsafe(format!("it has `{name}` twice")));
        }
        let Some(there) = settings.get(&name) else {
            settings.append(&name, input(&value));
            continue;
        };
        match (there.object_value(), value.as_object()) {
            (Some(there), Some(wanted)) => set(&there, &wanted)?,
            (None, None) if there.value().is_some_and(|there| is_same(&there, &value)) => {}
            _ => there.set_value(input(&value)),
        }
    }
    Ok(())
}

/// Returns true if the settings have all that is wanted.
fn holds(settings: &CstObject, wanted: &CstObject) -> bool {
    wanted.properties().iter().all(|member| {
        let (Some(name), Some(value)) = (member.decoded_name(), member.value()) else {
            return false;
        };
        let there = settings.get(&name).and_then(|there| there.value());
        there.is_some_and(|there| match (there.as_object(), value.as_object()) {
            (Some(there), Some(wanted)) => holds(&there, &wanted),
            _ => is_same(&there, &value),
        })
    })
}

fn is_same(one: &CstNode, other: &CstNode) -> bool {
    one.to_string() == other.to_string()
}

/// A value of the recipe: an object, a text or a number.
fn input(node: &CstNode) -> CstInputValue {
    if let Some(object) = node.as_object() {
        let members = object
            .properties()
            .into_iter()
            .filter_map(|member| Some((member.decoded_name()?, input(&member.value()?))));
        return CstInputValue::Object(members.collect());
    }
    match node.as_string_lit().and_then(|text| text.decoded_value().ok()) {
        Some(text) => CstInputValue::String(text),
        None => CstInputValue::Number(node.to_string()),
    }
}

/// The comments of a text in their order.
fn comments(node: &CstNode) -> Vec<String> {
    match node.as_comment() {
        Some(comment) => vec![comment.raw_value()],
        None => node.children().iter().flat_map(comments).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ZED: &str = include_str!("recipes/zed.json");

    #[test]
    fn what_is_written_in_settings_stays_as_it_is() {
        let zed = "// Zed settings\n{\n  // large, for me\n  \"ui_font_size\": 18, /* px */\n  \
                   \"edit_predictions\": {\n    \"mode\": \"subtle\", // by key\n    \"provider\": \
                   \"zed\",\n  },\n  // the last word\n}\n";
        let changed = with_members(zed, ZED).unwrap();
        for line in zed.lines().filter(|line| !line.contains("\"provider\"")) {
            assert!(changed.lines().any(|own| own == line), "{line}: {changed}");
        }
        assert!(changed.contains("\"provider\": \"open_ai_compatible_api\""), "{changed}");
        assert!(changed.contains("/t/TOKEN/v1/completions"), "{changed}");
        assert_eq!(with_members(&changed, ZED).unwrap(), changed, "once is enough");
        let code = "{\r\n\t\"editor.fontSize\": 14\r\n}\r\n";
        let changed = with_members(code, "\"hone.path\": \"/x\"").unwrap();
        assert_eq!(changed, "{\r\n\t\"editor.fontSize\": 14,\r\n\t\"hone.path\": \"/x\"\r\n}\r\n");
        for none in ["", "\n", "{}", "// nothing yet\n"] {
            let changed = with_members(none, "\"hone.path\": \"/x\"").unwrap();
            assert!(changed.contains("\"hone.path\": \"/x\""), "{none}: {changed}");
            assert!(none.trim_matches(['{', '}', '\n']).is_empty() || changed.starts_with("//"));
        }
    }

    #[test]
    fn settings_that_cannot_be_changed_safely_are_left_alone() {
        let why = |text: &str| with_members(text, ZED).unwrap_err().to_string();
        assert!(why("{ \"a\": 1").contains("cannot be read"));
        assert!(why("{ 'a': 1 }").contains("cannot be read"));
        assert!(why("[1]").contains("no object"));
        assert!(why("{ \"edit_predictions\": {}, \"edit_predictions\": {} }").contains("twice"));
        let lost = "{ \"edit_predictions\": [ /* mine */ 1 ] }";
        assert!(why(lost).contains("lose a comment"));
    }
}
