//! Reports panics without their messages. A message may hold code: Rust's own message on a text
//! that is cut within a character quotes the text.

use std::io::Write;
use std::panic::Location;

/// Makes every panic of this process report its place and its thread alone, on stderr.
pub fn report_places_only() {
    std::panic::set_hook(Box::new(|panic| {
        let thread = std::thread::current();
        // Nobody may read stderr any more.
        let _ = writeln!(std::io::stderr(), "{}", line(panic.location(), thread.name()));
    }));
}

fn line(place: Option<&Location<'_>>, thread: Option<&str>) -> String {
    let thread = thread.unwrap_or("without a name");
    let place = place.map_or_else(|| "an unknown place".to_owned(), Location::to_string);
    format!("panic at {place}, thread {thread}; its message may hold code and is left out")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// Set in the process that panics.
    const PANICS: &str = "HONE_TEST_PANICS";

    /// The process panics on a text that is cut within a character, whose message quotes the text.
    #[test]
    fn a_panic_reports_its_place_and_nothing_of_its_message() {
        const NAME: &str = "panics::tests::a_panic_reports_its_place_and_nothing_of_its_message";
        if std::env::var_os(PANICS).is_some() {
            report_places_only();
            let text = "let canary = \"é\";".to_owned();
            let cut = text.find('é').unwrap() + 1;
            drop(text[..cut].to_owned());
            return;
        }
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", NAME, "--nocapture"]).env(PANICS, "1").env("RUST_BACKTRACE", "1");
        let output = child.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned()
            + &String::from_utf8_lossy(&output.stdout);
        assert!(!output.status.success(), "{said}");
        assert!(said.contains("panics.rs:") && said.contains("thread "), "{said}");
        assert!(!said.contains("canary"), "{said}");
    }
}
