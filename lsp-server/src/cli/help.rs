//! The pages of `--help`: the commands stand in groups, and text keeps its paragraphs and examples
//! in every width.

use crate::cli::output;
use clap::Command;
use report::layout::Layout;

/// The widest that help becomes, as clap has it.
const COLUMNS_MAX: usize = 100;

/// The commands as `hone --help` lists them. The docs read them below headings that begin with
/// `Commands`. One that only other programs call is hidden.
const GROUPS: [(&str, &[&str]); 5] = [
    ("Commands for every day", &["status", "why", "report", "pause", "resume", "forget"]),
    (
        "Commands to set up",
        &["model", "setup", "config", "doctor", "restart", "stop", "completions"],
    ),
    ("Commands for what is learned", &["learn", "adapter", "rehearse", "team"]),
    ("Commands to look inside", &["events", "gate"]),
    ("Commands for editors and services", &["lsp", "serve", "api"]),
];

/// Lays the help of a command out, and that of all below it.
pub fn laid_out(command: Command) -> Command {
    let layout = output::layout().at_most(COLUMNS_MAX);
    let listed = listed(&command, layout);
    let template = "{about-with-newline}\n{usage-heading} {usage}\n\n";
    with_text(command, layout).help_template(format!("{template}{listed}\n\nOptions:\n{{options}}"))
}

fn listed(command: &Command, layout: Layout) -> String {
    let names = GROUPS.iter().flat_map(|(_, names)| *names).map(|name| name.len());
    let longest = names.max().unwrap_or(0);
    let groups = GROUPS.map(|(heading, names)| {
        let fields = names.iter().filter_map(|name| {
            let about = command.find_subcommand(name)?.get_about()?;
            Some((format!("  {name:longest$}"), about.to_string()))
        });
        let fields: Vec<_> = fields.collect();
        let fields = layout.fields(fields.iter().map(|(name, about)| (name.as_str(), about)));
        format!("{heading}:\n{fields}")
    });
    groups.join("\n\n")
}

fn with_text(command: Command, layout: Layout) -> Command {
    let command = match command.get_long_about().map(ToString::to_string) {
        Some(text) => command.long_about(layout.wrapped(&paragraphs(&text))),
        None => command,
    };
    command.mut_subcommands(|below| with_text(below, layout))
}

/// Joins the lines of each paragraph, as they stand in the code. An indented line is an example and
/// stays as it is.
fn paragraphs(text: &str) -> String {
    let mut joined = String::new();
    let mut before = "";
    for line in text.lines() {
        let is_text = |line: &str| !line.is_empty() && !line.starts_with(' ');
        if !joined.is_empty() {
            joined.push(if is_text(before) && is_text(line) { ' ' } else { '\n' });
        }
        joined.push_str(line);
        before = line;
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Cli;
    use clap::CommandFactory;
    use report::testing::assert_fits;

    #[test]
    fn every_command_that_is_not_hidden_stands_in_one_group() {
        let command = Cli::command();
        let shown = command.get_subcommands().filter(|below| !below.is_hide_set());
        let mut shown: Vec<_> = shown.map(Command::get_name).collect();
        let mut grouped: Vec<_> = GROUPS.iter().flat_map(|(_, names)| *names).copied().collect();
        shown.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(shown, grouped, "each needs a place in GROUPS");
    }

    fn pages(command: &mut Command) -> Vec<String> {
        let mut pages = vec![command.render_long_help().to_string()];
        for below in command.get_subcommands_mut() {
            pages.extend(self::pages(below));
        }
        pages
    }

    #[test]
    fn help_fits_and_an_example_has_a_line_of_its_own() {
        for width in [80, 100] {
            let layout = Layout::of_width(width);
            let mut command = with_text(Cli::command(), layout).term_width(width);
            let pages = pages(&mut command);
            assert!(pages.len() > 20, "{}", pages.len());
            for page in pages {
                // Clap wraps no usage, and pads the empty lines between options.
                let text = page.lines().filter(|line| !line.starts_with("Usage: "));
                let text = text.map(str::trim_end).collect::<Vec<_>>().join("\n");
                assert_fits(&text, Some(width));
                let examples = page.lines().filter(|line| line.starts_with("  hone "));
                examples.for_each(|line| assert_eq!(line.matches("hone ").count(), 1, "{page}"));
            }
        }
        for width in [40, 60] {
            assert_fits(&listed(&Cli::command(), Layout::of_width(width)), Some(width));
        }
    }

    #[test]
    fn paragraphs_are_joined_and_examples_are_not() {
        let text = "A\nb.\n\n  hone a\n  hone b\n\nC\nd.";
        assert_eq!(paragraphs(text), "A b.\n\n  hone a\n  hone b\n\nC d.");
    }
}
