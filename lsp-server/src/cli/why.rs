//! `hone why`: why the last completions and next edits ended as they did.

use crate::cli::output;
use crate::daemon::client;
use crate::daemon::handshake::Command;
use anyhow::Result;
use host::addresses::is_address;
use host::paths::Paths;
use privacy::forget_scope::names_of;
use report::layout::Layout;
use services::recent_requests::{AskedFor, RecentRequest};
use std::path::Path;

/// The number of requests that are shown unless told otherwise.
const SHOWN: usize = 8;

#[derive(clap::Args)]
pub struct WhyArgs {
    /// A file, or a line of it
    #[arg(value_name = "FILE[:LINE]")]
    place: Option<String>,
    /// Show all that are remembered, with those that another key came before, and the pauses in
    /// typing after which there was no next edit
    #[arg(long)]
    all: bool,
    /// Print one JSON array
    #[arg(long)]
    json: bool,
}

pub async fn why(home: &Paths, args: WhyArgs) -> Result<()> {
    let known = client::question::<Vec<RecentRequest>>(home, Command::Why).await?;
    if known.is_none() && !args.json {
        return say!(
            "No daemon runs, so it is not known why nothing was shown. An editor with Hone starts \
             one: open a file in it, or say `:Hone enable` in a Neovim that is open."
        );
    }
    let requests = known.unwrap_or_default();
    let place = args.place.as_deref().map(Place::of);
    let is_wanted = |request: &&RecentRequest| {
        let is_here = place.as_ref().is_none_or(|place| place.holds(request));
        is_here && (args.all || !request.is_routine())
    };
    let limit = if args.all { usize::MAX } else { SHOWN };
    let wanted: Vec<_> = requests.iter().filter(is_wanted).take(limit).collect();
    if args.json {
        emit!("{}", serde_json::to_string_pretty(&wanted)?)?;
        return Ok(());
    }
    if wanted.is_empty() {
        return say!("{}", nothing(place.as_ref(), &requests));
    }
    // The latest stands last, next to the prompt.
    let shown: Vec<_> = wanted.into_iter().rev().map(shown).collect();
    say!("{}", screen(&shown, output::layout()))
}

/// What the user asked about.
struct Place {
    /// As it was given.
    name: String,
    /// What it may be recorded as.
    names: Vec<String>,
    line: Option<u32>,
}

impl Place {
    fn of(text: &str) -> Place {
        let numbered = text.rsplit_once(':').and_then(|(file, line)| {
            line.parse().ok().filter(|_| !file.is_empty()).map(|line: u32| (file, line))
        });
        let (file, line) = numbered.map_or((text, None), |(file, line)| (file, Some(line)));
        Place { name: file.to_owned(), names: names_of(file), line }
    }

    fn holds(&self, request: &RecentRequest) -> bool {
        self.names.contains(&request.path) && self.line.is_none_or(|line| line == request.line)
    }

    /// Returns true if it is no file of this machine, and no address of an editor's either.
    fn is_missing(&self) -> bool {
        !is_address(&self.name) && !Path::new(&self.name).exists()
    }
}

/// Returns what there is to say where no request is shown.
fn nothing(place: Option<&Place>, requests: &[RecentRequest]) -> String {
    if requests.iter().any(|request| place.is_none_or(|place| place.holds(request))) {
        return "There was nothing but requests that another key came before, and pauses in typing \
                without a next edit. `hone why --all` shows them."
            .to_owned();
    }
    let Some(place) = place else {
        return "Nothing was asked since the daemon started, or since something was forgotten."
            .to_owned();
    };
    let name = printable::name(&place.name);
    match place.line {
        Some(line) if requests.iter().any(|request| place.names.contains(&request.path)) => {
            format!("Nothing was asked lately on line {line} of {name}.")
        }
        _ if place.is_missing() => {
            format!("Nothing was asked in {name}, and no such file is there. `hone why` shows all.")
        }
        _ => format!("Nothing was asked lately in {name}. `hone why` shows all files."),
    }
}

fn screen(shown: &[(String, String)], layout: Layout) -> String {
    layout.fields(shown.iter().map(|(at, why)| (at.as_str(), why)))
}

