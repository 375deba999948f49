//! Snapshots of the summary, one for each case that it must put into honest words.

use super::*;
use crate::developer::OfferOutcome;
use crate::report::tests::{conditions, repo, run_result};
use crate::report::{ArmHeader, Conditions, Repo};
use crate::run::RunResult;
use crate::run::ledger::LabelCounts;
use crate::run::record::{LineRecord, RequestRecord, Update};
use std::time::Duration;

/// Returns what becomes of the request in a line: `None` is no offer, else whether it is accepted.
type Script = fn(usize) -> Option<bool>;

/// Lines of ten characters with a request each; five of them are a commit.
fn result(lines: usize, arms: &[(&str, Script)]) -> RunResult {
    let mut result = run_result();
    let template = result.arms.remove(0);
    result.arms.clear();
    for (name, script) in arms {
        let mut arm = template.clone();
        arm.name = (*name).to_owned();
        arm.record.lines = (0..lines).map(|index| line(index, script(index))).collect();
        let update = |number| Update { place: 0, number, ms: Some(1500.0) };
        arm.record.updates = if *name == "frozen" || *name == "gate" {
            Vec::new()
        } else {
            (1..=3).map(update).collect()
        };
        let outcomes: Vec<bool> = (0..lines).filter_map(script).collect();
        let accepted = outcomes.iter().filter(|accepted| **accepted).count() as u64;
        let total = outcomes.len() as u64;
        let counts = LabelCounts {
            total,
            accepted,
            rejected_esc: total - accepted,
            ..LabelCounts::default()
        };
        (arm.record.typist, arm.status.episodes) = (counts, counts);
        result.arms.push(arm);
    }
    result.places = lines;
    result.commits = (0..lines.div_ceil(5)).map(|commit| commit.to_string()).collect();
    result.elapsed = Duration::from_secs(90);
    result
}

fn line(index: usize, accepted: Option<bool>) -> LineRecord {
    let outcome = accepted.map(|accepted| {
        if accepted { OfferOutcome::Accepted { chars: 10 } } else { OfferOutcome::TypedOn }
    });
    let request = RequestRecord {
        place: index,
        latency_ms: 20.0,
        late: false,
        version: 2,
        outcome,
        rating: None,
        doubled: false,
    };
    LineRecord { file: index / 5, place: index, chars: 10, requests: vec![request] }
}

fn summary_of(results: Vec<RunResult>) -> String {
    text(&report_of(results, Developer::Exact))
}

fn report_of(results: Vec<RunResult>, developer: Developer) -> RehearsalReport {
    let arms = results[0].arms.iter().map(|arm| {
        let kind = match arm.name.as_str() {
            "frozen" | "twin" => ArmKind::Frozen,
            "gate" => ArmKind::Gate,
            "ppo" => ArmKind::Ppo,
            _ => ArmKind::Everything,
        };
        ArmHeader { name: arm.name.clone(), kind, config: String::new() }
    });
    let arms = arms.collect();
    let done: Vec<(RunResult, Repo)> = results.into_iter().map(|result| (result, repo())).collect();
    // A disturbed rehearsal has a line more.
    let conditions = Conditions { disturbances: Vec::new(), developer, ..conditions() };
    RehearsalReport::new(&done, arms, conditions)
}

#[test]
fn it_says_who_typed_where_that_was_a_person() {
    let first_line = |developer| {
        let text = text(&report_of(vec![result(400, &[("frozen", NOTHING)])], developer));
        text.split("\n\n").next().unwrap().replace('\n', " ")
    };
    let says = "The developer was drawn from people, anew for each commit.";
    assert!(first_line(Developer::Person).ends_with(says), "{}", first_line(Developer::Person));
    assert!(!first_line(Developer::Exact).contains("people"));
}

#[track_caller]
fn check(results: Vec<RunResult>, expected: &str) {
    let text = summary_of(results);
    assert_eq!(text, expected, "\n{text}");
}

