//! Requests as the clients send them, field by field, and what they read of the answers.

use super::*;
use crate::{Around, Ended, File};
use models::fim::{template, templates};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use serde_json::json;

fn model() -> Model {
    Model {
        name: "qwen2.5-coder-0.5b".into(),
        architecture: "qwen2".into(),
        sha256: "ab".into(),
        bytes: 7,
        template: template("qwen2.5-coder").unwrap(),
    }
}

fn asked(path: &str, body: Value) -> Result<Asked, Trouble> {
    Route::of(path).read(body.to_string().as_bytes(), "curl", &model())
}

fn answered(path: &str, body: Value) -> (Request, Reply) {
    let asked = asked(path, body).unwrap();
    let answer = Answer { text: "b\n".into(), ended: Ended::ByItself, tokens: 2 };
    let reply = asked.reply(&answer, &model());
    assert_eq!(reply.status, StatusCode::OK);
    (asked.request, reply)
}

fn json(reply: &Reply) -> Value {
    assert_eq!(reply.content_type, JSON);
    serde_json::from_str(&reply.body).unwrap()
}

/// The JSON in the lines of a stream, and what else stands there.
fn events(reply: &Reply, content_type: &str, begin: &str) -> (Vec<Value>, Vec<String>) {
    assert_eq!(reply.content_type, content_type);
    let lines = reply.body.lines().filter(|line| !line.is_empty());
    let lines = lines.map(|line| line.strip_prefix(begin).unwrap());
    let (values, others): (Vec<_>, Vec<_>) =
        lines.partition(|line| serde_json::from_str::<Value>(line).is_ok_and(|v| v.is_object()));
    let values = values.into_iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    (values, others.into_iter().map(str::to_owned).collect())
}

fn around(before: &str, after: &str) -> Around {
    Around { before: before.into(), after: after.into() }
}

/// The bodies that the readers are tried with. The prompts' and the guard's own tests make these a
/// million hostile requests.
const ROUNDS: usize = 400_000;

const QWEN: &str = "<|fim_prefix|>a<|fim_suffix|>c<|fim_middle|>";

#[test]
fn zed_asks_openai_with_the_markers_in_the_prompt() {
    let body = json!({
        "model": "qwen2.5-coder", "prompt": QWEN, "max_tokens": 64, "temperature": null,
        "stop": ["<|endoftext|>", "<|file_sep|>"],
    });
    let (request, reply) = answered("/v1/completions", body);
    assert_eq!(request.around, around("a", "c"));
    assert_eq!(request.limits.max_tokens, Some(64));
    assert_eq!(request.limits.stop, ["<|endoftext|>", "<|file_sep|>"]);
    assert!(request.client.asks == Asks::Plainly && !request.is_warming);
    let answer = json(&reply);
    assert_eq!(answer["choices"][0]["text"], "b\n");
    assert_eq!(answer["choices"][0]["finish_reason"], "stop");
    assert!(answer["id"].is_string() && answer["created"].is_u64(), "{answer}");
    assert_eq!(answer["object"], "text_completion");
    assert_eq!(answer["usage"]["completion_tokens"], 2);
}

#[test]
fn minuet_asks_openai_with_a_suffix_and_reads_a_stream() {
    let body = json!({
        "model": "qwen", "prompt": "# language: python\na", "suffix": "c", "max_tokens": 56,
        "top_p": 0.9, "stream": true,
    });
    let (request, reply) = answered("/v1/completions", body);
    assert_eq!(request.around, around("# language: python\na", "c"));
    let (parts, others) = events(&reply, EVENTS, "data: ");
    assert_eq!(others, ["[DONE]"]);
    let texts: Vec<_> = parts.iter().map(|part| &part["choices"][0]["text"]).collect();
    assert_eq!(texts, ["b\n", ""]);
    assert_eq!(parts[1]["choices"][0]["finish_reason"], "stop");
}

