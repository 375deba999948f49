//! Secrets and ignored files are never stored. A corpus of credentials is planted in documents and
//! typed into them. The tests search every byte on disk, and turn every token id into text.

use serde_json::Value;
use tests::buffer::Buffer;
use tests::disk::{Decoder, all_text};
use tests::{Home, Model, PATIENT, QUICK};

const LOWER: &str = "abcdefghijklmnopqrstuvwxyz0123456789";
const MIXED: &str = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
const UPPER: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
const HEX: &str = "0123456789abcdef";
/// What Django's own generator draws from.
const DJANGO: &str = "abcdefghijklmnopqrstuvwxyz0123456789!@#$%^&*(-_=+)";

/// No part of a secret with this many characters may be stored.
const PART: usize = 8;

/// Random letters, the same in every run.
struct Drawn(u64);

impl Drawn {
    fn of(&mut self, alphabet: &str, length: usize) -> String {
        let letters: Vec<char> = alphabet.chars().collect();
        let next = |_| {
            self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            letters[(self.0 >> 33) as usize % letters.len()]
        };
        (0..length).map(next).collect()
    }
}

/// A line of a document, and the secret part of it. It is put together from pieces, so that no
/// scanner takes this file for a leak.
struct Planted {
    line: String,
    secret: String,
}

fn corpus() -> Vec<Planted> {
    let mut drawn = Drawn(7);
    // The text before the secret, the secret's alphabet and length, and the text behind it.
    let forms: &[(&[&str], &str, usize, &str)] = &[
        (&["let key = \"AK", "IA"], UPPER, 16, "\";"),
        (&["aws_secret_", "access_key = \""], MIXED, 40, "\""),
        (&["TOKEN: gh", "p_"], MIXED, 36, ""),
        (&["gh", "o_"], MIXED, 36, ""),
        (&["github_", "pat_"], MIXED, 60, ""),
        (&["url = 'https://oauth2:gl", "pat-"], MIXED, 20, "@gitlab.com/a/b.git'"),
        (&["xox", "b-1234567890-"], MIXED, 24, ""),
        (&["https://hooks.sl", "ack.com/services/"], MIXED, 36, ""),
        (&["Stripe::api_key = 'sk_", "live_"], MIXED, 24, "'"),
        (&["rk_", "test_"], MIXED, 24, ""),
        (&["wh", "sec_"], MIXED, 32, ""),
        (&["key=AI", "za"], MIXED, 35, "&q=x"),
        (&["GOC", "SPX-"], MIXED, 28, ""),
        (&["\"sk-", "ant-api03-"], MIXED, 48, "\","),
        (&["openai.api_key = \"sk-", "proj-"], MIXED, 48, "\""),
        (&["sk", "-"], MIXED, 48, ""),
        (&["//registry.npmjs.org/:_auth", "Token=npm_"], MIXED, 36, ""),
        (&["py", "pi-AgEI"], MIXED, 60, ""),
        (&["h", "f_"], "abcdefghijklmnopqrstuvwxyzABCDEFGHIJ", 34, ""),
        (&["dckr_", "pat_"], MIXED, 27, ""),
        (&["VAULT_TOKEN=hv", "s."], MIXED, 24, ""),
        (&["dop", "_v1_"], HEX, 64, ""),
        (&["SG", ".abcdefghijklmnopqr12."], MIXED, 43, ""),
        (&["const TWILIO = \"S", "K"], HEX, 32, "\""),
        (&["bot = \"1234567890:A", "A"], MIXED, 33, "\""),
        (&["shp", "at_"], HEX, 32, ""),
        (&["glsa", "_"], MIXED, 32, "_12345678"),
        (&["Cookie: jwt=ey", "Jhbgcioijiuzi.eyJ"], MIXED, 60, ""),
        (&["Authorization: Bea", "rer "], HEX, 40, ""),
        (&["-H 'Authorization: Ba", "sic dXNlcjpw4"], MIXED, 24, "'"),
        (&["DATABASE_URL=postgres://app:", ""], MIXED, 12, "@db.internal/app"),
        (&["redis://:", ""], MIXED, 14, "@10.0.0.1:6379"),
        (&["amqp://worker:", ""], LOWER, 12, "@queue"),
        (&["AccountName=a;Account", "Key="], MIXED, 86, "=="),
        (&["machine example.org login me pass", "word "], LOWER, 10, ""),
        (&["pass", "word = \"Tr0ub4dor&"], LOWER, 8, "\""),
        (&["  \"db_pass", "word\": \"z9!"], LOWER, 9, "\","),
        (&["POSTGRES_PASS", "WORD: q7"], LOWER, 12, ""),
        (&["config.api", "_key = '"], HEX, 32, "'"),
        (&["const CLIENT_", "SECRET = `"], MIXED, 40, "`;"),
        (&["SECRET_", "KEY = \"k9x"], MIXED, 50, "\""),
        (&["-----BEGIN RSA PRIVATE", " KEY-----\n"], MIXED, 64, "\n"),
        (&["-----BEGIN OPENSSH PRIVATE", " KEY-----\n"], MIXED, 70, "\n"),
        (&["$2b", "$12$"], MIXED, 53, ""),
        (&["SECRET_", "KEY = '"], DJANGO, 50, "'"),
        (&["\"Server=db;User Id=app;Pa", "ssword=Zk3m"], MIXED, 12, ";\""),
        (&["{\"Default\": \"Host=db;Pa", "ssword=Zk3m"], MIXED, 12, "\"}"),
        (&["PGPA", "SSWORD=Zk3m"], MIXED, 12, " psql -h db app"),
        (&["mysqldump --pa", "ssword=Zk3m"], MIXED, 12, " app"),
    ];
    let plant = |(before, alphabet, length, behind): &(&[&str], &str, usize, &str)| {
        let secret = drawn.of(alphabet, *length);
        Planted { line: format!("{}{secret}{behind}", before.concat()), secret }
    };
    forms.iter().map(plant).collect()
}