const EVERY_FOURTH: Script = |line| Some(line % 4 == 0);
const NOTHING: Script = |_| None;
const EVERY_SECOND: Script = |line| Some(line % 2 == 0);

#[test]
fn a_clear_gain() {
    let held_back: Script = |line| (line % 4 != 1).then_some(line % 2 == 0);
    check(
        vec![result(400, &[("frozen", EVERY_FOURTH), ("everything", held_back)])],
        "\
Typed 80 commits of this repository and paused at 400 places, in 1.5 minutes.

frozen      400 offers shown, 100 accepted (25.0 %), 25.0 % of the characters completed, 75
            wrong offers per 100 lines, median answer 20 ms
everything  300 offers shown, 200 accepted (66.7 %), 50.0 % of the characters completed, 25
            wrong offers per 100 lines, median answer 20 ms, adapter v2 serves

Of the offers that were shown, 25.0 % were accepted without learning and 66.7 % with it, which
is 167 % more (95 % interval: 151 to 185 % more).
With learning, Hone showed 25 % fewer offers (95 % interval: 23 to 27 % fewer) and completed
50.0 % of the characters instead of 25.0 %, which is 100 % more (95 % interval: 89 to 114 %
more).
Hone made 3 updates from 300 judged offers; both gains are larger than chance.
",
    );
}

#[test]
fn no_difference() {
    check(
        vec![result(400, &[("frozen", EVERY_FOURTH), ("ppo", EVERY_FOURTH)])],
        "\
Typed 80 commits of this repository and paused at 400 places, in 1.5 minutes.

frozen  400 offers shown, 100 accepted (25.0 %), 25.0 % of the characters completed, 75 wrong
        offers per 100 lines, median answer 20 ms
ppo     400 offers shown, 100 accepted (25.0 %), 25.0 % of the characters completed, 75 wrong
        offers per 100 lines, median answer 20 ms, adapter v2 serves

Of the offers that were shown, 25.0 % were accepted without learning and 25.0 % with it: no
difference.
With learning, Hone showed as many offers and completed 25.0 % of the characters, just as
without learning.
Hone made 3 updates from 400 judged offers; the arms do not differ.
",
    );
}

#[test]
fn a_difference_that_may_be_chance() {
    let other: Script = |line| Some(line * line % 7 == 1 || line == 5);
    check(
        vec![result(60, &[("frozen", EVERY_FOURTH), ("everything", other)])],
        "\
Typed 12 commits of this repository and paused at 60 places, in 1.5 minutes.

frozen      60 offers shown, 15 accepted (25.0 %), 25.0 % of the characters completed, 75 wrong
            offers per 100 lines, median answer 20 ms
everything  60 offers shown, 18 accepted (30.0 %), 30.0 % of the characters completed, 70 wrong
            offers per 100 lines, median answer 20 ms, adapter v2 serves

Of the offers that were shown, 25.0 % were accepted without learning and 30.0 % with it, which
is 20 % more (95 % interval: from 7.1 % less to 64 % more).
With learning, Hone showed as many offers and completed 30.0 % of the characters instead of
25.0 %, which is 20 % more (95 % interval: from 7.1 % less to 64 % more).
Hone made 3 updates from 60 judged offers; neither difference is larger than chance.
",
    );
}

#[test]
fn a_loss() {
    check(
        vec![result(400, &[("frozen", EVERY_SECOND), ("ppo", EVERY_FOURTH)])],
        "\
Typed 80 commits of this repository and paused at 400 places, in 1.5 minutes.

frozen  400 offers shown, 200 accepted (50.0 %), 50.0 % of the characters completed, 50 wrong
        offers per 100 lines, median answer 20 ms
ppo     400 offers shown, 100 accepted (25.0 %), 25.0 % of the characters completed, 75 wrong
        offers per 100 lines, median answer 20 ms, adapter v2 serves

Of the offers that were shown, 50.0 % were accepted without learning and 25.0 % with it, which
is 50 % less (95 % interval: 47 to 53 % less).
With learning, Hone showed as many offers and completed 25.0 % of the characters instead of
50.0 %, which is 50 % less (95 % interval: 47 to 53 % less).
Hone made 3 updates from 400 judged offers; both losses are larger than chance.
",
    );
}