#[test]
fn llama_vim_asks_for_an_infill_and_reads_flat_fields() {
    let body = json!({
        "id_slot": 0, "input_prefix": "x\n", "input_suffix": "\nz", "prompt": "  a",
        "input_extra": [{"filename": "b.rs", "text": "fn b() {}", "time": 1}],
        "n_predict": 128, "stop": [], "n_indent": 2, "top_k": 40, "samplers": ["top_k"],
        "stream": false, "cache_prompt": true, "t_max_prompt_ms": 500, "t_max_predict_ms": 1000,
        "response_fields": ["content", "timings/prompt_n", "tokens_cached", "no/such"],
    });
    let (request, reply) = answered("/infill", body);
    assert_eq!(request.around, around("x\n  a", "\nz"));
    assert_eq!(request.files, [File { name: "b.rs".into(), text: "fn b() {}".into() }]);
    assert!(request.client.asks == Asks::AheadAtEachKey && !request.is_warming);
    assert!(reply.body.contains(r#""content":"b\n""#), "{}", reply.body);
    let expected = json!({"content": "b\n", "timings/prompt_n": 0, "tokens_cached": 0});
    assert_eq!(json(&reply), expected);
}

/// The first line had a line break before it that was gone on the second, so what was offered on
/// the first was not found again.
#[test]
fn llama_vim_has_no_line_above_the_first() {
    let body = json!({"input_prefix": "\n", "input_suffix": "\nz\n", "prompt": "a"});
    assert_eq!(answered("/infill", body).0.around, around("a", "\nz\n"));
}

#[test]
fn llama_vim_warms_with_nothing_to_predict() {
    let body = json!({
        "input_prefix": "", "input_suffix": "", "input_extra": [], "prompt": "", "n_predict": 0,
        "response_fields": [""],
    });
    let (request, reply) = answered("/infill", body);
    assert!(request.is_warming);
    assert_eq!(json(&reply), json!({}));
}

#[test]
fn llama_vscode_asks_for_several_and_reads_a_list() {
    let body = json!({
        "input_prefix": "a", "input_suffix": "c", "n_cmpl": 3, "lora": [{"id": 0, "scale": 1}],
    });
    let (request, reply) = answered("/infill", body.clone());
    assert_eq!(request.around, around("a", "c"));
    assert_eq!(json(&reply)[0]["content"], "b\n");
    let body = body.to_string();
    let asked = Route::Infill.read(body.as_bytes(), "axios", &model()).unwrap();
    assert_eq!(asked.request.client.asks, Asks::AheadAtNewText);
}

#[test]
fn continue_asks_llama_cpp_for_a_completion_and_reads_a_stream() {
    let body = json!({"prompt": QWEN, "stream": true, "n_predict": 20, "stop": "\n\n"});
    let (request, reply) = answered("/completion", body);
    assert_eq!(request.around, around("a", "c"));
    assert_eq!(request.limits.stop, ["\n\n"]);
    let (parts, others) = events(&reply, EVENTS, "data: ");
    assert!(others.is_empty());
    assert_eq!(parts[0]["content"], "b\n");
    assert_eq!((&parts[0]["stop"], &parts[1]["stop"]), (&json!(false), &json!(true)));
}

#[test]
fn proxy_ai_has_blanks_behind_the_markers() {
    let prompt = "<|fim_prefix|> a<|fim_suffix|> c<|fim_middle|> ";
    let body = json!({"prompt": prompt, "stream": false, "n_predict": 128, "temperature": 0});
    let (request, reply) = answered("/completion", body);
    assert_eq!(request.around, around("a", "c"));
    assert_eq!(json(&reply)["content"], "b\n");
}

#[test]
fn ollama_clients_ask_with_a_suffix_or_a_raw_prompt() {
    let body = json!({
        "model": "qwen", "prompt": "a", "suffix": "c", "keep_alive": 3600, "stream": false,
        "options": {"num_predict": 9, "stop": ["\n\n"], "temperature": 0.1},
    });
    let (request, reply) = answered("/api/generate", body);
    assert_eq!(request.around, around("a", "c"));
    assert_eq!(request.limits.max_tokens, Some(9));
    let answer = json(&reply);
    assert_eq!((&answer["response"], &answer["done"]), (&json!("b\n"), &json!(true)));
    assert!(answer["created_at"].is_string());

    let raw = json!({"model": "qwen", "prompt": QWEN, "raw": true});
    let (request, reply) = answered("/api/generate", raw);
    assert_eq!(request.around, around("a", "c"));
    let (lines, _) = events(&reply, LINES, "");
    assert_eq!(lines[0]["response"], "b\n");
    assert_eq!((&lines[0]["done"], &lines[1]["done"]), (&json!(false), &json!(true)));
    assert_eq!(lines[1]["done_reason"], "stop");

    assert!(answered("/api/generate", json!({"model": "qwen"})).0.is_warming);
}

#[test]
fn what_clients_ask_of_the_model_is_answered() {
    let answer = |path| json(&Route::of(path).answer(&model()).unwrap());
    assert_eq!(answer("/v1/models")["data"][0]["id"], "qwen2.5-coder-0.5b");
    assert_eq!(answer("/api/tags")["models"][0]["name"], "qwen2.5-coder-0.5b");
    assert!(answer("/api/show")["template"].as_str().unwrap().contains(".Suffix"));
    assert_eq!(answer("/api/show")["capabilities"][1], "insert");
    assert!(answer("/api/version")["version"].is_string());
    assert_eq!(answer("/health"), json!({"status": "ok"}));
}

#[test]
fn an_error_has_the_shape_of_its_dialect_and_names_the_field() {
    let error = |path: &str, body: &str| {
        let route = Route::of(path);
        let trouble = route.read(body.as_bytes(), "curl", &model()).unwrap_err();
        let reply = route.dialect().error(&trouble);
        assert_eq!(reply.status, StatusCode::BAD_REQUEST);
        json(&reply)["error"].clone()
    };
    let wrong = error("/v1/completions", r#"{"prompt": [1, 2]}"#);
    assert_eq!(wrong["param"], "prompt");
    assert_eq!(wrong["message"], "prompt: must be a text or a list of texts");
    assert_eq!(wrong["type"], "invalid_request_error");
    let wrong = error("/v1/completions", r#"{"prompt": "a", "max_tokens": "many"}"#);
    assert_eq!(wrong["param"], "max_tokens");
    let wrong = error("/infill", r#"{"input_prefix": "a"}"#);
    assert_eq!(wrong["message"], "input_suffix: is missing; it must be a text");
    assert_eq!(wrong["code"], 400);
    let wrong = error("/infill", r#"{"input_prefix":"","input_suffix":"","input_extra":[{}]}"#);
    assert!(wrong["message"].as_str().unwrap().starts_with("input_extra: "));
    let wrong = error("/api/generate", r#"{"prompt": "<PRE>a<SUF>b<MID>"}"#);
    assert!(wrong.as_str().unwrap().contains("Hone serves qwen2.5-coder"), "{wrong}");
    let wrong = error("/api/generate", r#"{"prompt": "a", "options": 1}"#);
    assert_eq!(wrong, "options: must be an object");
    for body in ["", "{", "[]", "\"secret\""] {
        let wrong = error("/completion", body);
        assert_eq!(wrong["message"], "the body must be one JSON object");
    }
}

#[test]
fn a_path_has_one_method() {
    assert_eq!(Route::of("/infill").check(&Method::POST), Ok(()));
    assert_eq!(Route::of("/").check(&Method::HEAD), Ok(()));
    let status = |path, method| Route::of(path).check(&method).unwrap_err().status.as_u16();
    assert_eq!(status("/infill", Method::GET), 405);
    assert_eq!(status("/health", Method::OPTIONS), 405);
    assert_eq!(status("/v1/chat/completions", Method::POST), 404);
    assert_eq!(Route::of("/v1/chat/completions").dialect(), Dialect::OpenAi);
    assert_eq!(Route::of("/api/chat").dialect(), Dialect::Ollama);
}

#[test]
fn a_client_is_named_by_its_product() {
    assert_eq!(client_name(Some("OpenAI/Python 1.2")), "OpenAI");
    assert_eq!(client_name(Some("curl/8.5.0")), "curl");
    assert_eq!(client_name(Some("../../x\u{e9} y")), "..");
    assert_eq!(client_name(Some("")), "client");
    assert_eq!(client_name(None), "client");
    assert_eq!(client_name(Some(&"a".repeat(99))).len(), NAME_BYTES);
}

/// The routes that read a body, with one that each of them reads.
fn bodies() -> Vec<(&'static str, Value)> {
    let infill = json!({
        "input_prefix": "a", "input_suffix": "c", "prompt": "", "n_predict": 9, "n_cmpl": 3,
        "input_extra": [{"filename": "b.rs", "text": "fn b() {}"}], "stop": ["\n\n"],
        "response_fields": ["content", "timings/prompt_n"], "stream": false,
    });
    let openai = json!({"prompt": QWEN, "max_tokens": 9, "stop": "\n", "stream": true, "n": 1});
    let ollama = json!({"prompt": "a", "suffix": "c", "options": {"num_predict": 9, "stop": []}});
    vec![
        ("/infill", infill),
        ("/completion", json!({"prompt": QWEN, "n_predict": 9, "stop": ["x"]})),
        ("/v1/completions", openai),
        ("/api/generate", ollama),
    ]
}

/// What a field must not be, or may be at most.
fn odd_values() -> Vec<Value> {
    let deep = (0..100).fold(json!("deep"), |inner, _| json!([inner]));
    let texts =
        ["", "\0", "\u{2028}\r\n", "<|fim_prefix|>", "<|fim_suffix|><|fim_middle|>", "<PRE>"];
    let numbers = [json!(-1), json!(0), json!(0.5), json!(u64::MAX), json!(1e300)];
    let others = [json!(null), json!(true), json!({}), json!([[]]), json!([1, "a"]), deep];
    let texts = texts.map(|text| json!(text)).into_iter();
    texts.chain(numbers).chain(others).collect()
}

/// Puts an odd value in the place of one field, or of what is within it.
fn spoil(body: &mut Value, odd: &[Value], random: &mut StdRng) {
    let mut place = body;
    loop {
        let fields: Vec<&mut Value> = match place {
            Value::Object(fields) => fields.values_mut().collect(),
            Value::Array(values) => values.iter_mut().collect(),
            _ => vec![],
        };
        let count = fields.len();
        let Some(next) = fields.into_iter().nth(random.random_range(0..count.max(1))) else {
            return;
        };
        if !(next.is_object() || next.is_array()) || random.random_bool(0.5) {
            *next = odd.choose(random).unwrap().clone();
            return;
        }
        place = next;
    }
}

/// Spoils the bytes of a body: some are others, or the end is missing.
fn garble(bytes: &mut Vec<u8>, random: &mut StdRng) {
    for _ in 0..random.random_range(0..4) {
        let at = random.random_range(0..bytes.len());
        bytes[at] = random.random();
    }
    if random.random_bool(0.2) {
        bytes.truncate(random.random_range(0..bytes.len()));
    }
}

/// Whatever a body holds, it is read or refused, and no refusal repeats code of it.
#[test]
fn any_body_is_read_or_refused() {
    const SECRET: &str = "hunter2";
    let (bodies, odd) = (bodies(), odd_values());
    let models = templates().iter().map(|template| Model { template, ..model() });
    let models: Vec<Model> = models.collect();
    let answer = Answer { text: "b".into(), ended: Ended::ByItself, tokens: 1 };
    let mut random = StdRng::seed_from_u64(63);
    let (mut read, mut refused) = (0, 0);
    for _ in 0..ROUNDS {
        let (path, body) = bodies.choose(&mut random).unwrap();
        let mut body = body.clone();
        body["prompt"] = format!("{SECRET}{}", body["prompt"].as_str().unwrap()).into();
        for _ in 0..random.random_range(0..3) {
            spoil(&mut body, &odd, &mut random);
        }
        let mut bytes = body.to_string().into_bytes();
        if random.random_bool(0.5) {
            garble(&mut bytes, &mut random);
        }
        let (route, model) = (Route::of(path), models.choose(&mut random).unwrap());
        match route.read(&bytes, "curl", model) {
            Ok(asked) => {
                read += 1;
                assert!(asked.request.files.len() <= 1);
                assert_eq!(asked.reply(&answer, model).status, StatusCode::OK);
            }
            Err(trouble) => {
                refused += 1;
                assert_eq!(trouble.status, StatusCode::BAD_REQUEST);
                let told = route.dialect().error(&trouble).body;
                assert!(!told.contains(SECRET), "{told}");
            }
        }
    }
    assert!(read > ROUNDS / 10 && refused > ROUNDS / 10, "{read} read, {refused} refused");
}
