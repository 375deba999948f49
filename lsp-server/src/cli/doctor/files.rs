//! The program, the folder with its files, and the settings.

use super::{Check, Patient};
use crate::app::startup::{self, NEXT_EDIT_MODEL};
use host::platform::files::{free_room, is_executable};
use models::size::Size;
use settings::Config;

/// Less free room than this, in bytes, and learning and pulling may fail.
const ROOM_MIN: u64 = 1 << 30;

pub fn program(patient: &Patient) -> Vec<Check> {
    const NAME: &str = "program";
    let this = &patient.around.program;
    let shown = format!("{}, {}", this.display(), build());
    let on_path = patient.around.on_path("hone");
    let first = match on_path {
        Some(path) if patient.around.is_this(&path) => Check::good(NAME, shown),
        Some(other) => Check::note(
            NAME,
            format!("{shown}; PATH has another one first: {}", other.display()),
            "remove the other one, or put this program's folder before it in PATH",
        ),
        None => Check::note(
            NAME,
            format!("{shown}; it is not on PATH"),
            "add its folder to PATH, or name its path in the editor's settings",
        ),
    };
    let learner = startup::learner_program().ok();
    let is_there = learner.as_ref().is_some_and(|path| is_executable(path));
    if is_there {
        return vec![first];
    }
    let missing = Check::wrong(
        NAME,
        "hone-learner is not in its folder, so nothing can be learned",
        "install all programs of the archive into one folder",
    );
    vec![first, missing]
}

/// What this program computes on.
fn build() -> &'static str {
    if cfg!(feature = "cuda") {
        "built for CUDA"
    } else if cfg!(feature = "vulkan") {
        "built for Vulkan"
    } else if cfg!(feature = "metal") {
        "built for Metal"
    } else {
        "built for the CPU"
    }
}

pub fn home(patient: &Patient) -> Vec<Check> {
    const NAME: &str = "files";
    let folder = patient.home.paths().home;
    if let Err(error) = patient.home.create() {
        let error = format!("{error:#}");
        let (found, fix) = error.rsplit_once("; ").unwrap_or((&error, "set HONE_HOME"));
        return vec![Check::wrong(NAME, found, fix)];
    }
    let found = format!("{}, private to you", folder.display());
    vec![match free_room(&folder) {
        Some(room) if room < ROOM_MIN => Check::note(
            NAME,
            format!("{found}; {} are free there", Size(room)),
            "free some room: models, adapters and the log need it",
        ),
        Some(room) => Check::good(NAME, format!("{found}; {} free", Size(room))),
        None => Check::good(NAME, found),
    }]
}

pub fn settings(patient: &Patient) -> Vec<Check> {
    const NAME: &str = "settings";
    let file = patient.home.config_file();
    let (config, problems) = Config::usable(&file);
    let mut checks: Vec<_> = problems
        .iter()
        .map(|problem| {
            // The value may be private, such as a pattern that names a client's folder.
            let public = settings::Problem { value: None, ..problem.clone() };
            let fix = match &*problem.key {
                "" => "correct the line in an editor, or remove it".to_owned(),
                key => format!("`hone config set {key}` takes it out of the file"),
            };
            Check::wrong(NAME, public.at(&file), fix)
        })
        .collect();
    // The first of them are those of the file, and the others are about models.
    let others = patient.configured.problems.iter().skip(problems.len());
    let use_another =
        "`hone model list` shows the known models, and `hone model use NAME` chooses one";
    let set_another = format!("`hone config set {NEXT_EDIT_MODEL} NAME` names another");
    checks.extend(others.map(|problem| {
        let is_of_next_edits = problem.contains(&format!(" {NEXT_EDIT_MODEL}: "));
        Check::wrong(NAME, problem, if is_of_next_edits { &*set_another } else { use_another })
    }));
    if checks.is_empty() {
        checks.push(Check::good(NAME, changed(&config)));
    }
    if !config.completion.enabled {
        let found = "completions are paused, except when you invoke them";
        checks.push(Check::note(NAME, found, "`hone resume completions` turns them on again"));
    }
    checks
}

/// The names of the settings that are not as they come. Their values may be private.
fn changed(config: &Config) -> String {
    let json = |config: &Config| config.to_json().unwrap_or_default();
    let mut names = vec![];
    differing("", &json(config), &json(&Config::default()), &mut names);
    match &*names {
        [] => "all have their defaults".into(),
        names => format!("{} changed: {}", names.len(), names.join(", ")),
    }
}

fn differing(
    key: &str,
    value: &serde_json::Value,
    usual: &serde_json::Value,
    names: &mut Vec<String>,
) {
    match (value.as_object(), usual.as_object()) {
        // The languages that are named stay unnamed here.
        (Some(table), Some(others)) if !others.is_empty() => {
            for (name, value) in table {
                let key = if key.is_empty() { name.clone() } else { format!("{key}.{name}") };
                differing(&key, value, &usual[name], names);
            }
        }
        _ if value != usual => names.push(key.to_owned()),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_settings_are_named_without_their_values() {
        let mut config = Config::default();
        assert_eq!(changed(&config), "all have their defaults");
        config.completion.ignore.push("~/clients/acme/".into());
        config.completion.languages.insert("cobol".into(), false);
        config.lab.ppo.epochs = 3;
        let told = changed(&config);
        assert_eq!(told, "3 changed: completion.ignore, completion.languages, lab.ppo.epochs");
    }
}
