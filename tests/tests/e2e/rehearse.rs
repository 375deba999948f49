//! `hone rehearse` as its user runs it: with several arms over one stream, interrupted by Ctrl-C,
//! and resumed.

use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tests::git::git;
use tests::{Home, Model, PATIENT, hone};

/// The longest wait until a rehearsal has saved its state.
const PATIENCE: Duration = Duration::from_secs(240);

/// Settings with which 36 places are enough for several updates.
const LEARNS_QUICKLY: &str = "lab.batch_episodes=8,lab.ppo.lora_rank=2,\
                              lab.min_token_probability=0";

/// Six commits of one file each. The files are so similar that there is something to learn.
fn repository() -> TempDir {
    let repo = TempDir::new().unwrap();
    git(repo.path(), &["init", "--quiet"]);
    for name in ["north", "south", "east", "west", "front", "back"] {
        let text = format!(
            "class {name}:\n    def __init__(self, count):\n        self.count = count\n        \
             self.total = count * 2\n\n    def next(self):\n        self.count += 1\n        \
             return self.count\n"
        );
        fs::write(repo.path().join(format!("{name}.py")), text).unwrap();
        git(repo.path(), &["add", "."]);
        git(repo.path(), &["commit", "--quiet", "-m", name]);
    }
    repo
}

fn rehearse(repo: &Path, work: &Path, arms: &[&str]) -> Command {
    rehearse_places(36, repo, work, arms)
}

fn rehearse_places(limit: usize, repo: &Path, work: &Path, arms: &[&str]) -> Command {
    let mut command = Command::new(hone());
    command.args(["rehearse", "--json", "--save-every", "8", "--limit", &limit.to_string()]);
    command.arg("--repo").arg(repo).arg("--work").arg(work);
    command.arg("--model").arg(Model::Smol.file()).args(["--template", "prefix-only"]);
    for arm in arms {
        // One thread: next to other tests, threads that wait for each other use up the cores.
        let (name, kind) = arm.split_once('=').unwrap_or((arm, arm));
        let arm = if ["quick", "again"].contains(&name) {
            format!("{name}=ppo-demo,{LEARNS_QUICKLY},model.threads=1")
        } else {
            format!("{name}={kind},model.threads=1")
        };
        command.args(["--arm", &arm]);
    }
    command
}

fn report(mut command: Command) -> Value {
    let output = command.stderr(Stdio::inherit()).output().unwrap();
    assert!(output.status.success(), "{}", output.status);
    serde_json::from_slice(&output.stdout).expect("--json prints one object")
}

/// A report without measured times and without paths.
fn timeless(report: &Value) -> Value {
    const TIMES: [&str; 6] =
        ["latency_p50_ms", "latency_p95_ms", "elapsed_s", "ms", "cancel_rate", "path"];
    match report {
        Value::Object(fields) => fields
            .iter()
            .filter(|(name, _)| !TIMES.contains(&name.as_str()))
            .map(|(name, value)| (name.clone(), timeless(value)))
            .collect(),
        Value::Array(values) => values.iter().map(timeless).collect(),
        value => value.clone(),
    }
}

/// The places where two reports differ.
fn differences(a: &Value, b: &Value, at: &str) -> Vec<String> {
    match (a, b) {
        (Value::Object(x), Value::Object(y)) if x.keys().eq(y.keys()) => {
            x.iter().flat_map(|(key, a)| differences(a, &y[key], &format!("{at}.{key}"))).collect()
        }
        (Value::Array(x), Value::Array(y)) if x.len() == y.len() => {
            let each = x.iter().zip(y).enumerate();
            each.flat_map(|(i, (a, b))| differences(a, b, &format!("{at}[{i}]"))).collect()
        }
        _ if a == b => vec![],
        _ => vec![format!("{at}: {a} and {b}")],
    }
}

fn saved(work: &Path) -> bool {
    let folders = fs::read_dir(work).into_iter().flatten().flatten();
    folders.into_iter().any(|folder| folder.path().join("state.json").is_file())
}

