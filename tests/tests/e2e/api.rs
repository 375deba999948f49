//! The HTTP API, asked as the clients ask that were written for other servers. Their requests are
//! those that they send, field by field.

use feedback::event::Outcome;
use serde_json::{Value, json};
use std::fs::Permissions;
use std::io::Write;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use tests::buffer::{Buffer, WEEK};
use tests::http::{Http, answer, free_port, switched_on};
use tests::{Home, Model, QUICK};

/// The text before the cursor of [`WEEK`], and the one behind it.
fn week() -> (&'static str, &'static str) {
    WEEK.split_once('|').expect("a cursor")
}

fn on() -> String {
    format!("{QUICK}{}", switched_on())
}

#[test]
fn every_dialect_gets_the_offer_that_an_editor_gets() {
    let home = Home::with(Model::Smol, &on());
    let editor = home.editor();
    let offer = Buffer::open(&editor, "a.rs", WEEK).complete().expect("an offer").insert_text;
    let http = Http::of(&home);
    let (before, after) = week();
    let openai = json!({"model": "any", "prompt": before, "suffix": after, "max_tokens": 64});
    assert_eq!(http.json("/v1/completions", &openai)["choices"][0]["text"], offer.as_str());
    let infill = json!({
        "input_prefix": "", "prompt": before, "input_suffix": after, "n_predict": 128,
        "response_fields": ["content", "timings/prompt_n"],
    });
    assert_eq!(http.json("/infill", &infill)["content"], offer.as_str());
    let completion = json!({"prompt": before, "n_predict": 128, "stop": []});
    assert_eq!(http.json("/completion", &completion)["content"], offer.as_str());
    let ollama = json!({"model": "any", "prompt": before, "suffix": after, "stream": false});
    assert_eq!(http.json("/api/generate", &ollama)["response"], offer.as_str());

    let (status, text) = http.post("/api/generate", &json!({"prompt": before, "suffix": after}));
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((status, &lines[0]["response"]), (200, &json!(offer)));
    assert_eq!(lines[1]["done"], true);
    let mut stream = openai;
    stream["stream"] = true.into();
    let (_, text) = http.post("/v1/completions", &stream);
    assert!(text.starts_with("data: {") && text.ends_with("data: [DONE]\n\n"), "{text}");

    for path in ["/v1/models", "/api/tags", "/api/version", "/health", "/"] {
        assert_eq!(http.get(path).0, 200, "{path}");
    }
    let shown = http.json("/api/show", &json!({"model": "any"}));
    assert!(shown["template"].as_str().unwrap().contains(".Suffix"));
    let said = home.output(&["why"]);
    assert!(said.contains("e2e-1.") && said.contains("An offer was shown"), "{said}");
}

/// Zed renders the prompt by itself, with the markers of the model that it thinks it asks.
#[test]
fn a_rendered_prompt_is_read_back() {
    let home = Home::with(Model::Qwen, &on());
    let _editor = home.editor();
    let http = Http::of(&home);
    let ask = |prompt: &str| {
        let body = json!({"model": "qwen2.5-coder", "prompt": prompt, "max_tokens": 64});
        http.post("/v1/completions", &body)
    };
    let (before, after) = ("def add(a, b):\n    return a", "\n\nprint(add(1, 2))\n");
    let text = |answer: (u16, String)| {
        assert_eq!(answer.0, 200, "{}", answer.1);
        let answer: Value = serde_json::from_str(&answer.1).unwrap();
        answer["choices"][0]["text"].as_str().unwrap().to_owned()
    };
    let plain = json!({"prompt": before, "suffix": after});
    let plain = http.json("/v1/completions", &plain)["choices"][0]["text"].clone();
    assert_eq!(plain, " + b");
    let psm = format!("<|fim_prefix|>{before}<|fim_suffix|>{after}<|fim_middle|>");
    let spm = format!("<|fim_suffix|>{after}<|fim_prefix|>{before}<|fim_middle|>");
    assert_eq!(text(ask(&psm)), plain);
    assert_eq!(text(ask(&spm)), plain);
    let (status, wrong) = ask(&format!("<PRE> {before} <SUF>{after} <MID>"));
    assert_eq!(status, 400);
    assert!(wrong.contains("Hone serves qwen2.5-coder"), "{wrong}");
    assert!(!wrong.contains("add"), "no code in an error");
    // A prompt that is longer than the model's context is cut, as an editor's document is.
    let long = format!("{}{before}", "# a line that says little\n".repeat(20_000));
    assert_eq!(
        text(ask(&format!("<|fim_prefix|>{long}<|fim_suffix|>{after}<|fim_middle|>"))),
        plain
    );
}

