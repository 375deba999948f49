//! The paths that one source file names: `use` trees, `a::b` in code, in macros and in the
//! strings of attributes. Code for tests is left out.

use proc_macro2::{Delimiter, Span, TokenStream, TokenTree};
use std::collections::HashSet;
use syn::visit::{self, Visit};
use syn::{Attribute, UseTree};

/// A path as it is written, and where.
#[derive(Debug, PartialEq)]
pub struct Path {
    /// The inline modules of the file around it.
    pub inside: Vec<String>,
    pub segments: Vec<String>,
    /// It begins with `::`.
    pub is_absolute: bool,
    pub line: usize,
}

/// What one file names.
#[derive(Default)]
pub struct Found {
    pub paths: Vec<Path>,
    /// The names that `use` brings into the file. A path that begins with one of them is
    /// counted where the `use` stands.
    pub bound: HashSet<String>,
    /// The conditions of `#[cfg(…)]` and `cfg!(…)`, each with its line.
    pub conditions: Vec<(TokenStream, usize)>,
    inside: Vec<String>,
}

pub fn of(file: &syn::File) -> Found {
    let mut found = Found::default();
    found.visit_file(file);
    found
}

/// Whether an item is compiled for tests alone: `#[cfg(test)]`, or the feature `testing`.
pub fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().filter(|attribute| attribute.path().is_ident("cfg")).any(|attribute| {
        let syn::Meta::List(list) = &attribute.meta else { return false };
        holds_test(list.tokens.clone())
    })
}

/// `not(test)` is the opposite, so what stands in a `not` does not count.
fn holds_test(condition: TokenStream) -> bool {
    let mut is_negated = false;
    for token in condition {
        match &token {
            TokenTree::Group(group) if !is_negated && holds_test(group.stream()) => return true,
            TokenTree::Ident(name) if name == "test" => return true,
            TokenTree::Literal(text) if text.to_string() == "\"testing\"" => return true,
            _ => {}
        }
        is_negated = matches!(&token, TokenTree::Ident(name) if name == "not");
    }
    false
}

/// The name, without the `r#` of one that is a keyword elsewhere.
fn plain(name: &syn::Ident) -> String {
    let name = name.to_string();
    name.strip_prefix("r#").map(str::to_owned).unwrap_or(name)
}

impl Found {
    fn add(&mut self, segments: Vec<String>, is_absolute: bool, span: Span) {
        let line = span.start().line;
        self.paths.push(Path { inside: self.inside.clone(), segments, is_absolute, line });
    }

    fn add_use(&mut self, before: &mut Vec<String>, tree: &UseTree, is_absolute: bool) {
        match tree {
            UseTree::Path(path) => {
                before.push(plain(&path.ident));
                self.add_use(before, &path.tree, is_absolute);
                before.pop();
            }
            UseTree::Group(group) => {
                group.items.iter().for_each(|tree| self.add_use(before, tree, is_absolute));
            }
            UseTree::Glob(glob) => {
                let span = glob.star_token.spans[0];
                self.add(before.clone(), is_absolute, span);
            }
            UseTree::Name(name) => {
                self.add_name(before, &plain(&name.ident), is_absolute, name.ident.span());
            }
            UseTree::Rename(rename) => {
                let span = rename.ident.span();
                self.bound.insert(plain(&rename.rename));
                self.add_segments(before, &plain(&rename.ident), is_absolute, span);
            }
        }
    }

    fn add_name(&mut self, before: &[String], name: &str, is_absolute: bool, span: Span) {
        let bound = if name == "self" { before.last().cloned() } else { Some(name.to_owned()) };
        // `use name;` binds what the name means anyway.
        if !before.is_empty() {
            self.bound.extend(bound);
        }
        self.add_segments(before, name, is_absolute, span);
    }

    fn add_segments(&mut self, before: &[String], name: &str, is_absolute: bool, span: Span) {
        let mut segments = before.to_vec();
        // The `self` of `use a::{self}` is `a`; alone it is this module.
        if name != "self" || before.is_empty() {
            segments.push(name.to_owned());
        }
        self.add(segments, is_absolute, span);
    }

    /// The paths among the tokens of a macro, which nobody has parsed.
    fn scan(&mut self, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut at = 0;
        while at < tokens.len() {
            if let [TokenTree::Ident(name), mark, TokenTree::Group(group), ..] = &tokens[at..]
                && name == "cfg"
                && is_punct(mark, '!')
            {
                self.conditions.push((group.stream(), name.span().start().line));
            }
            match &tokens[at] {
                TokenTree::Group(group) => {
                    self.scan(group.stream());
                    at += 1;
                }
                TokenTree::Ident(_) if !continues_something(&tokens, at) => {
                    at = self.scan_path(&[], &tokens, at);
                }
                _ => at += 1,
            }
        }
    }

