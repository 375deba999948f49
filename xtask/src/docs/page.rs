//! What one document links to, and what others may link to in it.

use pulldown_cmark::{BrokenLink, CowStr, Event, LinkType, Options, Parser, Tag, TagEnd};
use std::collections::{HashMap, HashSet};

#[derive(Debug, Default)]
pub struct Page {
    pub links: Vec<Link>,
    /// What stands behind the `#` of a link to a place in this page.
    pub anchors: HashSet<String>,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Link {
    pub to: String,
    /// From 1.
    pub line: usize,
}

/// Reads Markdown. A reference without a definition, `[text][name]`, becomes a link to
/// `[name]`, which is no file.
pub fn of_markdown(text: &str) -> Page {
    let mut page = Page::default();
    let mut taken = HashMap::new();
    let mut heading: Option<(Option<String>, String)> = None;
    let mut undefined = |link: BrokenLink| match link.link_type {
        LinkType::Reference | LinkType::Collapsed => {
            Some((CowStr::from(format!("[{}]", link.reference)), CowStr::from("")))
        }
        _ => None,
    };
    let parser = Parser::new_with_broken_link_callback(text, options(), Some(&mut undefined));
    for (event, range) in parser.into_offset_iter() {
        match event {
            Event::Start(Tag::Heading { id, .. }) => {
                heading = Some((id.map(|id| id.to_string()), String::new()));
            }
            Event::End(TagEnd::Heading(_)) => {
                let (id, words) = heading.take().unwrap_or_default();
                page.anchors.insert(unique(id.unwrap_or_else(|| slug(&words)), &mut taken));
            }
            Event::Start(Tag::Link { link_type: LinkType::Email, .. }) => {}
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                page.links.push(Link { to: dest_url.to_string(), line: line(text, range.start) });
            }
            Event::Html(html) | Event::InlineHtml(html) => {
                page.add_html(&html, line(text, range.start));
            }
            Event::Text(words) | Event::Code(words) => {
                if let Some((_, heading)) = &mut heading {
                    heading.push_str(&words);
                }
            }
            _ => {}
        }
    }
    page
}

pub fn of_html(text: &str) -> Page {
    let mut page = Page::default();
    for (at, text) in text.lines().enumerate() {
        page.add_html(text, at + 1);
    }
    page
}

fn options() -> Options {
    Options::ENABLE_TABLES
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_HEADING_ATTRIBUTES
}

fn line(text: &str, offset: usize) -> usize {
    text[..offset].matches('\n').count() + 1
}

/// The anchor of a heading, as GitHub and mdBook make it.
fn slug(words: &str) -> String {
    let kept = words.trim().to_lowercase();
    let kept = kept.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// The second heading of the same words is `words-1`.
fn unique(slug: String, taken: &mut HashMap<String, usize>) -> String {
    let count = taken.entry(slug.clone()).or_default();
    *count += 1;
    if *count == 1 { slug } else { format!("{slug}-{}", *count - 1) }
}

impl Page {
    fn add_html(&mut self, html: &str, line: usize) {
        for name in ["href", "src"] {
            let links = attributes(html, name);
            self.links.extend(links.map(|to| Link { to: to.replace("&amp;", "&"), line }));
        }
        for name in ["id", "name"] {
            self.anchors.extend(attributes(html, name).map(str::to_owned));
        }
    }
}

/// The values of every ` name="…"`.
fn attributes<'a>(html: &'a str, name: &str) -> impl Iterator<Item = &'a str> {
    let begin = format!(" {name}=\"");
    let parts: Vec<&str> = html.split(begin.as_str()).skip(1).collect();
    parts.into_iter().filter_map(|part| part.split('"').next())
}

/// Lines that are longer than `limit` characters and could be broken: those of tables, of
/// code and of HTML are left out, and what a link leads to does not count.
pub fn long_lines(text: &str, limit: usize) -> Vec<usize> {
    let mut exempt: HashSet<usize> = HashSet::new();
    for (event, range) in Parser::new_ext(text, options()).into_offset_iter() {
        if matches!(event, Event::Start(Tag::CodeBlock(_) | Tag::Table(_) | Tag::HtmlBlock)) {
            exempt.extend(line(text, range.start)..=line(text, range.end.saturating_sub(1)));
        }
    }
    let is_long = |(at, words): &(usize, &str)| {
        !exempt.contains(at) && !is_definition(words) && without_targets(words) > limit
    };
    let lines = text.lines().enumerate().map(|(at, words)| (at + 1, words));
    lines.filter(is_long).map(|(at, _)| at).collect()
}

/// `[name]: where it leads`
fn is_definition(line: &str) -> bool {
    line.starts_with('[') && line.split_once("]:").is_some_and(|(name, _)| !name.contains(' '))
}

/// The characters of a line, less what stands between `](` and `)`.
fn without_targets(line: &str) -> usize {
    let mut parts = line.split("](");
    let first = parts.next().map_or(0, |part| part.chars().count());
    let rest = parts.map(|part| part.split_once(')').map_or(part, |(_, rest)| rest));
    first + rest.map(|part| part.chars().count() + "]()".len()).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn anchors(text: &str) -> Vec<String> {
        let mut anchors: Vec<_> = of_markdown(text).anchors.into_iter().collect();
        anchors.sort();
        anchors
    }

    fn links(text: &str) -> Vec<(String, usize)> {
        of_markdown(text).links.into_iter().map(|link| (link.to, link.line)).collect()
    }

    #[test]
    fn headings_are_anchors_as_github_makes_them() {
        assert_eq!(anchors("# What `hone` is, in v0.1\n"), ["what-hone-is-in-v01"]);
        assert_eq!(anchors("## A\n## A\n## A\n"), ["a", "a-1", "a-2"]);
        assert_eq!(anchors("## Files (`HONE_HOME`)\n"), ["files-hone_home"]);
        assert_eq!(anchors("## A & B — c\n"), ["a--b--c"]);
        assert_eq!(anchors("## Short {#own}\n\n<a id=\"here\"></a>\n"), ["here", "own"]);
    }

    #[test]
    fn links_are_found_in_text_tables_and_html_but_not_in_code() {
        let text = "\
[a](a.md) and ![b](b.png)

| t |
|---|
| [c](c.md#d) |

<p><img src=\"e.svg\" alt=\"\"> <a href=\"f.md\">f</a></p>

`[no](no.md)`

```
[no](no.md)
```

[named][g]

[g]: g.md
";
        let expected =
            [("a.md", 1), ("b.png", 1), ("c.md#d", 5), ("f.md", 7), ("e.svg", 7), ("g.md", 15)];
        assert_eq!(links(text), expected.map(|(to, line)| (to.to_owned(), line)));
    }

    #[test]
    fn a_reference_without_a_definition_is_a_link_to_nowhere() {
        assert_eq!(links("[text][gone]\n"), [("[gone]".to_owned(), 1)]);
        assert_eq!(links("a list [of, things] and [x]\n"), []);
    }

    #[test]
    fn only_lines_that_could_be_broken_are_long() {
        let text = "\
eleven char
ten chars.
a [b](a/long/link) cd

| a | a very long cell |
|---|---|

```
a very long line of code
```

[name]: a/very/long/link
";
        assert_eq!(long_lines(text, 10), [1]);
        assert_eq!(long_lines(text, 9), [1, 2, 3]);
    }
}