/// A model that knows no markers is shown the text before the cursor alone. Clients send a suffix
/// all the same, and those that render prompts are told not to.
#[test]
fn a_model_without_markers_is_asked_without_a_suffix() {
    let home = Home::with(Model::Smol, &on());
    let _editor = home.editor();
    let http = Http::of(&home);
    let (before, _) = week();
    let text = |client: &str, body: Value| {
        let request = http.request("POST", "/v1/completions", &body.to_string());
        let named = request.replace("User-Agent: e2e", &format!("User-Agent: {client}"));
        let (status, answer) = http.exchange(&named);
        assert_eq!(status, 200, "{answer}");
        let answer: Value = serde_json::from_str(&answer).unwrap();
        answer["choices"][0]["text"].as_str().unwrap().to_owned()
    };
    let offer = text("one", json!({"prompt": before}));
    assert!(!offer.is_empty());
    let after = "\nfn january() -> u32 {\n    31\n}\n";
    assert_eq!(text("two", json!({"prompt": before, "suffix": after})), offer);
    let rendered = format!("<|fim_prefix|>{before}<|fim_suffix|>{after}<|fim_middle|>");
    let (status, wrong) = http.post("/v1/completions", &json!({"prompt": rendered}));
    assert_eq!(status, 400);
    assert!(wrong.contains("send `prompt` and `suffix` without markers"), "{wrong}");
}

/// What llama.vim sends while its user accepts one offer, types along with the next, and leaves it.
#[test]
fn the_gate_learns_from_the_requests_alone() {
    let home = Home::with(Model::Smol, &on());
    let editor = home.editor();
    let http = Http::of(&home);
    let ask = |before: &str| {
        let body = json!({
            "input_prefix": "", "prompt": before, "input_suffix": "\n", "n_predict": 128,
            "response_fields": ["content"],
        });
        http.json("/infill", &body)["content"].as_str().unwrap().to_owned()
    };
    let pass = |ms| editor.advance_clock(ms).map(drop).expect("time passes");
    let (before, _) = week();
    let first = ask(before);
    assert!(!first.is_empty());
    // The client asks what would follow as soon as it shows the offer.
    let taken = format!("{before}{first}");
    let second = ask(&taken);
    let made = home.completions();
    assert_eq!(made.len(), 1, "that request is no offer so far");
    assert_eq!(home.outcomes(&made[0].id), []);
    // Tab, Enter, and the next line, in less time than it takes to type the offer.
    pass(1_000);
    let below = format!("{taken}\n// January, February, ");
    let third = ask(&below);
    assert!(!third.is_empty(), "{second:?}");
    assert_eq!(home.outcomes(&made[0].id).last().unwrap().0, Outcome::Accepted);
    let shown: Vec<_> =
        home.completions().into_iter().filter(|one| !one.shown.is_empty()).collect();
    let last = &shown.last().unwrap().id;
    pass(1_000);
    let along = ask(&format!("{below}{}", &third[..1]));
    assert_eq!(along, third[1..]);
    assert_eq!(home.outcomes(last), []);
    pass(1_000);
    ask(&format!("{below}{}#", &third[..1]));
    assert_eq!(home.outcomes(last).last().unwrap().0, Outcome::RejectedEdit);
    assert_eq!(home.status()["episodes"]["accepted"], 1);
}

#[test]
fn the_api_is_switched_on_and_off_and_says_what_a_plugin_needs() {
    let home = Home::with(Model::Smol, QUICK);
    let status = |home: &Home| -> Value {
        serde_json::from_str(&home.output(&["api", "status", "--json"])).unwrap()
    };
    assert_eq!(status(&home)["enabled"], false);
    let port = free_port().to_string();
    let said = home.output(&["api", "on", "--port", &port]);
    let http = Http::of(&home);
    assert!(said.contains(&format!("listens on http://127.0.0.1:{port}")), "{said}");
    assert!(said.contains(&http.token), "{said}");
    let mode = home.path().join("api-token").metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let (before, after) = week();
    let body = json!({"prompt": before, "suffix": after}).to_string();
    // The token as a part of the path, for clients that can send no header.
    let by_path = http.request("POST", &format!("/t/{}/v1/completions", http.token), &body);
    let by_path = by_path.replace(&format!("Authorization: Bearer {}\r\n", http.token), "");
    assert_eq!(http.exchange(&by_path).0, 200);
    let stranger = http.request("POST", "/v1/completions", &body).replace(&http.token, "0");
    assert_eq!(http.exchange(&stranger).0, 401);
    home.output(&["api", "off"]);
    assert_eq!(status(&home)["listening"], false);
    assert!(std::net::TcpStream::connect(("127.0.0.1", port.parse().unwrap())).is_err());
    // Paths have the token, and requests have code.
    let log = home.daemon_log();
    assert!(!log.contains(&http.token) && !log.contains("Monday"), "{log}");
}

#[test]
fn a_port_that_is_taken_is_told_with_one_that_is_free() {
    let home = Home::with(Model::Smol, QUICK);
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let error = home.error(&["api", "on", "--port", &port]);
    assert!(error.contains(&format!("port {port} is taken by ")), "{error}");
    if cfg!(target_os = "linux") {
        assert!(error.contains(&format!("(process {})", std::process::id())), "{error}");
    }
    assert!(error.contains("`hone api on --port "), "{error}");
    // The daemon lives, and the API listens once the port is free.
    drop(taken);
    home.output(&["api", "on"]);
    let http = Http::of(&home);
    assert_eq!(http.get("/health").0, 200);
    // The next attempt ended the port that worked, too.
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let error = home.error(&["api", "on", "--port", &port]);
    let kept = format!("port {} is kept: port {port} is taken by ", http.port);
    assert!(error.contains(&kept), "{error}");
    assert_eq!(http.get("/health").0, 200);
    assert_eq!(Http::of(&home).port, http.port);
}