/// One request: when, and next to it where and why, and below that what to do.
fn shown(request: &RecentRequest) -> (String, String) {
    let at = i64::try_from(request.at_ms).ok().and_then(|ms| {
        jiff::Timestamp::from_millisecond(ms)
            .ok()
            .map(|at| at.to_zoned(jiff::tz::TimeZone::system()).strftime("%H:%M:%S").to_string())
    });
    let file = Path::new(&request.path).file_name().and_then(|name| name.to_str());
    let asked = match (request.asked_for, request.invoked) {
        (AskedFor::Completion, false) => "",
        (AskedFor::Completion, true) => " (invoked)",
        (AskedFor::NextEdit, false) => " (next edit)",
        (AskedFor::NextEdit, true) => " (next edit, invoked)",
    };
    let mut text = format!(
        "{}:{}{asked}  {}",
        printable::name(file.unwrap_or(&request.path)),
        request.line,
        printable::name(&request.why.sentence()),
    );
    if let Some(remedy) = request.why.remedy() {
        text.push_str(&format!("\nTo change it: {remedy}"));
    }
    (at.unwrap_or_default(), text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use services::reason::Reason;

    fn request(path: &str, line: u32, why: Reason) -> RecentRequest {
        RecentRequest {
            asked_for: AskedFor::Completion,
            at_ms: 0,
            path: path.into(),
            line,
            invoked: false,
            took_ms: 3,
            why,
        }
    }

    #[test]
    fn a_place_is_a_file_or_a_line_of_it() {
        let of_file = request("/p/a.rs", 12, Reason::Shown);
        assert!(Place::of("/p/a.rs").holds(&of_file));
        assert!(Place::of("/p/a.rs:12").holds(&of_file));
        assert!(!Place::of("/p/a.rs:13").holds(&of_file));
        assert!(!Place::of("/p/b.rs").holds(&of_file));
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir(root.join("sub")).unwrap();
        std::fs::write(root.join("a.rs"), "").unwrap();
        let of_file = request(&root.join("a.rs").display().to_string(), 12, Reason::Shown);
        let roundabout = root.join("sub/../a.rs:12").display().to_string();
        assert!(Place::of(&roundabout).holds(&of_file));
        let untitled = request("untitled:Untitled-1", 3, Reason::Shown);
        assert!(Place::of("untitled:Untitled-1").holds(&untitled));
    }

    #[test]
    fn where_nothing_is_shown_it_says_why_and_names_what_shows_more() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = file.path().canonicalize().unwrap().display().to_string();
        let said = |place: &str, requests: &[RecentRequest]| {
            nothing(Some(Place::of(place)).filter(|_| !place.is_empty()).as_ref(), requests)
        };
        assert!(said("", &[]).ends_with("or since something was forgotten."));
        let routine = [request(&path, 3, Reason::Superseded)];
        assert!(said("", &routine).contains("--all") && said(&path, &routine).contains("--all"));
        assert!(said(&format!("{path}:7"), &routine).contains("lately on line 7 of"));
        assert!(said(&path, &[]).contains("lately in"));
        assert!(said("untitled:Untitled-1", &[]).contains("lately in"));
        for place in ["/nowhere/a.py", "/nowhere/a.py:7"] {
            let told = said(place, &routine);
            assert!(told.contains("in /nowhere/a.py, and no such file is there"), "{told}");
        }
    }

    #[test]
    fn a_request_says_where_why_and_what_to_do() {
        let reason = Reason::LanguageOff { language: "python".into() };
        let (_, text) = shown(&request("/p/a.py", 7, reason));
        assert!(text.contains("a.py:7") && text.contains("switched off"), "{text}");
        assert!(text.contains("hone config set completion.languages.python true"), "{text}");
        assert!(!text.contains("/p/"), "{text}");
        let forged = "/p/a.py:1  An offer was shown.\n12:00:00 b.py";
        let (_, text) = shown(&request(forged, 7, Reason::Shown));
        assert!(!text.contains('\n') && text.contains(r"shown.\u000a12:00:00 b.py:7"), "{text}");
        let by_key = request("/p/a.py", 7, Reason::NothingAlike);
        let by_key = RecentRequest { asked_for: AskedFor::NextEdit, invoked: true, ..by_key };
        assert!(shown(&by_key).1.contains("a.py:7 (next edit, invoked)  You have not"));
    }
}