    /// Reads the path that begins at `at`; answers the place behind it.
    fn scan_path(&mut self, before: &[String], tokens: &[TokenTree], mut at: usize) -> usize {
        let mut segments = before.to_vec();
        let span = tokens[at].span();
        let is_absolute = before.is_empty() && is_separator(tokens, at.wrapping_sub(2));
        while let Some(TokenTree::Ident(name)) = tokens.get(at) {
            segments.push(plain(name));
            at += 1;
            if !is_separator(tokens, at) {
                break;
            }
            at += 2;
        }
        match tokens.get(at) {
            // `a::{b, c::d}`
            Some(TokenTree::Group(group))
                if is_separator(tokens, at.wrapping_sub(2))
                    && group.delimiter() == Delimiter::Brace =>
            {
                let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                for part in inner.split(|token| is_punct(token, ',')) {
                    if !part.is_empty() {
                        self.scan_path(&segments, part, 0);
                    }
                }
                at += 1;
            }
            _ if segments.len() > 1 => self.add(segments, is_absolute, span),
            _ => {}
        }
        at
    }
}

fn is_punct(token: &TokenTree, c: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == c)
}

fn is_separator(tokens: &[TokenTree], at: usize) -> bool {
    let is_colon = |at: usize| tokens.get(at).is_some_and(|token| is_punct(token, ':'));
    is_colon(at) && is_colon(at.wrapping_add(1))
}

/// Whether the name at `at` is a field or a method, or the rest of `<T>::name`.
fn continues_something(tokens: &[TokenTree], at: usize) -> bool {
    let before = |n: usize| at.checked_sub(n).and_then(|at| tokens.get(at));
    if before(1).is_some_and(|token| is_punct(token, '.')) {
        return true;
    }
    at >= 3 && is_separator(tokens, at - 2) && before(3).is_some_and(|token| is_punct(token, '>'))
}

impl<'ast> Visit<'ast> for Found {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        if !is_for_tests(attributes_of(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        if module.ident == "tests" {
            return;
        }
        self.inside.push(plain(&module.ident));
        visit::visit_item_mod(self, module);
        self.inside.pop();
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        if !is_for_tests(&function.attrs) {
            visit::visit_impl_item_fn(self, function);
        }
    }

    fn visit_field(&mut self, field: &'ast syn::Field) {
        if !is_for_tests(&field.attrs) {
            visit::visit_field(self, field);
        }
    }

    fn visit_local(&mut self, local: &'ast syn::Local) {
        if !is_for_tests(&local.attrs) {
            visit::visit_local(self, local);
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.add_use(&mut vec![], &item.tree, item.leading_colon.is_some());
    }

    /// `pub(in crate::a)` names an ancestor, and imports nothing of it.
    fn visit_visibility(&mut self, _: &'ast syn::Visibility) {}

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.segments.len() > 1 {
            let segments: Vec<_> = path.segments.iter().map(|part| plain(&part.ident)).collect();
            self.add(segments, path.leading_colon.is_some(), path.segments[0].ident.span());
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, item: &'ast syn::Macro) {
        visit::visit_macro(self, item);
        if let Some(name) = item.path.get_ident().filter(|name| *name == "cfg") {
            self.conditions.push((item.tokens.clone(), name.span().start().line));
        }
        self.scan(item.tokens.clone());
    }

    /// `#[serde(with = "crate::a::b")]` calls what the string names.
    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        if let syn::Meta::List(list) = &attribute.meta {
            if list.path.is_ident("cfg") || list.path.is_ident("cfg_attr") {
                let line = attribute.pound_token.spans[0].start().line;
                self.conditions.push((list.tokens.clone(), line));
            }
            self.scan(list.tokens.clone());
            self.scan_strings(list.tokens.clone());
        }
    }
}

impl Found {
    fn scan_strings(&mut self, tokens: TokenStream) {
        for token in tokens {
            match token {
                TokenTree::Group(group) => self.scan_strings(group.stream()),
                TokenTree::Literal(literal) => {
                    let text = literal.to_string();
                    let path = syn::parse_str::<syn::Path>(text.trim_matches('"'));
                    if let Ok(path) = path
                        && path.segments.len() > 1
                    {
                        let names = path.segments.iter().map(|part| plain(&part.ident));
                        self.add(names.collect(), path.leading_colon.is_some(), literal.span());
                    }
                }
                _ => {}
            }
        }
    }
}

fn attributes_of(item: &syn::Item) -> &[Attribute] {
    use syn::Item::*;
    match item {
        Const(item) => &item.attrs,
        Enum(item) => &item.attrs,
        ExternCrate(item) => &item.attrs,
        Fn(item) => &item.attrs,
        ForeignMod(item) => &item.attrs,
        Impl(item) => &item.attrs,
        Macro(item) => &item.attrs,
        Mod(item) => &item.attrs,
        Static(item) => &item.attrs,
        Struct(item) => &item.attrs,
        Trait(item) => &item.attrs,
        TraitAlias(item) => &item.attrs,
        Type(item) => &item.attrs,
        Union(item) => &item.attrs,
        Use(item) => &item.attrs,
        _ => &[],
    }
}
