//! Made-up credentials, drawn when a test runs: no file holds one, so that no scanner takes the
//! repository for a leak.

const LOWER: &str = "abcdefghijklmnopqrstuvwxyz0123456789";
const UPPER: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
const LETTERS: &str = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
const MIXED: &str = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
/// The characters that Django's own generator draws from.
const DJANGO: &str = "abcdefghijklmnopqrstuvwxyz0123456789!@#$%^&*(-_=+)";

/// A source of letters that is the same in every run.
pub struct Draw(u64);

impl Draw {
    pub fn new(seed: u64) -> Draw {
        Draw(seed)
    }

    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (self.0 >> 33) as usize % limit
    }

    fn of(&mut self, alphabet: &str, length: usize) -> String {
        let letters = alphabet.as_bytes();
        (0..length).map(|_| char::from(letters[self.below(letters.len())])).collect()
    }

    /// A password as a generator makes it: letters, and a digit that is not the last.
    fn password(&mut self, length: usize) -> String {
        let mut password = self.of(MIXED, length);
        password.replace_range(2..4, &format!("{}{}", self.of("23456789", 1), self.of("kmq", 1)));
        password
    }

    fn base64(&mut self, text: &str) -> String {
        const SIGNS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let sign = |number: u32, place: u32| SIGNS[(number >> (18 - 6 * place) & 63) as usize];
        let mut encoded = String::new();
        for part in text.as_bytes().chunks(3) {
            let byte = |at: usize| u32::from(part.get(at).copied().unwrap_or(0));
            let number = byte(0) << 16 | byte(1) << 8 | byte(2);
            encoded.extend((0..=part.len() as u32).map(|place| char::from(sign(number, place))));
            encoded.push_str(&"=".repeat(3 - part.len()));
        }
        encoded
    }

    /// A form with its parts drawn. A part is a letter for its alphabet and its length, as in
    /// `{h32}`; `{}` is nothing, and keeps a form in this repository from being one.
    pub fn fill(&mut self, form: &str) -> String {
        let mut filled = String::new();
        let mut rest = form;
        while let Some(start) = rest.find('{') {
            filled.push_str(&rest[..start]);
            rest = &rest[start + 1..];
            let end = rest.find(['{', '}']).filter(|end| rest[*end..].starts_with('}'));
            match end.and_then(|end| Some((self.part(&rest[..end])?, end))) {
                Some((drawn, end)) => {
                    filled.push_str(&drawn);
                    rest = &rest[end + 1..];
                }
                // A brace of the form itself.
                None => filled.push('{'),
            }
        }
        filled + rest
    }

    fn part(&mut self, part: &str) -> Option<String> {
        let Some((kind, length)) = part.split_at_checked(1) else { return Some(String::new()) };
        if part == "U" {
            let parts = [8, 4, 4, 4, 12].map(|length| self.of("0123456789abcdef", length));
            return Some(parts.join("-"));
        }
        let length = length.parse().ok()?;
        let drawn = match kind {
            "h" => self.of("0123456789abcdef", length),
            "d" => self.of("0123456789", length),
            "l" => self.of(LOWER, length),
            "u" => self.of(UPPER, length),
            "a" => self.of(LETTERS, length),
            "w" => self.of(MIXED, length),
            "x" => self.of(&MIXED.replace(['0', 'O', 'I', 'l'], ""), length),
            "b" => self.of(&format!("{MIXED}+/"), length),
            "r" => self.of(&format!("{MIXED}-_"), length),
            "g" => self.of(DJANGO, length),
            "p" => self.password(length),
            "B" => {
                let login = format!("admin:{}", self.password(length));
                self.base64(&login)
            }
            _ => return None,
        };
        Some(drawn)
    }
}
