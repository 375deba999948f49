//! Reads a recording, entry by entry. A fault ends the reading, and what stands before it is kept.

use super::Recording;
use super::entry::Log;
use crate::limits;
use anyhow::{Context, Result, bail, ensure};
use serde::de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use std::cell::Cell;
use std::fmt;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

/// Reads a file.
///
/// # Errors
/// Nothing of it can be read as a recording.
pub fn file(path: &Path) -> Result<Recording> {
    let name = path.display();
    let file = File::open(path).with_context(|| format!("cannot read {name}"))?;
    let metadata = file.metadata().with_context(|| format!("cannot read {name}"))?;
    ensure!(metadata.is_file(), "cannot read {name}: it is no file");
    let bytes = metadata.len();
    ensure!(
        bytes <= limits::RECORDING_BYTES_MAX,
        "{name}: a recording may have {} MB, this one has {}",
        limits::RECORDING_BYTES_MAX >> 20,
        bytes >> 20
    );
    read(&name.to_string(), BufReader::new(file))
}

/// Reads a recording of this name.
///
/// # Errors
/// Nothing of it can be read as a recording.
pub fn read(name: &str, reader: impl Read) -> Result<Recording> {
    let line = Cell::new(1);
    let reader = CountingLines { reader, line: &line };
    let mut log = Log::default();
    let mut fault = None;
    let top = Top { log: &mut log, line: &line, fault: &mut fault };
    let end = top.deserialize(&mut serde_json::Deserializer::from_reader(reader));
    let Log { entries, is_there, .. } = log;
    let fault = match (fault, end) {
        (Some(fault), _) => Some(format!("{name}:{fault}")),
        (None, Err(error)) => {
            let what = without_place(&error);
            Some(format!("{name}:{}: entry {}: {what}", line.get(), entries + 1))
        }
        (None, Ok(())) => None,
    };
    if !is_there {
        match fault {
            Some(fault) => bail!("{fault}; it is no recording of a session"),
            None => bail!("{name}: it has no `log`, so it is no recording of a session"),
        }
    }
    let mut recording = log.recording;
    recording.fault = fault.map(|fault| format!("{fault}; what stands before it counts"));
    if recording.events.is_empty() {
        bail!("{}", recording.fault.unwrap_or_else(|| format!("{name}: nothing happens in it")));
    }
    Ok(recording)
}

/// The error without serde_json's own place. Its line is that of the reader.
fn without_place(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let text = text.split(" at line ").next().unwrap_or_default();
    match error.is_eof() {
        true => format!("the file is cut here ({text})"),
        false => text.to_owned(),
    }
}

/// Counts the lines that serde_json has read. It reads byte by byte.
struct CountingLines<'a, R> {
    reader: R,
    line: &'a Cell<usize>,
}

impl<R: Read> Read for CountingLines<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.reader.read(buffer)?;
        let breaks = buffer[..count].iter().filter(|byte| **byte == b'\n').count();
        self.line.set(self.line.get() + breaks);
        Ok(count)
    }
}

/// The object around the log.
struct Top<'a> {
    log: &'a mut Log,
    line: &'a Cell<usize>,
    /// The line, the entry and what is wrong with it.
    fault: &'a mut Option<String>,
}