#[test]
fn more_than_two_arms_run_one_after_the_other_over_one_stream() {
    let (repo, work) = (repository(), TempDir::new().unwrap());
    let arms = ["frozen", "gate", "quick", "again"];
    let report = report(rehearse(repo.path(), work.path(), &arms));
    let rehearsal = &report["rehearsals"][0];
    assert_eq!(rehearsal["places"], 36);
    let arms = rehearsal["arms"].as_array().unwrap();
    let names: Vec<_> = arms.iter().map(|arm| arm["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["frozen", "gate", "quick", "again"]);
    let shown = |arm: usize| arms[arm]["total"]["shown"].as_u64().unwrap();
    assert!(shown(0) > 0 && shown(1) <= shown(0), "a gate adds nothing");
    assert!(!arms[2]["updates"].as_array().unwrap().is_empty(), "{:#}", arms[2]);
    let [mut first, mut last] = [2, 3].map(|arm| timeless(&arms[arm]));
    (first["name"], last["name"]) = (Value::Null, Value::Null);
    assert_eq!(
        differences(&first, &last, ""),
        [""; 0],
        "an arm with cached prompts must have the results of the arm that computed them"
    );
    let left: Vec<_> = fs::read_dir(work.path()).unwrap().flatten().map(|e| e.path()).collect();
    assert!(left.iter().all(|path| path.extension().is_none()), "prompts are left: {left:?}");
}

/// The habits of the people are drawn by the seed, so two arms of one kind meet the same people.
#[test]
fn people_type_the_same_stream_into_every_arm() {
    let (repo, work) = (repository(), TempDir::new().unwrap());
    let told = |seed: &str, work: &Path| {
        let mut command = rehearse(repo.path(), work, &["one=frozen", "other=frozen"]);
        command.args(["--developer", "person", "--seed", seed]);
        report(command)
    };
    let people = told("3", &work.path().join("a"));
    assert_eq!(people["developer"], "person");
    let [mut one, mut other] = [0, 1].map(|arm| timeless(&people["rehearsals"][0]["arms"][arm]));
    (one["name"], other["name"]) = (Value::Null, Value::Null);
    assert_eq!(differences(&one, &other, ""), [""; 0]);
    let total = &one["total"];
    assert!(total["accepted"].as_u64().unwrap() < total["shown"].as_u64().unwrap(), "{total}");
    assert_eq!(one["labels"]["not_given"], 0, "{}", one["labels"]);
    let others = told("4", &work.path().join("b"));
    assert_ne!(differences(&timeless(&people), &timeless(&others), ""), [""; 0]);
}

#[test]
fn what_the_base_said_in_one_arm_is_not_computed_in_the_next() {
    let (repo, work) = (repository(), TempDir::new().unwrap());
    let arms_of = |arms: &[&str]| {
        let mut command = rehearse(repo.path(), work.path(), arms);
        command.arg("--keep-prompts");
        let told = report(command);
        told["rehearsals"][0]["arms"].as_array().unwrap().clone()
    };
    // An answer that is computed is written; one from the cache is not.
    let written = || -> BTreeMap<_, _> {
        let files = fs::read_dir(work.path().join("prompts/answers")).unwrap().flatten();
        files.map(|file| (file.file_name(), file.metadata().unwrap().modified().unwrap())).collect()
    };
    arms_of(&["frozen", "gate", "other=gate"]);
    let before = written();
    assert!(before.len() > 10, "{}", before.len());
    let arms = arms_of(&["frozen", "gate", "other=gate", "twin=frozen"]);
    assert_eq!(written(), before);
    let [mut frozen, mut twin] = [0, 3].map(|arm| timeless(&arms[arm]));
    (frozen["name"], twin["name"]) = (Value::Null, Value::Null);
    assert_eq!(differences(&frozen, &twin, ""), [""; 0]);
}

#[test]
fn an_interrupted_rehearsal_continues() {
    let repo = repository();
    let (whole, parts) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let arms = ["frozen", "quick"];
    let expected = report(rehearse(repo.path(), whole.path(), &arms));
    let learned = &expected["rehearsals"][0]["arms"][1];
    assert!(!learned["updates"].as_array().unwrap().is_empty());
    assert!(learned["total"]["adapter_version"].as_u64() >= Some(1), "{learned:#}");
    assert!(learned["learned"]["kl_base"].as_f64() > Some(0.0));

    let mut running = rehearse(repo.path(), parts.path(), &arms);
    let temporary = TempDir::new().unwrap();
    running.env("TMPDIR", temporary.path());
    let mut running = running.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let begun = Instant::now();
    while !saved(parts.path()) {
        assert!(begun.elapsed() < PATIENCE, "nothing was saved");
        assert!(
            running.try_wait().unwrap().is_none(),
            "the rehearsal ended before it was interrupted"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    let pid = running.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    assert_eq!(running.wait().unwrap().code(), Some(130));
    // A home was left if the daemons were just being started again, as they are after a save.
    let left = fs::read_dir(temporary.path()).unwrap().count();
    assert_eq!(left, 0, "the homes and the working tree are gone");

    let resumed = report(rehearse(repo.path(), parts.path(), &arms));
    assert_eq!(differences(&timeless(&expected), &timeless(&resumed), ""), [""; 0]);
    let again = report(rehearse(repo.path(), parts.path(), &arms));
    assert_eq!(differences(&resumed, &again, ""), [""; 0], "a finished rehearsal is not run again");
}

/// There is no model in this home, which would be told next.
#[test]
fn a_report_that_cannot_be_written_is_told_first() {
    let home = Home::empty();
    for option in ["--report", "--svg"] {
        let path = home.path().join("none/file").display().to_string();
        let error = home.error(&["rehearse", option, &path]);
        assert!(error.starts_with(&path) && error.contains("cannot be written"), "{error}");
    }
}

/// Returns what the prompts of Ada's commit quote. It uses a file of Grace's commit, which nobody
/// opens.
fn quoted(arguments: &[&str]) -> Vec<String> {
    let (repo, temporary) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    git(repo.path(), &["init", "--quiet"]);
    let names = ["price", "weight", "height", "colour"];
    let define = |name| {
        format!("def {name}_of_parcel(parcel, scale):\n    return parcel.{name} * scale\n\n\n")
    };
    let call = |name| format!("print({name}_of_parcel(parcel, scale))\n");
    let begun = "from parcels import price_of_parcel, weight_of_parcel\n\n".to_owned();
    let write = |name: &str, text: &str| fs::write(repo.path().join(name), text).unwrap();
    write("parcels.py", &names.map(define).concat());
    write("main.py", &begun);
    git(repo.path(), &["add", "."]);
    git(repo.path(), &["commit", "--quiet", "-m", "x", "--author", "Grace <grace@example.org>"]);
    write("main.py", &(begun + &names.map(call).concat()));
    git(repo.path(), &["commit", "--quiet", "--all", "-m", "y"]);

    let mut command = Command::new(hone());
    command.args(["rehearse", "--json", "--limit", "6", "--author", "Ada", "--keep-homes"]);
    command.args(["--arm", "frozen=frozen,completion.context_chars=3000,model.threads=1"]);
    command.args(["--template", "qwen2.5-coder"]).args(arguments).arg("--repo").arg(repo.path());
    command.arg("--model").arg(Model::Qwen.file()).env("TMPDIR", temporary.path());
    let output = command.output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{told}");
    let (_, home) = told.trim().rsplit_once("HONE_HOME=").expect("--keep-homes names the home");
    let left = fs::read_dir(temporary.path()).unwrap().flatten();
    let left: Vec<_> = left.map(|entry| entry.path()).collect();
    assert_eq!(left, [Path::new(home)], "the working tree is gone");

    let events = Command::new(hone())
        .args(["events", "--json", "--with-code"])
        .env("HONE_HOME", home)
        .output();
    let events = String::from_utf8(events.unwrap().stdout).unwrap();
    let events = events.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let completions: Vec<Value> = events.filter(|event| event["event"] == "completion").collect();
    assert!(completions.len() > 3, "{}", completions.len());
    let name = repo.path().file_name().unwrap().to_str().unwrap();
    let quoted = completions.iter().filter_map(|event| event["context"].as_array()).flatten();
    let quoted = quoted.filter_map(|path| path.as_str());
    quoted.map(|path| path.replace(name, "REPO")).collect()
}

#[test]
fn the_daemon_can_read_the_files_that_the_author_of_the_commit_had() {
    let with_tree = quoted(&[]);
    assert!(with_tree.iter().any(|path| path.ends_with("/REPO/parcels.py")), "{with_tree:?}");
    assert_eq!(quoted(&["--no-tree"]), [""; 0]);
}

/// Commits in a language with brackets and quotes. Some files end without a line break.
fn repository_with_brackets() -> TempDir {
    let repo = TempDir::new().unwrap();
    git(repo.path(), &["init", "--quiet"]);
    for (index, name) in ["north", "south", "east", "west"].into_iter().enumerate() {
        let end = if index % 2 == 0 { "" } else { "\n" };
        let text = format!(
            "const {name} = {{\n  label: '{name}',\n  count: 0,\n  next(step) {{\n    \
             this.count += step;\n    return call(this.count, [this.label, \"{name}\"]);\n  }},\n  \
             all(items) {{\n    return items.map((item) => {{\n      return item.label;\n    \
             }});\n  }},\n}};\n\nmodule.exports = {{ {name} }};{end}"
        );
        fs::write(repo.path().join(format!("{name}.js")), text).unwrap();
        git(repo.path(), &["add", "."]);
        git(repo.path(), &["commit", "--quiet", "-m", name]);
    }
    repo
}

/// A formatter, another tool and a second cursor edit while offers stand. None of it is a verdict.
#[test]
fn no_label_comes_from_anybody_but_the_developer() {
    let (repo, work) = (repository_with_brackets(), TempDir::new().unwrap());
    let rehearsed = |noise: &[&str]| {
        let frozen = "frozen=frozen,lab.min_token_probability=0";
        let mut command = rehearse_places(100, repo.path(), work.path(), &[frozen]);
        command.args(noise);
        report(command)["rehearsals"][0]["arms"][0].clone()
    };
    let noisy = rehearsed(&["--noise", "formatter,auto-import,second-cursor,typo"]);
    let labels = &noisy["labels"];
    assert_eq!(labels["not_given"], 0, "{labels:#}");
    let accepted = labels["daemon"]["accepted"].as_u64();
    let rejected = labels["daemon"]["rejected_edit"].as_u64();
    assert!(accepted > Some(0) && rejected > Some(10), "{labels:#}");
    let superseded = labels["daemon"]["superseded"].as_u64();
    assert!(superseded > Some(0), "a formatter has rewritten the line of an offer: {labels:#}");
    let calm = rehearsed(&[]);
    assert_eq!(calm["labels"]["not_given"], 0, "{:#}", calm["labels"]);
}

/// A short stream spans many commits if each of them may have only a few places.
#[test]
fn the_places_of_one_commit_can_be_limited() {
    let (repo, work) = (repository(), TempDir::new().unwrap());
    let mut command = rehearse(repo.path(), work.path(), &["frozen"]);
    command.args(["--per-commit", "4"]);
    let told = report(command);
    let rehearsal = &told["rehearsals"][0];
    assert_eq!((&rehearsal["places"], &rehearsal["ended_by"]), (&24.into(), &"history".into()));
    assert_eq!(rehearsal["commits"].as_array().unwrap().len(), 6);
}

#[test]
fn the_end_is_three_sentences_and_the_table_is_asked_for() {
    let (repo, work) = (repository(), TempDir::new().unwrap());
    let printed = |arguments: &[&str]| {
        let mut command = Command::new(hone());
        command.args(["rehearse", "--limit", "12", "--arm", "frozen", "--arm", "gate"]);
        command.args(["--template", "prefix-only"]).args(arguments);
        command.arg("--repo").arg(repo.path()).arg("--work").arg(work.path());
        let output = command.arg("--model").arg(Model::Smol.file()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    let summary = printed(&[]);
    assert!(summary.contains("paused at 12 places"), "{summary}");
    let words = summary.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("because 1 commit is too few: it takes 8."), "{summary}");
    assert!(!summary.contains('│'), "{summary}");
    let with_table = printed(&["--table"]);
    assert!(with_table.contains("quarter") && with_table.contains('│'), "{with_table}");
}

/// Twelve places are too few to show anything, so the user's own Hone stays as it is.
#[test]
fn what_is_not_better_is_not_adopted() {
    let (repo, home) = (repository(), Home::with(Model::Smol, PATIENT));
    let refused = |repositories: usize| {
        let mut command = Command::new(hone());
        command.args(["rehearse", "--adopt", "--limit", "12", "--template", "prefix-only"]);
        for _ in 0..repositories {
            command.arg("--repo").arg(repo.path());
        }
        let output = command.env("HONE_HOME", home.path()).output().expect("hone runs");
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8(output.stderr).expect("UTF-8")
    };
    let error = refused(1);
    let reasons = ["too few to tell", "too little was offered"];
    assert!(reasons.iter().any(|why| error.contains(why)), "{error}");
    assert!(error.contains("nothing is adopted: "), "{error}");
    assert_eq!(home.status()["adapter"]["active"], 0);
    assert!(!home.path().join("adapters/gate-prior.json").exists());
    let error = refused(2);
    assert!(error.contains("--adopt rehearses on one repository"), "{error}");
}

/// The program is run between two files, and the daemon answers it. If it fails, so does the
/// rehearsal, which would otherwise report something else than was asked for.
#[test]
fn a_program_of_the_users_is_run_after_so_many_places() {
    let (repo, work) = (repository(), TempDir::new().unwrap());
    let (visit, visits) = (work.path().join("visit.sh"), work.path().join("visits"));
    let ending_with = |status: u8| {
        let hone = hone();
        let script = format!(
            "#!/bin/sh\n{} status --json > {}.json || exit 1\necho $HONE_REHEARSAL_ARM >> {}\n\
             exit {status}\n",
            hone.display(),
            visits.display(),
            visits.display()
        );
        fs::write(&visit, script).unwrap();
        fs::set_permissions(&visit, Permissions::from_mode(0o755)).unwrap();
        let mut command = rehearse_places(20, repo.path(), work.path(), &["frozen"]);
        command.arg("--run").arg(&visit).args(["--every", "8"]);
        command
    };
    let failed = ending_with(3).output().unwrap();
    let said = String::from_utf8_lossy(&failed.stderr);
    assert!(!failed.status.success() && said.contains("visit.sh ended with"), "{said}");
    fs::remove_file(&visits).unwrap();
    report(ending_with(0));
    assert_eq!(fs::read_to_string(&visits).unwrap(), "frozen\nfrozen\n");
    let status = fs::read(visits.with_extension("json")).unwrap();
    let status: Value = serde_json::from_slice(&status).unwrap();
    assert!(status["daemon"]["pid"].is_number(), "{status}");
}
