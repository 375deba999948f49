use super::*;
use adapters::registry::{AdapterCandidate, Registry};
use feedback::job::LearnerLine;
use feedback::testing::accepted;
use host::paths::Paths;
use models::file::sha256;
use services::derived_state::{DerivedInputs, DerivedState};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

/// A learner that writes both files of its job and reports another checksum.
fn lying_learner(home: &Paths) -> LearnerProgram {
    let report =
        UpdateReport { job: "JOB".into(), adapter_sha256: "no".into(), ..UpdateReport::default() };
    let line = serde_json::to_string(&LearnerLine::Done(Box::new(report))).unwrap();
    let script = format!(
        r#"#!/bin/sh
read -r job || exit 0
field() {{ printf '%s' "$job" | grep -o "\"$1\":\"[^\"]*\"" | head -n 1 | cut -d '"' -f 4; }}
echo written > "$(field adapter_out)"
echo written > "$(field optimizer_out)"
echo '{line}' | sed "s/JOB/$(field id)/"
exec sleep 1000
"#
    );
    let path = home.adapters().with_file_name("learner.sh");
    std::fs::write(&path, script).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700)).unwrap();
    LearnerProgram { path, prompt_cache: None }
}

/// A home with the files of an adapter v1, and with this registry if there is one.
fn home_with(folder: &tempfile::TempDir, registry: Option<&str>) -> (Paths, [PathBuf; 2]) {
    let home = Paths::at(folder.path().into());
    home.create().unwrap();
    let files = ["v0001.gguf", "v0001.optimizer"].map(|name| home.adapters().join(name));
    for file in &files {
        std::fs::write(file, "the first adapter's").unwrap();
    }
    if let Some(text) = registry {
        std::fs::write(home.adapters().join("registry.json"), text).unwrap();
    }
    (home, files)
}

/// Runs `hone learn` with one waiting label, and waits until the update has ended.
async fn learn_now(home: &Paths) -> (Arc<Services>, Option<String>) {
    let services = fixtures::scripted::start_in(home).await;
    let recorder = &services.recorder;
    recorder.record(vec![fixtures::completion("o", "/a.rs"), accepted("o")]);
    assert_eq!(recorder.labels_waiting(), 1);
    let (learn, asked) = mpsc::channel(1);
    learn.send(()).await.unwrap();
    drop(learn);
    let (status, preemption) = (watch::Sender::default(), Arc::default());
    let seen = status.subscribe();
    let program = lying_learner(home);
    Supervisor::new(services.clone(), status, program, preemption).run(asked).await;
    let failure = seen.borrow().failure.clone();
    (services, failure)
}

/// The prompts of a batch may need more memory than there is for them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_update_has_left_out_waits_for_the_next_one() {
    let folder = tempfile::tempdir().unwrap();
    let (home, _) = home_with(&folder, None);
    let services = fixtures::scripted::start_in(&home).await;
    let recorder = &services.recorder;
    for id in ["a", "b"] {
        recorder.record(vec![fixtures::completion(id, "/a.rs"), accepted(id)]);
    }
    let batch = recorder.take_batch(9).unwrap();
    assert_eq!(recorder.labels_waiting(), 0);
    let (status, preemption) = (watch::Sender::default(), Arc::default());
    let program = lying_learner(&home);
    let supervisor = Supervisor::new(services.clone(), status, program, preemption);
    supervisor.learned(batch, &["a".to_owned()]);
    assert_eq!(recorder.labels_waiting(), 1);
    assert_eq!(*recorder.label_changes().borrow(), 1, "whoever waits for labels knows");
    assert_eq!(recorder.take_batch(9).unwrap().offers(), ["a"]);
}

/// The labels of a batch that was set aside lie before those of a later one, up to which all
/// counted as learned. After a restart none of them was learned from.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_labels_of_a_batch_that_was_set_aside_wait_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let (home, _) = home_with(&folder, None);
    let services = fixtures::scripted::start_in(&home).await;
    let recorder = &services.recorder;
    for id in ["a", "b"] {
        recorder.record(vec![fixtures::completion(id, "/a.rs"), accepted(id)]);
    }
    let (suspect, batch) = (recorder.take_batch(1).unwrap(), recorder.take_batch(1).unwrap());
    assert_eq!((suspect.offers(), batch.offers()), (vec!["a".into()], vec!["b".into()]));
    let (status, preemption) = (watch::Sender::default(), Arc::default());
    let program = lying_learner(&home);
    let mut supervisor = Supervisor::new(services.clone(), status, program, preemption);
    supervisor.suspect = Some(suspect);
    let left_out = supervisor.set_aside(&batch.offers());
    assert_eq!(left_out, ["a"]);

    let (mut registry, _) = Registry::open(&home.adapters(), "base");
    let (adapter, _) = registry.job_files("j");
    std::fs::write(&adapter, "adapter").unwrap();
    let mut entry = adapters::testing::entry(registry.next_version(), sha256(&adapter).unwrap());
    (entry.labels, entry.offers) = (batch.span(), batch.offers());
    entry.report.left_out = left_out.clone();
    registry.promote(&AdapterCandidate { entry, adapter, optimizer: None }).unwrap();
    let inputs = DerivedInputs::of(&registry, "base");
    let mut again = DerivedState::of(&**recorder.log(), &inputs).unwrap();
    assert_eq!(again.fold.take_batch(9).unwrap().offers(), ["a"]);

    supervisor.learned(batch, &left_out);
    assert_eq!(recorder.labels_waiting(), 0, "it is tried once more");
    recorder.return_batch(supervisor.suspect.take().unwrap());
    assert_eq!(recorder.take_batch(9).unwrap().offers(), ["a"]);
}

/// A registry that cannot be read looks empty, so the next number seemed to be 1. An
/// update that was asked for trained into `v0001.gguf` and `v0001.optimizer`, could not
/// be registered, and was cleared away: the adapter that was there was lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_update_runs_that_the_registry_would_refuse() {
    for registry in ["", "{\"format\": 3, \"active\":", "{\"format\": 99}"] {
        let folder = tempfile::tempdir().unwrap();
        let (home, files) = home_with(&folder, Some(registry));
        let (services, _) = learn_now(&home).await;
        for file in files {
            assert_eq!(std::fs::read(&file).unwrap(), b"the first adapter's", "{file:?}");
        }
        let text = std::fs::read_to_string(home.adapters().join("registry.json")).unwrap();
        assert_eq!(text, registry);
        assert_eq!(services.recorder.labels_waiting(), 1, "the label still waits");
        let reason = services.adapters.learning_refusal().unwrap();
        assert!(reason.contains("registry.json"), "{reason}");
    }
}

/// A registry that was lost, or a copy of it that is a little older, does not name every
/// adapter in the folder. The learner wrote over the files of the one whose number came
/// next, and where its update failed they were removed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_writes_into_files_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let (home, files) = home_with(&folder, None);
    let (_services, failure) = learn_now(&home).await;
    let reason = failure.unwrap();
    assert!(reason.contains("not what the learner said it wrote"), "{reason}");
    for file in files {
        assert_eq!(std::fs::read(&file).unwrap(), b"the first adapter's", "{file:?}");
    }
    let count = std::fs::read_dir(home.adapters()).unwrap().count();
    assert_eq!(count, 2, "the files of the failed update are gone");
}
