//! Any prompt is read or refused, for every family of models. A prompt that is laid out with a
//! family's markers gives the texts back that it was made of, unless they hold markers themselves.
#![no_main]

use libfuzzer_sys::fuzz_target;
use models::fim::{FimKind, FimOrder, MarkerTexts, templates};

fuzz_target!(|texts: (&str, &str)| {
    let (before, after) = texts;
    for template in templates() {
        let _ = api::parse(before, template);
        let FimKind::Markers(MarkerTexts { prefix, suffix, middle, order }) = &template.kind else {
            continue;
        };
        let marks = [Some(*prefix), Some(*suffix), *middle];
        // A blank at the beginning may be the template's.
        if [before, after].iter().any(|text| text.starts_with(' ')) {
            continue;
        }
        let texts = match order {
            FimOrder::PrefixFirst => format!("{prefix}{before}{suffix}{after}"),
            FimOrder::SuffixFirst => format!("{suffix}{after}{prefix}{before}"),
        };
        // Two texts next to each other may make a marker.
        let prompt = format!("{texts}{}", middle.unwrap_or_default());
        let count: usize = marks.iter().flatten().map(|mark| prompt.matches(mark).count()).sum();
        if count == marks.iter().flatten().count() {
            let read = api::parse(&prompt, template).expect("a whole prompt");
            assert_eq!((&*read.around.before, &*read.around.after), (before, after));
        }
    }
});
