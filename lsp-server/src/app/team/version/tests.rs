use super::super::tests::{core, frame};
use super::*;
use models::team::contribution::normal;
use rand::Rng;

/// The bounds for a machine that has followed its team for long enough.
fn bounds() -> Bounds {
    Bounds { round_norm: round_norm(&Config::default(), frame().numbers()), newest: 1_000 }
}

/// The message of version `to`, by a chain from version `from`.
fn message(frame: &Frame, from: u64, to: u64) -> VersionMessage {
    let chain =
        (from..to).map(|version| Link {
            version: version + 1,
            delta: hex(
                &delta::encode(frame, &core(frame, version), &core(frame, version + 1)).unwrap()
            ),
        });
    VersionMessage {
        format: TEAM_FORMAT,
        frame: hex(&frame.sha256()),
        version: to,
        core: hex(&core(frame, to).sha256(frame)),
        from,
        chain: chain.collect(),
    }
}

#[test]
fn a_chain_from_here_and_the_whole_lead_to_the_same_version() {
    let frame = frame();
    assert_eq!(core(&frame, 0), Core::zero(&frame));
    let here = core(&frame, 2);
    assert_eq!(follow(&frame, &here, &message(&frame, 2, 5), bounds()).unwrap(), core(&frame, 5));
    let whole = delta::encode(&frame, &Core::zero(&frame), &core(&frame, 5)).unwrap();
    let mut message = message(&frame, 0, 5);
    message.chain = vec![Link { version: 5, delta: hex(&whole) }];
    let zero = Core::zero(&frame);
    assert_eq!(follow(&frame, &zero, &message, bounds()).unwrap(), core(&frame, 5));
    assert_eq!(
        follow(&frame, &core(&frame, 5), &message, bounds()).unwrap(),
        core(&frame, 5),
        "here already"
    );
}

#[test]
fn what_does_not_fit_is_refused_with_its_reason() {
    let frame = frame();
    let here = core(&frame, 2);
    let refused = |message: &VersionMessage| {
        format!(
            "{:#}",
            follow(&frame, &here, message, bounds()).map(|core| core.version).unwrap_err()
        )
    };
    let good = message(&frame, 2, 4);
    let foreign = VersionMessage { frame: "00".into(), ..good.clone() };
    assert!(refused(&foreign).contains("another base model"));
    assert!(refused(&message(&frame, 0, 1)).contains("older than 2"));
    assert!(refused(&message(&frame, 1, 4)).contains("begin at version 1, here is 2"));
    let other = VersionMessage { core: "00".into(), ..message(&frame, 0, 2) };
    assert!(refused(&other).contains("another than the one of this number"));
    let newer = VersionMessage { format: 2, ..good.clone() };
    assert!(refused(&newer).contains("format 2"));
    let mut short = good.clone();
    short.chain.pop();
    assert!(refused(&short).contains("do not lead to version 4"));
    let mut damaged = good.clone();
    let delta = &mut damaged.chain[1].delta;
    let last = delta.pop().unwrap();
    delta.push(if last == '0' { '1' } else { '0' });
    assert!(refused(&damaged).contains("the delta to version 4"), "{}", refused(&damaged));
    let mut text = good.clone();
    text.chain[0].delta = "not hex".into();
    assert!(refused(&text).contains("hex digits"));
    let mut disordered = good;
    disordered.chain.swap(0, 1);
    assert!(refused(&disordered).contains("version"), "{}", refused(&disordered));
}

/// The noise of three members is far above the norm of what they have learned.
#[test]
fn a_version_may_be_as_large_as_its_noise_and_no_larger() {
    const NUMBERS: usize = 43_008;
    let mut random = rand::rng();
    for noise in [0.0, 2.0] {
        let mut config = Config::default();
        (config.team.noise, config.team.minimum_members) = (noise, 3);
        let max_norm = config.lab.team_max_norm;
        let share = noise * max_norm / 3f64.sqrt();
        let mut noise_of_member = || share * normal(|| random.random());
        let mut mean = || (0..3).map(|_| noise_of_member()).sum::<f64>() / 3.0;
        let squares: f64 = (0..NUMBERS).map(|_| mean().powi(2)).sum();
        let learned = squares.sqrt() + max_norm;
        assert!(learned <= round_norm(&config, NUMBERS), "{noise}");
        assert!(1.3 * learned > round_norm(&config, NUMBERS), "{noise}: the limit is close");
    }
}

/// A version whose numbers have this norm.
fn of_norm(frame: &Frame, version: u64, norm: f64) -> Core {
    let number = (norm / (frame.numbers() as f64).sqrt() / f64::from(STEP)) as i32;
    Core::new(frame, version, vec![number; frame.numbers()]).unwrap()
}

