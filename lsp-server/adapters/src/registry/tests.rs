use super::adoption::{Basis, Outdated};
use super::index::{REGISTRY_COPY, REGISTRY_FILE};
use super::*;
use crate::testing::entry;
use feedback::job::StepLog;
use models::file::faults::FailingWrite;

fn candidate(registry: &Registry, base: &str) -> AdapterCandidate {
    let version = registry.next_version();
    let (adapter, optimizer) = registry.job_files("j");
    std::fs::write(&adapter, format!("adapter {version}")).unwrap();
    std::fs::write(&optimizer, format!("state {version}")).unwrap();
    let entry = Entry {
        parent: registry.active(),
        base_sha256: base.into(),
        labels: (u64::from(version) * 10, u64::from(version) * 10 + 9),
        offers: vec![format!("offer-{version}")],
        ..entry(version, sha256(&adapter).unwrap())
    };
    AdapterCandidate { entry, adapter, optimizer: Some(optimizer) }
}

fn with_three(folder: &Path) -> Registry {
    let (mut registry, _) = Registry::open(folder, "base");
    for _ in 0..3 {
        let next = candidate(&registry, "base");
        registry.promote(&next).unwrap();
    }
    registry
}

fn names(folder: &Path) -> Vec<String> {
    let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name());
    let mut names: Vec<_> = files.map(|name| name.to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn a_candidates_files_get_the_names_of_its_number_and_lose_their_own() {
    let dir = tempfile::tempdir().unwrap();
    let (mut registry, _) = Registry::open(dir.path(), "base");
    registry.promote(&candidate(&registry, "base")).unwrap();
    let files = [REGISTRY_COPY, REGISTRY_FILE, "v0001.gguf", "v0001.optimizer"];
    assert_eq!(names(dir.path()), files);
    assert_eq!(std::fs::read(registry.optimizer_file(1)).unwrap(), b"state 1");
    let again =
        AdapterCandidate { entry: registry.entries()[0].clone(), ..candidate(&registry, "base") };
    assert!(registry.refuse(&again).unwrap_err().to_string().contains("registered already"));
}

/// A file may appear between a job's start and its registration. It is not replaced.
#[test]
fn a_number_that_a_file_has_taken_meanwhile_is_not_given() {
    for (taken, other) in [("v0001.gguf", "v0001.optimizer"), ("v0001.optimizer", "v0001.gguf")] {
        let dir = tempfile::tempdir().unwrap();
        let (mut registry, _) = Registry::open(dir.path(), "base");
        let first = candidate(&registry, "base");
        std::fs::write(dir.path().join(taken), "somebody's").unwrap();
        let refused = format!("{:#}", registry.promote(&first).unwrap_err());
        assert!(refused.contains(taken), "{refused}");
        assert_eq!(std::fs::read(dir.path().join(taken)).unwrap(), b"somebody's");
        assert!(!dir.path().join(other).exists() && registry.entries().is_empty());
        assert_eq!(registry.next_version(), 2);
    }
}

#[test]
fn a_registry_that_cannot_be_written_gives_no_number() {
    let dir = tempfile::tempdir().unwrap();
    let (mut registry, _) = Registry::open(dir.path(), "base");
    let first = candidate(&registry, "base");
    std::fs::create_dir(dir.path().join(REGISTRY_FILE)).unwrap();
    let refused = format!("{:#}", registry.promote(&first).unwrap_err());
    assert!(refused.contains("cannot be written"), "{refused}");
    assert_eq!(names(dir.path()), ["job-j.gguf", "job-j.optimizer", REGISTRY_FILE]);
    assert_eq!((registry.entries().len(), registry.active()), (0, 0));
}

#[test]
fn only_files_of_interrupted_jobs_and_imports_are_removed() {
    let dir = tempfile::tempdir().unwrap();
    let mut registry = with_three(dir.path());
    let kept = names(dir.path());
    // One learner was killed while it trained. Another was killed after v4 got its number and
    // before it was registered.
    std::fs::write(dir.path().join("job-v4-0-1.gguf.7-0.tmp"), "half").unwrap();
    std::fs::write(dir.path().join("import-x"), "half").unwrap();
    let cut_short = candidate(&registry, "base");
    registry.name_files(&cut_short).unwrap();
    assert_eq!(registry.next_version(), 5);
    // The daemon was killed after v3 was registered and before its temporary names were
    // removed.
    std::fs::hard_link(registry.adapter_file(3), dir.path().join("job-v3.gguf")).unwrap();
    // The file of an adapter that only a lost registry named.
    std::fs::write(dir.path().join("v0007.gguf"), "adapter 7").unwrap();
    let all = names(dir.path());

    registry.is_from_copy = true;
    registry.remove_leftovers();
    assert_eq!(names(dir.path()), all, "the copy may lack v4, so its files stay");
    registry.is_from_copy = false;
    registry.remove_leftovers();
    assert_eq!(names(dir.path()), [kept, vec!["v0007.gguf".into()]].concat());
    assert_eq!(registry.next_version(), 4);
}

/// A registry that was missing was taken for one that had never been written. The base
/// served without a message, and what was written next took the place of the copy as well.
#[test]
fn the_copy_replaces_a_lost_registry() {
    let dir = tempfile::tempdir().unwrap();
    with_three(dir.path());
    std::fs::remove_file(dir.path().join(REGISTRY_FILE)).unwrap();
    let (registry, trouble) = Registry::open(dir.path(), "base");
    let trouble = trouble.expect("a reason");
    assert!(trouble.contains("missing") && trouble.contains(REGISTRY_COPY), "{trouble}");
    assert_eq!((registry.active(), registry.read_only_reason()), (3, None));
    std::fs::write(dir.path().join(REGISTRY_COPY), "").unwrap();
    let (registry, _) = Registry::open(dir.path(), "base");
    assert!(registry.active() == 0 && registry.read_only_reason().is_some());
}

#[test]
fn promotion_survives_reopening_with_its_lineage() {
    let dir = tempfile::tempdir().unwrap();
    with_three(dir.path());
    let (registry, trouble) = Registry::open(dir.path(), "base");
    assert_eq!((registry.active(), registry.entry(3).unwrap().parent, trouble), (3, 2, None));
    assert_eq!((registry.next_version(), registry.learned_through("base")), (4, Some(39)));
    assert_eq!(registry.learned_through("other"), None);
}

#[test]
fn the_parent_of_a_damaged_adapter_serves_and_the_reason_is_given() {
    let dir = tempfile::tempdir().unwrap();
    let path = with_three(dir.path()).adapter_file(3);
    std::fs::write(&path, "flipped").unwrap();
    let (registry, trouble) = Registry::open(dir.path(), "base");
    assert_eq!(registry.active(), 2);
    let trouble = trouble.unwrap();
    assert!(trouble.contains("v0003.gguf: damaged"), "{trouble}");
    assert!(trouble.contains("serving v2 instead"), "{trouble}");
    assert_eq!(registry.next_version(), 4, "a number is never used twice");
}

#[test]
fn an_adapter_of_another_base_is_not_served() {
    let dir = tempfile::tempdir().unwrap();
    with_three(dir.path());
    let (registry, trouble) = Registry::open(dir.path(), "other");
    assert_eq!((registry.active(), registry.head(), trouble), (0, 0, None));
}

/// Somebody who serves another model for a while comes back to what the first one has learned.
#[test]
fn each_base_has_what_serves_with_it() {
    let dir = tempfile::tempdir().unwrap();
    let mut registry = with_three(dir.path());
    let first = candidate(&registry, "base");
    registry.start_trial(&first, 70).unwrap();
    let (mut other, trouble) = Registry::open(dir.path(), "other");
    assert_eq!((other.active(), other.trial(), trouble), (0, None, None));
    for _ in 0..KEPT_FILES + 1 {
        let next = candidate(&other, "other");
        other.promote(&next).unwrap();
    }
    let newest = other.active();
    let (registry, trouble) = Registry::open(dir.path(), "base");
    assert_eq!((registry.active(), registry.head(), trouble), (3, 4, None));
    assert_eq!(registry.trial().unwrap().candidate, 4);
    for version in 1..=4 {
        assert!(registry.adapter_file(version).exists(), "v{version} is one of the newest");
    }
    assert!(registry.optimizer_file(4).exists() && registry.optimizer_file(3).exists());
    assert!(!registry.adapter_file(5).exists(), "the oldest of the other one");
    assert_eq!(Registry::open(dir.path(), "other").0.active(), newest);
}

/// What is kept for ever must stay small.
#[test]
fn an_entry_without_a_file_keeps_no_steps() {
    let dir = tempfile::tempdir().unwrap();
    let (mut registry, _) = Registry::open(dir.path(), "base");
    for _ in 0..KEPT_FILES + 1 {
        let mut next = candidate(&registry, "base");
        next.entry.report.steps_log = vec![StepLog::default()];
        registry.promote(&next).unwrap();
    }
    let steps = registry.entries().iter().map(|entry| entry.report.steps_log.len());
    assert_eq!(steps.collect::<Vec<_>>(), [0, 1, 1, 1, 1, 1, 1, 1, 1]);
}

/// One bad sector must not destroy what was learned in months.
#[test]
fn the_copy_replaces_a_damaged_registry() {
    let folder = tempfile::tempdir().unwrap();
    let (mut registry, _) = Registry::open(folder.path(), "base");
    registry.promote(&candidate(&registry, "base")).unwrap();
    let path = folder.path().join(REGISTRY_FILE);
    let whole = std::fs::read(&path).unwrap();
    for damaged in [&whole[..whole.len() / 2], b"", b"{\"format\": 1, \"active\": 0}"] {
        std::fs::write(&path, damaged).unwrap();
        let (registry, trouble) = Registry::open(folder.path(), "base");
        let trouble = trouble.expect("a reason");
        assert!(trouble.contains("damaged") && trouble.contains(REGISTRY_COPY), "{trouble}");
        assert_eq!((registry.active(), registry.read_only_reason()), (1, None));
    }
    // The next write repairs the damaged file.
    let (mut registry, _) = Registry::open(folder.path(), "base");
    registry.activate(0).unwrap();
    let (registry, trouble) = Registry::open(folder.path(), "base");
    assert_eq!((registry.active(), trouble), (0, None));
    // If both files are damaged, the base serves and neither file is overwritten.
    std::fs::write(&path, "").unwrap();
    std::fs::write(folder.path().join(REGISTRY_COPY), "").unwrap();
    let (registry, _) = Registry::open(folder.path(), "base");
    assert!(registry.active() == 0 && registry.read_only_reason().is_some());
}

/// A flipped bit could make a wrong version serve, or make an update start from it.
#[test]
fn every_flipped_bit_is_noticed() {
    let dir = tempfile::tempdir().unwrap();
    with_three(dir.path());
    let path = dir.path().join(REGISTRY_FILE);
    let whole = std::fs::read(&path).unwrap();
    let mut readable = 0;
    for bit in 0..whole.len() * 8 {
        let mut damaged = whole.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        readable += usize::from(serde_json::from_slice::<Index>(&damaged).is_ok());
        std::fs::write(&path, damaged).unwrap();
        let read = Index::read(&path);
        assert!(read.is_err(), "bit {} of byte {} was read", bit % 8, bit / 8);
    }
    assert!(readable > 1_000, "too few damaged files were readable to show anything: {readable}");
}

#[test]
fn a_registry_of_a_newer_hone_is_refused_untouched() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("registry.json");
    std::fs::write(&path, r#"{"format": 2, "surprise": true}"#).unwrap();
    let (mut registry, trouble) = Registry::open(dir.path(), "base");
    assert!(trouble.unwrap().contains("registry.json: format 2"));
    assert_eq!(registry.active(), 0, "the base serves");
    let next = candidate(&registry, "base");
    assert!(registry.promote(&next).is_err());
    assert!(std::fs::read_to_string(path).unwrap().contains("surprise"));
}

#[test]
fn rolling_back_survives_reopening_and_the_next_number_is_still_new() {
    let dir = tempfile::tempdir().unwrap();
    let mut registry = with_three(dir.path());
    registry.activate(1).unwrap();
    let (registry, _) = Registry::open(dir.path(), "base");
    assert_eq!((registry.active(), registry.next_version()), (1, 4));
    assert_eq!(registry.parent().unwrap().version, 1, "learning continues from there");
}

#[test]
fn an_adapter_that_learned_from_a_forgotten_offer_goes_with_its_descendants() {
    let dir = tempfile::tempdir().unwrap();
    let mut registry = with_three(dir.path());
    registry.activate(1).unwrap();
    let sibling = candidate(&registry, "base");
    registry.promote(&sibling).unwrap();
    let offers = HashSet::from(["offer-2".to_owned()]);
    let learned = registry.learned_from(&offers, |_, _| false);
    assert_eq!(learned, [2, 3], "v4 grew from v1");
    assert_eq!(registry.active_without(&learned, "base"), 4);
    registry.activate(3).unwrap();
    assert_eq!(registry.active_without(&learned, "base"), 1);

    registry.forget(&learned, 1).unwrap();
    registry.remove_unused().unwrap();
    let (registry, trouble) = Registry::open(dir.path(), "base");
    assert_eq!((registry.active(), trouble, registry.next_version()), (1, None, 5));
    assert!(!registry.adapter_file(2).exists() && !registry.adapter_file(3).exists());
    assert!(registry.adapter_file(1).exists() && registry.adapter_file(4).exists());
    assert!(registry.check(2, "base").unwrap_err().to_string().contains("went with it"));
    assert_eq!(registry.learned_from(&offers, |_, _| false), Vec::<AdapterVersion>::new());
    assert_eq!(registry.learned_from(&HashSet::new(), |_, _| false), Vec::<AdapterVersion>::new());
}

/// It learned from no offer. What grew from it goes with it.
#[test]
fn an_adapter_that_learned_from_a_history_goes_when_that_is_meant() {
    let dir = tempfile::tempdir().unwrap();
    let (mut registry, _) = Registry::open(dir.path(), "base");
    let mut first = candidate(&registry, "base");
    (first.entry.offers, first.entry.history) = (vec![], Some("/p/app".into()));
    registry.promote(&first).unwrap();
    registry.promote(&candidate(&registry, "base")).unwrap();
    let learned = |root: &str| {
        registry.learned_from(&HashSet::new(), |history, _| history == Path::new(root))
    };
    assert_eq!(learned("/p/app"), [1, 2]);
    assert_eq!(learned("/p/other"), Vec::<AdapterVersion>::new());
    let text = std::fs::read_to_string(dir.path().join(REGISTRY_FILE)).unwrap();
    assert_eq!(text.matches("\"history\"").count(), 1, "only the entry that has one names it");
}

#[test]
fn offers_are_left_out_until_an_update_has_learned_from_them() {
    let dir = tempfile::tempdir().unwrap();
    let (mut registry, _) = Registry::open(dir.path(), "base");
    let mut first = candidate(&registry, "base");
    first.entry.report.left_out = vec!["a".into(), "b".into()];
    registry.promote(&first).unwrap();
    let mut second = candidate(&registry, "base");
    second.entry.offers = vec!["b".into()];
    second.entry.report.left_out = vec!["c".into()];
    registry.promote(&second).unwrap();
    let (mut registry, _) = Registry::open(dir.path(), "base");
    let left_out = |offers: [&str; 2]| HashSet::from(offers.map(str::to_owned));
    assert_eq!(registry.left_out("base"), left_out(["a", "c"]));
    assert_eq!(registry.left_out("other"), HashSet::new());
    registry.forget(&[2], 1).unwrap();
    assert_eq!(registry.left_out("base"), left_out(["a", "b"]), "v2 is as if it never was");
}

#[test]
fn only_an_undamaged_adapter_of_this_base_may_serve() {
    let dir = tempfile::tempdir().unwrap();
    let registry = with_three(dir.path());
    assert!(registry.check(0, "base").is_ok() && registry.check(2, "base").is_ok());
    let refused = |version, base| registry.check(version, base).unwrap_err().to_string();
    assert!(refused(9, "base").contains("no adapter v9"));
    assert!(refused(2, "other").contains("another base model"));
    std::fs::remove_file(registry.adapter_file(2)).unwrap();
    assert!(refused(2, "base").contains("v0002.gguf: cannot be read"));
}

#[test]
fn a_trial_lets_updates_continue_and_ends_in_one_of_three_ways() {
    let ends = |end| {
        let dir = tempfile::tempdir().unwrap();
        let mut registry = with_three(dir.path());
        let first = candidate(&registry, "base");
        assert_eq!(registry.start_trial(&first, 70).unwrap().candidate, 4);
        assert_eq!((registry.active(), registry.head()), (3, 4), "v3 serves meanwhile");
        let second = candidate(&registry, "base");
        let arms = registry.start_trial(&second, 99).unwrap();
        assert_eq!(arms, Arms { candidate: 5, incumbent: 3, since: 70 }, "the same trial");
        registry.conclude(Verdict { end, reason: "why".into(), offers: 9 }).unwrap();
        let (registry, trouble) = Registry::open(dir.path(), "base");
        assert_eq!((trouble, registry.trial()), (None, None));
        assert_eq!(registry.entry(5).unwrap().verdict.as_ref().unwrap().end, end);
        (registry.active(), registry.head())
    };
    assert_eq!(ends(End::Promoted), (5, 5));
    assert_eq!(ends(End::Dropped), (3, 3));
    assert_eq!(ends(End::Undecided), (3, 5));
}

#[test]
fn a_trial_is_over_when_the_user_chooses_or_its_candidate_is_damaged() {
    let dir = tempfile::tempdir().unwrap();
    let mut registry = with_three(dir.path());
    let first = candidate(&registry, "base");
    registry.start_trial(&first, 70).unwrap();
    std::fs::write(registry.adapter_file(4), "flipped").unwrap();
    let (reopened, trouble) = Registry::open(dir.path(), "base");
    assert!(trouble.unwrap().contains("its trial is over"));
    assert_eq!((reopened.active(), reopened.head(), reopened.trial()), (3, 3, None));
    registry.activate(1).unwrap();
    assert_eq!((registry.head(), registry.trial()), (1, None));
}

#[test]
fn old_files_are_removed_and_the_newest_kept() {
    let dir = tempfile::tempdir().unwrap();
    let (mut registry, _) = Registry::open(dir.path(), "base");
    for _ in 0..KEPT_FILES + 2 {
        let next = candidate(&registry, "base");
        registry.promote(&next).unwrap();
    }
    assert!(!registry.adapter_file(2).exists());
    assert!(registry.adapter_file(3).exists());
    assert_eq!(registry.entries().len(), KEPT_FILES + 2);
}

/// A change of the registry, by its name.
type Change = (&'static str, fn(&mut Registry) -> Result<()>);

const CHANGES: [Change; 7] = [
    ("promote", |registry| registry.promote(&candidate(registry, "base"))),
    ("start_trial", |registry| registry.start_trial(&candidate(registry, "base"), 7).map(drop)),
    ("refuse", |registry| registry.refuse(&candidate(registry, "base"))),
    ("conclude", |registry| {
        registry.conclude(Verdict { end: End::Promoted, reason: String::new(), offers: 1 })
    }),
    ("activate", |registry| registry.activate(1)),
    ("import", |registry| {
        let file = registry.folder().join("import-x");
        std::fs::write(&file, "imported")?;
        registry.import(&file, sha256(&file)?, "base", None, 0).map(drop)
    }),
    ("forget", |registry| {
        registry.forget(&[3], 2)?;
        registry.remove_unused()
    }),
];

/// A change failed after it was on disk, and what served was the state before it.
#[test]
fn after_a_failure_at_any_step_memory_is_what_is_on_disk() {
    for (name, change) in CHANGES {
        for number in 0.. {
            let dir = tempfile::tempdir().unwrap();
            let mut registry = with_three(dir.path());
            let next = candidate(&registry, "base");
            registry.start_trial(&next, 7).unwrap();
            let fault = FailingWrite::arm(dir.path(), number);
            let changed = change(&mut registry);
            let has_failed = fault.has_failed();
            drop(fault);
            let step = format!("{name}, write {number}: {changed:?}");
            let on_disk = Index::read(&dir.path().join(REGISTRY_FILE)).unwrap();
            assert_eq!(
                registry.index.clone().text().unwrap(),
                on_disk.clone().text().unwrap(),
                "{step}"
            );
            let in_use = on_disk.in_use().filter(|version| *version > 0);
            for version in in_use {
                assert!(registry.check(version, "base").is_ok(), "{step}: v{version}");
            }
            // What could not be removed goes with the next change, or when the next daemon starts.
            registry.remove_leftovers();
            let known = |name: &String| name.starts_with("registry.") || name.starts_with('v');
            assert!(names(dir.path()).iter().all(known), "{step}: {:?}", names(dir.path()));
            for entry in registry.entries().iter().filter(|entry| entry.forgotten) {
                assert!(!registry.adapter_file(entry.version).exists(), "{step}");
                assert!(!registry.optimizer_file(entry.version).exists(), "{step}");
            }
            if !has_failed {
                changed.unwrap();
                break;
            }
        }
    }
}

/// Its removal fails where a program has the file open. It was never tried again.
#[test]
fn a_file_that_could_not_be_removed_is_removed_at_the_next_occasion() {
    let dir = tempfile::tempdir().unwrap();
    let mut registry = with_three(dir.path());
    registry.forget(&[2, 3], 1).unwrap();
    let fault = FailingWrite::arm(dir.path(), 0);
    let error = format!("{:#}", registry.remove_unused().unwrap_err());
    assert!(error.contains("cannot be removed") && error.contains("v000"), "{error}");
    drop(fault);
    let left = |registry: &Registry| {
        let files = [2, 3].map(|it| [registry.adapter_file(it), registry.optimizer_file(it)]);
        files.as_flattened().iter().filter(|file| file.exists()).count()
    };
    assert_eq!(left(&registry), 1, "the others are removed all the same");
    let (registry, _) = Registry::open(dir.path(), "base");
    registry.remove_leftovers();
    assert_eq!(left(&registry), 0);
}

/// They may have learned from whatever is forgotten. Only files of jobs were removed, and of
/// adapters those that the registry names.
#[test]
fn what_no_registry_names_is_found_by_reading_the_folder() {
    let dir = tempfile::tempdir().unwrap();
    let registry = with_three(dir.path());
    let kept = names(dir.path());
    for name in ["v0007.gguf", "v12345.optimizer", "job-x.gguf.7-0.tmp", "import-x"] {
        std::fs::write(dir.path().join(name), "x").unwrap();
    }
    std::fs::write(dir.path().join("registry.json.7-0.tmp"), "x").unwrap();
    registry.remove_unnamed().unwrap();
    assert_eq!(names(dir.path()), kept);
}

/// What an adapter was compared with must still serve, and nothing may have been forgotten.
#[test]
fn an_adoption_stands_on_what_it_was_compared_with() {
    let dir = tempfile::tempdir().unwrap();
    let mut registry = with_three(dir.path());
    let basis = Basis { compared_with: 3, generation: registry.generation() };
    assert_eq!(registry.check_basis(basis), Ok(()));
    registry.activate(1).unwrap();
    assert_eq!(registry.check_basis(basis), Err(Outdated::Serves(1)));
    registry.activate(3).unwrap();
    registry.refuse(&candidate(&registry, "base")).unwrap();
    assert_eq!(registry.check_basis(basis), Ok(()), "a candidate that was refused changes nothing");
    registry.start_trial(&candidate(&registry, "base"), 7).unwrap();
    assert_eq!(registry.check_basis(basis), Err(Outdated::OnTrial(5)));
    registry.activate(3).unwrap();
    // It is forgotten even if no adapter of this registry learned from it.
    registry.forget(&[], 3).unwrap();
    let (mut registry, _) = Registry::open(dir.path(), "base");
    assert_eq!(registry.check_basis(basis), Err(Outdated::Forgotten));
    let file = dir.path().join("import-x");
    std::fs::write(&file, "adopted").unwrap();
    let sum = sha256(&file).unwrap();
    assert_eq!(registry.adopt(&file, sum, "base", None, 0).unwrap(), 6);
    let (registry, trouble) = Registry::open(dir.path(), "base");
    assert_eq!((registry.active(), trouble), (6, None));
    assert!(!file.exists());
}

/// Each entry kept the ids of its offers for ever, and there was no last entry.
#[test]
fn a_registry_takes_as_much_room_after_a_year_as_after_half_of_it() {
    const UPDATES_A_DAY: u64 = 6;
    const LABELS: u64 = 80;
    const RETENTION_DAYS: u64 = 30;
    let mut index = Index::empty();
    let mut sizes = vec![];
    for day in 0..365 {
        for update in 0..UPDATES_A_DAY {
            let number = day * UPDATES_A_DAY + update;
            // The numbers have as many digits from the start.
            let first = 1_000_000 + number * LABELS;
            let mut entry = entry(100_000 + number as u32, "0".repeat(64));
            entry.labels = (first, first + LABELS - 1);
            entry.offers = (first..first + LABELS).map(|id| format!("{id:016x}")).collect();
            entry.report.steps_log = vec![StepLog::default(); 4];
            index.add(entry);
        }
        let first_kept = (day + 1).saturating_sub(RETENTION_DAYS) * UPDATES_A_DAY * LABELS;
        index.drop_offers_before(1_000_000 + first_kept);
        if day == 182 || day == 364 {
            sizes.push(index.clone().text().unwrap().len());
        }
    }
    assert_eq!(sizes[0], sizes[1]);
    assert_eq!(index.adapters.len(), index::ENTRIES_MAX);
    let named = index.adapters.iter().filter(|entry| !entry.offers.is_empty()).count() as u64;
    assert_eq!(named, RETENTION_DAYS * UPDATES_A_DAY);
}

/// The checksum is found however the text is laid out.
#[test]
fn a_registry_that_was_laid_out_for_people_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let registry = with_three(dir.path());
    let mut value = serde_json::to_value(&registry.index).unwrap();
    value["checksum"] = "".into();
    let text = serde_json::to_string_pretty(&value).unwrap();
    let sum = models::file::sha256_of(text.as_bytes());
    let text = text.replacen("\"checksum\": \"\"", &format!("\"checksum\": \"{sum}\""), 1);
    std::fs::write(dir.path().join(REGISTRY_FILE), text).unwrap();
    let (registry, trouble) = Registry::open(dir.path(), "base");
    assert_eq!((registry.active(), trouble), (3, None));
}