impl<'de> DeserializeSeed<'de> for Top<'_> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Top<'_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter) -> fmt::Result {
        out.write_str("an object with a `log`")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Top { log, line, fault } = self;
        while let Some(key) = map.next_key::<String>()? {
            if key == "log" && !log.is_there {
                log.is_there = true;
                map.next_value_seed(Entries { log: &mut *log, line, fault: &mut *fault })?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
}

/// The entries of the log.
struct Entries<'a> {
    log: &'a mut Log,
    line: &'a Cell<usize>,
    fault: &'a mut Option<String>,
}

impl<'de> DeserializeSeed<'de> for Entries<'_> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Entries<'_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter) -> fmt::Result {
        out.write_str("a list of entries")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let Entries { log, line, fault } = self;
        while let Some(entry) = list.next_element::<Value>()? {
            let number = log.entries + 1;
            let taken = match number > limits::RECORDING_ENTRIES_MAX {
                true => Err("there are too many entries".to_owned()),
                false => log.take(number, entry),
            };
            if let Err(what) = taken {
                *fault = Some(format!("{}: entry {number}: {what}", line.get()));
                return Err(A::Error::custom("an entry cannot be read"));
            }
            log.entries = number;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::{Event, Replacement, What};

    const HEADER: &str = r#"{"kind":"header","documentType":"workspaceRecording@1.0","time":5}"#;
    const OPENED: &str = r#"{"kind":"documentEncountered","id":3,"time":9,"relativePath":"a\\b.ts"},
        {"kind":"setContent","id":3,"time":10,"content":"aé🙂\n"}"#;

    fn of(entries: &[&str]) -> Result<Recording> {
        read("day.json", format!("{{\"log\":[\n{}\n]}}", entries.join(",\n")).as_bytes())
    }

    fn changed(edit: &str) -> String {
        format!(r#"{{"kind":"changed","id":3,"time":30,"v":2,"edit":{edit}}}"#)
    }

    #[test]
    #[allow(clippy::single_range_in_vec_init, reason = "it is the one caret")]
    fn offsets_count_utf16_units_and_become_bytes() {
        let recording = of(&[
            HEADER,
            OPENED,
            &changed(r#"[[0,1,"b"],[4,4,"!"]]"#),
            r#"{"kind":"documentEvent","id":3,"time":31,
                "data":{"sourceId":"TextModel.setChangeReason","source":"snippet","v":2}}"#,
            r#"{"kind":"selectionChanged","id":3,"time":32,"selection":[[2,4]]}"#,
        ])
        .unwrap();
        assert_eq!(recording.fault, None);
        assert_eq!(recording.documents[0].path, "a/b.ts");
        let of_range = |range, text: &str| Replacement { range, text: text.into(), same: (0, 0) };
        let expected = [
            Event {
                entry: 3, at_ms: 5, what: What::Text { document: 0, text: "aé🙂\n".into() }
            },
            Event {
                entry: 4,
                at_ms: 25,
                what: What::Changed {
                    document: 0,
                    replacements: vec![of_range(7..7, "!"), of_range(0..1, "b")],
                    reason: Some("snippet".into()),
                },
            },
            Event { entry: 6, at_ms: 27, what: What::Selected { document: 0, carets: vec![3..7] } },
        ];
        assert_eq!(recording.events, expected);
    }

    #[test]
    fn what_stays_the_same_is_no_part_of_a_change() {
        let recording = of(&[HEADER, OPENED, &changed(r#"[[0,2,"axé"]]"#)]).unwrap();
        let What::Changed { replacements, .. } = &recording.events[1].what else { panic!() };
        assert_eq!(replacements[0].minimal(), (1..1, "x"));
    }

    /// A clock that goes back would be a pause of centuries, and a computer that slept one of days.
    #[test]
    fn time_never_goes_back_and_a_pause_is_bounded() {
        let caret = |time: &str| {
            format!(r#"{{"kind":"selectionChanged","id":3,"time":{time},"selection":[[0,0]]}}"#)
        };
        let recording = of(&[HEADER, OPENED, &caret("4"), &caret("7"), &caret("9e15")]).unwrap();
        let times: Vec<u64> = recording.events.iter().map(|event| event.at_ms).collect();
        assert_eq!(times, [5, 5, 8, 8 + limits::RECORDED_PAUSE_MS_MAX]);
    }

    #[test]
    fn a_fault_is_named_with_its_line_and_what_stands_before_it_is_kept() {
        let after = r#"{"kind":"focused","id":3,"time":40}"#;
        for (bad, says) in [
            (changed(r#"[[9,9,"x"]]"#).as_str(), "offset 9 is past the end"),
            (&changed(r#"[[3,3,"x"]]"#), "offset 3 is inside a character"),
            (&changed(r#"[[2,1,"x"]]"#), "ends before it begins"),
            (&changed(r#"[[0,2,"x"],[1,2,"y"]]"#), "overlap"),
            (&changed(r#"[[0,2]]"#), "`edit`"),
            (
                r#"{"kind":"selectionChanged","id":3,"time":32,"selection":[[6,6]]}"#,
                "offset 6 is past the end, which is 5",
            ),
            (r#"{"kind":"exploded","time":2}"#, "unknown kind `exploded`"),
            (r#"{"time":2}"#, "no `kind`"),
            (r#"{"kind":"focused","id":4,"time":2}"#, "document 4"),
            (r#"{"kind":"restoreContent","id":3,"time":2,"contentId":"x"}"#, "content `x`"),
            (r#"{"kind":"header","documentType":"workspaceRecording@2.0"}"#, "@2.0"),
        ] {
            let recording = of(&[HEADER, OPENED, after, bad, after]).unwrap();
            let fault = recording.fault.unwrap();
            assert!(fault.starts_with("day.json:6: entry 5: "), "{fault}");
            assert!(fault.contains(says) && fault.ends_with("what stands before it counts"));
            assert_eq!(recording.events.len(), 2);
        }
    }

    #[test]
    fn a_file_that_is_cut_in_the_middle_counts_up_to_there() {
        let whole = format!("{{\"log\":[\n{HEADER},\n{OPENED},\n{}", changed("[[0,1,"));
        let recording = read("day.json", &whole.as_bytes()[..whole.len() - 1]).unwrap();
        let fault = recording.fault.unwrap();
        assert!(fault.starts_with("day.json:5: entry 4: the file is cut here"), "{fault}");
        assert_eq!(recording.events.len(), 1);
        // A recording that was not ended has no closing brackets.
        let open = format!("{{\"log\":[\n{HEADER},\n{OPENED}");
        assert_eq!(read("day.json", open.as_bytes()).unwrap().events.len(), 1);
    }

    #[test]
    fn what_is_no_recording_is_an_error() {
        for (text, says) in [
            ("", "day.json:1: entry 1: the file is cut here"),
            ("[]", "an object with a `log`"),
            ("{}", "it has no `log`"),
            (r#"{"events":[]}"#, "it has no `log`"),
            (r#"{"log":3}"#, "a list of entries"),
            (r#"{"log":[]}"#, "nothing happens in it"),
        ] {
            let error = read("day.json", text.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(says), "{text}: {error}");
        }
    }
}