#[test]
fn a_gain_in_one_and_a_loss_in_the_other() {
    let strict: Script = |line| (line % 4 == 0).then_some(line % 8 != 0);
    check(
        vec![result(400, &[("frozen", EVERY_SECOND), ("gate", strict)])],
        "\
Typed 80 commits of this repository and paused at 400 places, in 1.5 minutes.

frozen  400 offers shown, 200 accepted (50.0 %), 50.0 % of the characters completed, 50 wrong
        offers per 100 lines, median answer 20 ms
gate    100 offers shown, 50 accepted (50.0 %), 12.5 % of the characters completed, 12 wrong
        offers per 100 lines, median answer 20 ms

Of the offers that were shown, 50.0 % were accepted without the gate and 50.0 % with it: no
difference (95 % interval: from 15 % less to 15 % more).
With the gate, Hone showed 75 % fewer offers (95 % interval: 73 to 77 % fewer) and completed
12.5 % of the characters instead of 50.0 %, which is 75 % less (95 % interval: 71 to 79 % less).
The gate learned from 100 judged offers; the difference in the accept rate is not larger than
chance, and the loss in completed characters is larger than chance.
",
    );
}

#[test]
fn too_few_commits() {
    check(
        vec![result(20, &[("frozen", EVERY_FOURTH), ("everything", EVERY_SECOND)])],
        "\
Typed 4 commits of this repository and paused at 20 places, in 1.5 minutes.

frozen      20 offers shown, 5 accepted (25.0 %), 25.0 % of the characters completed, 75 wrong
            offers per 100 lines, median answer 20 ms
everything  20 offers shown, 10 accepted (50.0 %), 50.0 % of the characters completed, 50 wrong
            offers per 100 lines, median answer 20 ms, adapter v2 serves

Of the offers that were shown, 25.0 % were accepted without learning and 50.0 % with it, which
is 100 % more (too few commits for an interval).
With learning, Hone showed as many offers and completed 50.0 % of the characters instead of
25.0 %, which is 100 % more (too few commits for an interval).
Hone made 3 updates from 20 judged offers; whether a difference is larger than chance cannot be
said, because 4 commits are too few: it takes 8.
",
    );
}

#[test]
fn too_few_accepted_offers() {
    let rare: Script = |line| Some(line % 30 == 0);
    check(
        vec![result(100, &[("frozen", rare), ("everything", EVERY_SECOND)])],
        "\
Typed 20 commits of this repository and paused at 100 places, in 1.5 minutes.

frozen      100 offers shown, 4 accepted (4.0 %), 4.0 % of the characters completed, 96 wrong
            offers per 100 lines, median answer 20 ms
everything  100 offers shown, 50 accepted (50.0 %), 50.0 % of the characters completed, 50 wrong
            offers per 100 lines, median answer 20 ms, adapter v2 serves

Of the offers that were shown, 4.0 % were accepted without learning and 50.0 % with it, which is
1150 % more (too few offers for an interval).
With learning, Hone showed as many offers and completed 50.0 % of the characters instead of
4.0 %, which is 1150 % more (too few offers for an interval).
Hone made 3 updates from 100 judged offers; whether a difference is larger than chance cannot be
said, because 4 accepted offers without learning are too few: it takes 10.
",
    );
}

#[test]
fn nothing_was_shown() {
    check(
        vec![result(100, &[("frozen", NOTHING), ("everything", NOTHING)])],
        "\
Typed 20 commits of this repository and paused at 100 places, in 1.5 minutes.

frozen      0 offers shown, 0.0 % of the characters completed, median answer 20 ms
everything  0 offers shown, 0.0 % of the characters completed, median answer 20 ms, adapter v2
            serves

No offer was shown in either arm, so there is nothing to compare.
Hone made 3 updates from 0 judged offers.
",
    );
}

