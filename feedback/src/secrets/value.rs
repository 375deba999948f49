//! The look of a secret: how random it is, and whether it is filled in later or
//! plainly made up.

mod placeholder;

pub use placeholder::{is_filled_in, is_made_up, is_placeholder};

/// The shortest value whose characters show that it is no name.
const RANDOM_MIN_BYTES: usize = 12;

/// The least entropy of a random value over its own bytes, in bits a byte. English words and
/// identifiers stay below this, keys of 16 and more hexadecimal digits lie above it.
const RANDOM_MIN_ENTROPY: f64 = 2.8;

/// The shortest value that counts as random for its changes of case alone.
const MIXED_CASE_MIN_BYTES: usize = 16;

/// The shortest value that counts as drawn for its many different marks, how many different
/// ones these are, and its least entropy, in bits a byte.
const DRAWN_MIN_BYTES: usize = 24;
const DRAWN_MIN_MARKS: usize = 4;
const DRAWN_MIN_ENTROPY: f64 = 4.0;

/// The least entropy, in bits a byte, of a value that stands next to a vague name such as `key`.
const VAGUE_MIN_ENTROPY: f64 = 3.5;

/// The least entropy, in bits a byte, of a key as long as those of the service named next to it.
const SERVICE_MIN_ENTROPY: f64 = 3.0;

/// The shortest password that is worth looking at.
pub const PASSWORD_MIN_BYTES: usize = 6;

/// The shortest name and password with the colon between them.
const LOGIN_MIN_BYTES: usize = 5;

/// The least different words from which a wallet is made.
const DIFFERENT_WORDS_MIN: usize = 7;

/// The longest value that is looked at.
pub const VALUE_MAX_BYTES: usize = 400;

/// Returns true if a person may have chosen it as a password: letters with digits or marks, and
/// nothing that is filled in later.
pub fn is_like_a_password(value: &[u8]) -> bool {
    let letters = value.iter().any(u8::is_ascii_alphabetic);
    let digits_or_marks = value.iter().any(|b| b.is_ascii_digit() || b"!@#$%^&*?+=~".contains(b));
    letters && digits_or_marks && !is_placeholder(value)
}

/// Returns true if a machine may have made it: letters and digits in no order that a person reads.
pub fn is_random(value: &[u8]) -> bool {
    let count = |of: fn(&u8) -> bool| value.iter().filter(|b| of(b)).count();
    if value.len() < RANDOM_MIN_BYTES || count(u8::is_ascii_alphabetic) < 2 {
        return false;
    }
    let of_key = |b: &u8| b.is_ascii_alphanumeric() || b"+/=_-.~!@#%^&*?:".contains(b);
    let scattered = value.iter().all(of_key)
        && count(u8::is_ascii_digit) >= 2
        // This excludes `error-404`, `v2.3.1-beta`, `example.com:8080` and `sha256`.
        && changes_between_letters_and_digits(value) >= 3
        && entropy(value) >= RANDOM_MIN_ENTROPY;
    is_drawn_with_marks(value)
        // Base64 may begin like a path, with a slash.
        || is_mixed(value) && !is_filled_in(value)
        || scattered && !is_placeholder(value)
}

/// Returns true if a value holds letters, digits and many of the marks that generators such as
/// Django's draw. A drawn value may look like a placeholder, `%(`, in one place.
pub fn is_drawn_with_marks(value: &[u8]) -> bool {
    const MARKS: &[u8] = b"!@#$%^&*(-_=+)";
    let marks = MARKS.iter().filter(|mark| value.contains(mark)).count();
    value.len() >= DRAWN_MIN_BYTES
        && marks >= DRAWN_MIN_MARKS
        && value.iter().all(|b| b.is_ascii_alphanumeric() || MARKS.contains(b))
        && value.iter().filter(|b| b.is_ascii_digit()).count() >= 2
        && entropy(value) >= DRAWN_MIN_ENTROPY
        && !is_made_up(value)
}

/// Returns true if a value is so random that a vague name next to it is enough.
pub fn is_very_random(value: &[u8]) -> bool {
    value.len() >= MIXED_CASE_MIN_BYTES && entropy(value) >= VAGUE_MIN_ENTROPY && is_random(value)
}

/// Returns true if upper case, lower case, digits and marks follow each other as in a drawn key. A
/// name in camel case changes half as often. The marks are those of generators such as Django's.
fn is_mixed(value: &[u8]) -> bool {
    let marks = value.iter().filter(|b| !b.is_ascii_alphanumeric()).count();
    value.len() >= MIXED_CASE_MIN_BYTES
        && value.iter().all(|b| b.is_ascii_alphanumeric() || b"!@#$%^&*(-_=+)./~".contains(b))
        // Two in five. A path or a call has marks, and long words between them.
        && changes_of_kind(value) * 5 >= value.len() * 2
        && marks * 2 <= value.len()
        // A name in camel case has one capital at a time.
        && value.windows(2).filter(|pair| pair.iter().all(u8::is_ascii_uppercase)).count() >= 2
        && entropy(value) >= VAGUE_MIN_ENTROPY
        && longest_word(value) <= 6
}