/// The message that leads by these versions to the last one.
fn by(frame: &Frame, from: &Core, versions: &[Core]) -> VersionMessage {
    let mut before = from;
    let chain = versions.iter().map(|version| {
        let delta = hex(&delta::encode(frame, before, version).unwrap());
        before = version;
        Link { version: version.version, delta }
    });
    let chain = chain.collect();
    let last = versions.last().unwrap();
    let (version, core) = (last.version, hex(&last.sha256(frame)));
    VersionMessage { chain, version, core, from: from.version, ..message(frame, 0, 1) }
}

/// A version of any norm passed with a version number that was large enough, and made every later
/// version of the team an older one.
#[test]
fn no_number_of_the_coordinator_makes_room_for_a_larger_norm() {
    let frame = frame();
    let zero = Core::zero(&frame);
    let held = of_norm(&frame, 7, 0.5);
    /// The version that is held, those that the message leads by, with their norms, and why it is
    /// refused.
    type Row<'a> = (&'a Core, &'a [(u64, f64)], Option<&'a str>);
    let table: &[Row] = &[
        (&zero, &[(1, 0.1)], None),
        (&zero, &[(1, 5.0)], Some("the norm")),
        (&zero, &[(1_000_000, 5.0)], Some("largest that a machine begins with")),
        (&zero, &[(1_000_000, 0.1)], Some("largest that a machine begins with")),
        (&zero, &[(u64::MAX, 0.1)], Some("largest that a machine begins with")),
        (&zero, &[(LEAP_VERSION_MAX, 5.0)], Some("the norm")),
        (&zero, &[(LEAP_VERSION_MAX, 1.5)], None),
        (&zero, &[(1, 0.1), (2, 3.0), (90, 5.0)], Some("the norm")),
        (&held, &[(8, 0.6)], None),
        (&held, &[(8, 0.4)], None),
        (&held, &[(8, 0.7)], Some("the norm")),
        (&held, &[(8, 0.0)], Some("the norm")),
        (&held, &[(8, 0.6), (9, 0.7)], None),
        (&held, &[(8, 0.55), (9, 0.7)], Some("the norm")),
        (&held, &[(9, 0.6)], Some("leave out version 8")),
        (&held, &[(8, 0.6), (900, 0.7)], Some("leave out version 9")),
        (&held, &[(8, 0.6), (1_001, 0.7)], Some("above 1000")),
        (&held, &[(7, 0.6)], Some("another than the one of this number")),
    ];
    for (here, versions, error) in table {
        let chain: Vec<Core> =
            versions.iter().map(|(version, norm)| of_norm(&frame, *version, *norm)).collect();
        let followed = follow(&frame, here, &by(&frame, here, &chain), bounds());
        match (followed, error) {
            (Ok(core), None) => assert_eq!(Some(&core), chain.last()),
            (Err(said), Some(error)) => {
                assert!(format!("{said:#}").contains(error), "{versions:?}: {said:#}");
            }
            (followed, _) => panic!("{versions:?}: {:?}", followed.map(|core| core.version)),
        }
    }
}

#[test]
fn a_member_with_a_version_takes_no_whole_one() {
    let frame = frame();
    let whole = by(&frame, &Core::zero(&frame), &[core(&frame, 9)]);
    let refused = follow(&frame, &core(&frame, 2), &whole, bounds()).unwrap_err().to_string();
    assert!(refused.contains("only a machine without a version"), "{refused}");
}

#[test]
fn a_team_has_only_as_many_rounds_as_its_time_allows() {
    let newest = |days: u64, version| {
        let joined = Joined { version, at_ms: 5 };
        Bounds::of(&Config::default(), 512, joined, 5 + days * DAY_MS).newest
    };
    assert_eq!(newest(0, 3), 3 + ROUNDS_AT_ONCE);
    assert_eq!(newest(2, 3), 3 + ROUNDS_AT_ONCE + 2 * ROUNDS_A_DAY);
    assert_eq!(newest(2, u64::MAX), u64::MAX);
    // A clock that was put back allows what a new member is allowed.
    let joined = Joined { version: 3, at_ms: DAY_MS };
    let bounds = Bounds::of(&Config::default(), 512, joined, 0);
    assert_eq!(bounds.newest, 3 + ROUNDS_AT_ONCE);
}

#[test]
fn a_message_is_read_up_to_its_bound_whatever_its_size_says() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("message.json");
    let file = std::fs::File::create(&path).unwrap();
    file.set_len(MESSAGE_BYTES_MAX + 1).unwrap();
    let error = read_message(&path).unwrap_err().to_string();
    assert!(error.contains("message.json: over"), "{error}");
}