#[test]
fn nothing_was_shown_with_learning() {
    check(
        vec![result(100, &[("frozen", EVERY_SECOND), ("everything", NOTHING)])],
        "\
Typed 20 commits of this repository and paused at 100 places, in 1.5 minutes.

frozen      100 offers shown, 50 accepted (50.0 %), 50.0 % of the characters completed, 50 wrong
            offers per 100 lines, median answer 20 ms
everything  0 offers shown, 0.0 % of the characters completed, median answer 20 ms, adapter v2
            serves

Of the offers that were shown, 50.0 % were accepted without learning; with it none was shown.
With learning, Hone showed 100 % fewer offers (95 % interval: 100 to 100 % fewer) and completed
0.0 % of the characters instead of 50.0 %, which is 100 % less (95 % interval: 100 to 100 %
less).
Hone made 3 updates from 0 judged offers; there is too little data to judge the accept rate, and
the loss in completed characters is larger than chance.
",
    );
}

#[test]
fn few_offers_were_shown_with_learning() {
    let rare: Script = |line| (line % 10 == 0).then_some(line % 20 == 0);
    check(
        vec![result(100, &[("frozen", EVERY_SECOND), ("everything", rare)])],
        "\
Typed 20 commits of this repository and paused at 100 places, in 1.5 minutes.

frozen      100 offers shown, 50 accepted (50.0 %), 50.0 % of the characters completed, 50 wrong
            offers per 100 lines, median answer 20 ms
everything  10 offers shown, 5 accepted (50.0 %), 5.0 % of the characters completed, 5 wrong
            offers per 100 lines, median answer 20 ms, adapter v2 serves

Of the offers that were shown, 50.0 % were accepted without learning and 50.0 % with it: no
difference (too few offers for an interval).
With learning, Hone showed 90 % fewer offers (95 % interval: 86 to 94 % fewer) and completed
5.0 % of the characters instead of 50.0 %, which is 90 % less (95 % interval: 83 to 96 % less).
Hone made 3 updates from 10 judged offers; there is too little data to judge the accept rate,
and the loss in completed characters is larger than chance.
",
    );
}

#[test]
fn several_arms_over_several_repositories() {
    let arms: [(&str, Script); 3] =
        [("frozen", EVERY_FOURTH), ("twin", EVERY_FOURTH), ("ppo", EVERY_SECOND)];
    let mut late = result(100, &arms);
    late.ended_by = StreamEnd::Time;
    late.arms[2].record.learner_errors.push("out of memory".to_owned());
    check(
        vec![result(100, &arms), late],
        "\
Typed 40 commits of 2 repositories and paused at 200 places, in 3.0 minutes. The time limit
ended it.

frozen  200 offers shown, 50 accepted (25.0 %), 25.0 % of the characters completed, 75 wrong
        offers per 100 lines
twin    200 offers shown, 50 accepted (25.0 %), 25.0 % of the characters completed, 75 wrong
        offers per 100 lines
ppo     200 offers shown, 100 accepted (50.0 %), 50.0 % of the characters completed, 50 wrong
        offers per 100 lines
        an update failed: out of memory

twin compared with frozen:
Of the offers that were shown, 25.0 % were accepted in the arm `frozen` and 25.0 % in the arm
`twin`: no difference.
In the arm `twin`, Hone showed as many offers and completed 25.0 % of the characters, just as in
the arm `frozen`.
The arm `twin` does not learn; the arms do not differ.

ppo compared with frozen:
Of the offers that were shown, 25.0 % were accepted without learning and 50.0 % with it, which
is 100 % more (95 % interval: 84 to 119 % more).
With learning, Hone showed as many offers and completed 50.0 % of the characters instead of
25.0 %, which is 100 % more (95 % interval: 84 to 119 % more).
Hone made 6 updates from 200 judged offers; both gains are larger than chance.
",
    );
}