fn parts(secret: &str) -> impl Iterator<Item = &str> {
    (0..=secret.len() - PART).map(|start| &secret[start..start + PART])
}

/// Everything that a home has stored: the text of its files, and token ids as text.
fn kept(home: &Home) -> String {
    let decoder = Decoder::of(&Model::Smol.file());
    let events = home.output(&["events", "--json", "--with-code"]);
    let events = events.lines().map(|line| serde_json::from_str::<Value>(line).expect("an event"));
    let decoded: String = events.map(|event| decoder.text(&event)).collect();
    home.output(&["stop"]);
    all_text(home.path()) + &decoded
}

#[test]
fn no_planted_secret_is_stored_in_any_form() {
    let home = Home::with(Model::Smol, &format!("{PATIENT}lab.max_tokens = 16\n"));
    let editor = home.editor();
    let corpus = corpus();
    assert!(corpus.len() >= 40);
    let mut offered = 0;
    for (number, planted) in corpus.iter().enumerate() {
        let line = &planted.line;
        let text = match number % 3 {
            0 => format!("{line}\n// Monday, Tuesday, Wednesday, |\n"),
            1 => format!("// Monday, Tuesday, Wednesday, |\n{line}\n"),
            _ => "// Ordinary6112, Ordinary6112, |\n".to_owned(),
        };
        let mut buffer = Buffer::open(&editor, &format!("case{number}.rs"), &text);
        if let Some(item) = buffer.complete() {
            editor.did_show(&item).unwrap();
            offered += 1;
            if number % 3 < 2 {
                buffer.accept(&item);
                continue;
            }
        }
        // The line is typed or pasted in the place of an offer that was stored.
        if number % 2 == 0 {
            buffer.insert(line);
        } else {
            buffer.type_text(line);
        }
        editor.request("hone/advanceClock", serde_json::json!({"ms": 15_000})).unwrap();
        buffer.complete();
        buffer.insert("\n// Monday, Tuesday, ");
        buffer.complete();
        editor.request("hone/advanceClock", serde_json::json!({"ms": 700_000})).unwrap();
    }
    assert!(offered * 10 > corpus.len() * 9, "completions continue: {offered}");
    let status = home.status();
    let (stored, withheld) = (&status["episodes"]["total"], &status["withheld"]);
    assert!(withheld.as_u64().unwrap() as usize * 10 > corpus.len() * 6, "{status}");
    assert!(stored.as_u64().unwrap() as usize * 5 > corpus.len(), "{status}");
    let screen = home.output(&["status"]);
    assert!(screen.contains("nothing is stored"), "{screen}");

    drop(editor);
    let kept = kept(&home);
    // Other text is stored, as it is and as token ids.
    assert!(kept.matches("Ordinary6112").count() >= 2 && kept.contains("/project/case2.rs"));
    for planted in &corpus {
        let found = parts(&planted.secret).find(|part| kept.contains(part));
        assert_eq!(found, None, "of {}", planted.line);
    }
}

#[test]
fn nothing_of_an_ignored_file_is_stored() {
    let project = tempfile::tempdir().expect("a folder");
    let at = |name: &str| format!("{}/{name}", project.path().display());
    std::fs::write(at(".honeignore"), "private/\n").unwrap();
    std::fs::create_dir(at(".git")).unwrap();
    std::fs::write(at(".gitignore"), "*.gen.rs\n").unwrap();
    let home = Home::with(Model::Smol, &format!("privacy.ignore = [\"*.sql\"]\n{QUICK}"));
    let editor = home.editor();
    let ask = |name: &str, canary: &str| {
        let uri = format!("file://{}", at(name));
        let text = format!("{canary}, {canary}, {canary}, \n");
        editor.open(&uri, "rust", &text).unwrap();
        let position = rehearsal::document::Position { line: 0, character: text.len() as u32 - 1 };
        let automatic = rehearsal::client::TriggerKind::Automatic;
        let items = editor.inline_completion(&uri, position, automatic).unwrap();
        let item = items.first().unwrap_or_else(|| panic!("{name} is completed"));
        editor.did_show(item).unwrap();
        editor.accept(&item.id).unwrap();
    };
    let ignored = [".env", "server.pem", "private/a.rs", "a.gen.rs", "a.sql"];
    for (number, name) in ignored.iter().enumerate() {
        ask(name, &format!("Canary81{number}"));
    }
    ask("a.rs", "Stored8200");
    assert_eq!(home.status()["withheld"], ignored.len());
    assert_eq!(home.events().len(), 3, "the offer in a.rs was made, shown and accepted");
    drop(editor);
    let kept = kept(&home);
    assert!(kept.contains("Stored8200") && !kept.contains("Canary81"));
    for name in ignored {
        assert!(!kept.contains(&at(name)), "{name}");
    }
}