#[test]
fn a_token_that_others_can_read_is_not_used() {
    let home = Home::with(Model::Smol, QUICK);
    let port = free_port().to_string();
    home.output(&["api", "on", "--port", &port]);
    home.output(&["api", "off"]);
    let path = home.path().join("api-token");
    std::fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
    let error = home.error(&["api", "on"]);
    assert!(error.contains("others can read this token (mode 644)"), "{error}");
    std::fs::remove_file(&path).unwrap();
    home.output(&["api", "on"]);
    assert_eq!(Http::of(&home).get("/health").0, 200);
}

/// The texts of HTTP clients counted as editors, also for the doctor.
#[test]
fn the_texts_of_http_clients_are_counted_apart_from_editors() {
    let home = Home::with(Model::Smol, &on());
    home.output(&["api", "on"]);
    Http::of(&home).json("/v1/completions", &json!({"prompt": week().0, "max_tokens": 4}));
    let daemon = || home.status()["daemon"].clone();
    let counts = |daemon: &Value| [daemon["sessions"].clone(), daemon["http_texts"].clone()];
    assert_eq!(counts(&daemon()), [0, 1]);
    let _editor = home.editor();
    assert_eq!(counts(&daemon()), [1, 1]);
}

/// The clients of the API start no daemon, so one that made way for another left them without any.
#[test]
fn a_daemon_that_serves_the_api_alone_is_started_again() {
    let home = Home::with(Model::Smol, &on());
    home.add(Model::Qwen);
    home.output(&["api", "on"]);
    let first = home.daemon_pid().expect("a daemon");
    assert_eq!(home.output(&["restart"]), "the daemon was started again\n");
    assert_ne!(home.daemon_pid().expect("another daemon"), first);
    assert_eq!(Http::of(&home).get("/health").0, 200);
    let said = home.output(&["model", "use", Model::Qwen.name()]);
    assert_eq!(said, "qwen2.5-coder-0.5b serves from now on\n");
    assert_eq!(home.status()["model"]["name"], Model::Qwen.name());
    let models = Http::of(&home).get("/v1/models").1;
    assert!(models.contains(Model::Qwen.name()), "{models}");
}

/// The file was read when the API began to listen and never again, so a token that was reported as
/// unused still opened, also after another was made.
#[test]
fn a_token_that_was_exposed_while_the_api_listens_opens_nothing_any_more() {
    let home = Home::with(Model::Smol, QUICK);
    home.output(&["api", "on", "--port", &free_port().to_string()]);
    let exposed = Http::of(&home);
    assert_eq!(exposed.get("/health").0, 200);
    let path = home.path().join("api-token");
    for command in [&["api"][..], &["api", "on"]] {
        std::fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        let error = home.error(command);
        assert!(error.contains("so it is not used"), "{error}");
        assert!(std::net::TcpStream::connect(("127.0.0.1", exposed.port)).is_err(), "{command:?}");
        std::fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        home.output(&["api", "on"]);
        assert_eq!(exposed.get("/health").0, 200, "it is the user's alone again");
    }
    std::fs::remove_file(&path).unwrap();
    home.output(&["api", "on"]);
    assert_eq!(exposed.get("/health").0, 401);
    assert_eq!(Http::of(&home).get("/health").0, 200);
}

/// Each client has a text of its own, and one that gives up leaves the others alone.
#[test]
fn fifty_clients_ask_at_once() {
    let home = Home::with(Model::Smol, &on());
    let _editor = home.editor();
    let http = Http::of(&home);
    let body = |client: usize| {
        let before = format!("// Client {client}: Monday, Tuesday, Wednesday, ");
        json!({"prompt": before, "suffix": "\n", "max_tokens": 4}).to_string()
    };
    let ask = |client: usize| {
        let request = http.request("POST", "/v1/completions", &body(client));
        request.replace("User-Agent: e2e", &format!("User-Agent: e2e{client}"))
    };
    std::thread::scope(|scope| {
        let asked: Vec<_> = (0..50)
            .map(|client| {
                let (http, request) = (&http, ask(client));
                scope.spawn(move || {
                    let mut stream = http.connect();
                    stream.write_all(request.as_bytes()).expect("it is sent");
                    // Every fifth closes at once.
                    (client % 5 > 0).then(|| answer(&mut stream))
                })
            })
            .collect();
        for asked in asked {
            let (status, text) = asked.join().unwrap().unwrap_or((200, String::new()));
            assert_eq!(status, 200, "{text}");
        }
    });
    assert_eq!(http.get("/health").0, 200);
}
