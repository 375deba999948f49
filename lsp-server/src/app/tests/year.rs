//! A year of daily use on a manual clock: what is kept follows what is in use.

use super::*;
use adapters::registry::{AdapterCandidate, Entry};
use feedback::testing::accepted;
use models::file::sha256;

const DAY_MS: u64 = 24 * 60 * 60 * 1000;
const RETENTION_DAYS: u32 = 30;
const OFFERS_A_DAY: u64 = 10;

/// The days between two updates.
const UPDATE_DAYS: u64 = 7;

/// What is kept: events, bytes of the checkpoint, adapter files, offers that the registry names,
/// and bytes of the other files.
#[derive(Debug)]
struct Kept([u64; 5]);

impl Kept {
    async fn by(app: &App) -> Kept {
        let (recorder, registry) = (&app.services.recorder, app.services.adapters.serving());
        let mut events = 0;
        let count = &mut |_| {
            events += 1;
            ControlFlow::Continue(())
        };
        recorder.log().scan(0, count).unwrap();
        let inputs = DerivedInputs::of(&registry, "base");
        let derived = DerivedState::of(&**recorder.log(), &inputs).unwrap();
        let files = |folder: PathBuf| std::fs::read_dir(folder).unwrap().map(Result::unwrap);
        let is_adapter = |file: &std::fs::DirEntry| {
            file.path().extension().is_some_and(|ending| ending == "gguf" || ending == "optimizer")
        };
        let named = registry.entries().iter().flat_map(|entry| &entry.offers);
        let bytes = files(app.paths.data()).map(|file| file.metadata().unwrap().len());
        Kept([
            events,
            derived.checkpoint(0).unwrap().content.len() as u64,
            files(app.paths.adapters()).filter(is_adapter).count() as u64,
            named.count() as u64,
            bytes.sum(),
        ])
    }
}

/// Learns from these offers.
async fn update(app: &App, offers: Vec<String>, last_label: u64) {
    let change = app.services.adapters.change().await;
    let promote = move |registry: &mut Registry| {
        let (adapter, optimizer) = registry.job_files("j");
        std::fs::write(&adapter, "adapter")?;
        std::fs::write(&optimizer, "state")?;
        let made = adapters::testing::entry(registry.next_version(), sha256(&adapter)?);
        let (parent, labels) = (registry.head(), (0, last_label));
        let entry = Entry { parent, labels, offers, ..made };
        registry.promote(&AdapterCandidate { entry, adapter, optimizer: Some(optimizer) })
    };
    change.commit(promote).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_kept_after_a_year_is_what_is_kept_after_half_of_it() {
    let (_folder, home) = home();
    let (log, clock) =
        (Arc::new(MemoryLog::default()), Arc::new(ManualClock::starting_at(20_000 * DAY_MS)));
    let engine = fixtures::engine(&["x"]);
    let app = testing::app::start(&home, without_retention(), engine, clock.clone(), log).await;
    let (mut offers, mut kept) = (vec![], vec![]);
    for day in 0..365 {
        clock.advance(DAY_MS);
        for number in 0..OFFERS_A_DAY {
            let id = format!("{:08}", day * OFFERS_A_DAY + number);
            app.services.recorder.record(vec![completion(&id, "/project/a.rs"), accepted(&id)]);
            offers.push(id);
        }
        if day % UPDATE_DAYS == 0 {
            let last = app.services.recorder.next_seq() - 1;
            update(&app, std::mem::take(&mut offers), last).await;
        }
        retention::forget_older(&app, RETENTION_DAYS, clock.unix_ms()).await.unwrap();
        // Both fall on the same day between two updates.
        if day == 182 || day == 364 {
            kept.push(Kept::by(&app).await);
        }
    }
    let [half, year] = kept.try_into().unwrap();
    for (half, year) in half.0.iter().zip(year.0) {
        // Some numbers have one more digit.
        assert!(*half > 0 && year <= half + half / 20, "after half of it {half}, then {year}");
    }
}