/// Returns true if it may be the key of a service whose keys are as long as it is. A name in camel
/// case has longer words.
pub fn is_key_of_service(value: &[u8]) -> bool {
    let drawn = value.iter().all(|b| b.is_ascii_alphanumeric() || b"_-=".contains(b))
        && changes_of_kind(value) * 3 >= value.len()
        && longest_word(value) <= 6
        && entropy(value) >= SERVICE_MIN_ENTROPY;
    is_random(value) || drawn && !is_placeholder(value)
}

/// Returns how often lower case, upper case, digits and marks follow each other.
fn changes_of_kind(value: &[u8]) -> usize {
    let kind = |b: u8| (b.is_ascii_lowercase(), b.is_ascii_uppercase(), b.is_ascii_digit());
    value.windows(2).filter(|pair| kind(pair[0]) != kind(pair[1])).count()
}

fn longest_word(value: &[u8]) -> usize {
    value.split(|b| !b.is_ascii_lowercase()).map(<[u8]>::len).max().unwrap_or(0)
}

/// Returns true if digits stand among the letters, and not only behind them as in `password2`.
pub fn is_shuffled(value: &[u8]) -> bool {
    changes_between_letters_and_digits(value) >= 2
}

fn changes_between_letters_and_digits(value: &[u8]) -> usize {
    let kinds: Vec<bool> =
        value.iter().filter(|b| b.is_ascii_alphanumeric()).map(u8::is_ascii_digit).collect();
    kinds.windows(2).filter(|pair| pair[0] != pair[1]).count()
}

/// Shannon's entropy over the bytes themselves, in bits a byte.
pub fn entropy(bytes: &[u8]) -> f64 {
    let mut counts = [0u32; 256];
    bytes.iter().for_each(|b| counts[usize::from(*b)] += 1);
    let total = bytes.len() as f64;
    let shares = counts.iter().filter(|&&count| count > 0).map(|&count| f64::from(count) / total);
    shares.map(|share| -share * share.log2()).sum()
}

/// Returns true if a password stands in a URL or a file of logins. It may be all letters there,
/// because only a password can stand in its place.
pub fn is_password_in_url(value: &[u8]) -> bool {
    !is_placeholder(value) && !is_word_for_password(value)
}

/// Returns true if a password stands in a command or a statement that takes one.
pub fn is_typed_password(value: &[u8]) -> bool {
    is_like_a_password(value) && !is_word_for_password(value)
}

/// Returns true if a token stands behind `Authorization:`. It may be short.
pub fn is_token_in_header(value: &[u8]) -> bool {
    value.iter().any(u8::is_ascii_digit)
        && value.iter().any(u8::is_ascii_alphabetic)
        && entropy(value) >= 2.75
        && !is_placeholder(value)
}

/// Returns true if some words are not the same few ones, as those in a text about such words are.
pub fn are_different_words(words: &[u8]) -> bool {
    let mut words: Vec<&[u8]> = words.split(|b| *b == b' ').collect();
    words.sort_unstable();
    words.dedup();
    words.len() >= DIFFERENT_WORDS_MIN
}

/// Returns true if it is a name, a colon and a password in base64, or something longer that nobody
/// can read.
pub fn is_basic_login(value: &[u8]) -> bool {
    let login = base64(value).filter(|login| login.iter().all(|b| (b' '..=b'~').contains(b)));
    let Some(login) = login else { return is_very_random(value) };
    let Some(colon) = login.iter().position(|b| *b == b':') else { return false };
    let (name, password) = (&login[..colon], &login[colon + 1..]);
    // Some services take their token as the name, without a password.
    let is_secret =
        if password.is_empty() { is_random(name) } else { is_password_in_url(password) };
    is_secret && login.len() >= LOGIN_MIN_BYTES
}

fn is_word_for_password(value: &[u8]) -> bool {
    const WORDS: &[&str] =
        &["password", "passwd", "pass", "pwd", "passwort", "secret", "token", "pw"];
    WORDS.iter().any(|word| value.eq_ignore_ascii_case(word.as_bytes()))
}

/// The bytes behind a text in base64, of either alphabet.
fn base64(text: &[u8]) -> Option<Vec<u8>> {
    let (mut bits, mut held, mut bytes) = (0u32, 0u32, vec![]);
    for b in text.iter().take_while(|b| **b != b'=') {
        let six = match b {
            b'A'..=b'Z' => b - b'A',
            b'a'..=b'z' => b - b'a' + 26,
            b'0'..=b'9' => b - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => return None,
        };
        bits = (bits << 6 | u32::from(six)) & 0xffff;
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push((bits >> held) as u8);
        }
    }
    Some(bytes)
}
