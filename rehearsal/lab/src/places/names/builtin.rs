//! Keywords and the names that every program of a language may use without an import.

/// Keywords and basic names of most languages.
const COMMON: &str = "abstract and any as assert async await bool boolean break byte case catch \
    char class const constructor continue debugger def default defer del delete do double elif \
    else enum except export extends extern false final finally float fn for from func function \
    get global go goto if impl implements import in infer instanceof int interface is \
    isinstance keyof lambda let long loop match mod module move mut namespace new nil none not \
    null object of operator or override package pass private protected pub public raise range \
    readonly ref require return select self short signed sizeof static str string struct super \
    switch this throw throws trait true try type typedef typeof undefined union unknown unsafe \
    unsigned use using var void volatile where while with yield";

const RUST: &str = "Arc Box Clone Copy Debug Default Drop Eq Err Fn FnMut FnOnce From Hash \
    HashMap HashSet Into IntoIterator Iterator None Ok Option Ord PartialEq PartialOrd Path \
    PathBuf Rc Result Self Send Some String Sync ToString Vec all any as_bytes as_mut as_ref \
    as_str assert assert_eq assert_ne bytes cfg chain chars clear clone cloned collect contains \
    contains_key copied count crate default derive display dyn ends_with entry enumerate \
    eprintln err expect extend filter filter_map find first flat_map fmt fold format get \
    get_mut i16 i32 i64 i8 insert into into_iter is_empty is_err is_none is_ok is_some \
    is_some_and isize iter iter_mut join keys last len lines map map_err map_or max min next ok \
    ok_or ok_or_else or_default or_else panic parse pop position println push push_str remove \
    rev skip sort split start starts_with std strip_prefix strip_suffix sum take test then \
    to_owned to_string to_vec trim truncate u16 u32 u64 u8 unimplemented unreachable unwrap \
    unwrap_or unwrap_or_default unwrap_or_else usize values vec windows with_capacity write \
    writeln zip todo f32 f64";

const PYTHON: &str = "AttributeError BaseException Exception False ImportError IndexError \
    KeyError None NotImplementedError OSError RuntimeError StopIteration True TypeError \
    ValueError __init__ __name__ abs add all any append bool bytes callable classmethod cls \
    copy count decode dict dir encode endswith enumerate eval extend extendleft filter find \
    float format frozenset get getattr hasattr hash id index input insert int isinstance \
    issubclass items iter join keys len list lower lstrip map max min next nonlocal object open \
    ord pop print property range remove repr replace reversed round rstrip set setattr \
    setdefault sorted split splitlines startswith staticmethod str strip sum super tuple type \
    update upper values zip";

const SCRIPT: &str = "Array ArrayBuffer Boolean Date Error Function Infinity JSON Map Math NaN \
    Number Object Omit Partial Pick Promise Proxy Record Reflect RegExp Required Response \
    Request Set String Symbol TypeError URL Uint8Array WeakMap all any apply assign at bind \
    call charAt concat console constructor createElement describe document entries error every \
    exec exports expect fetch filter find findIndex flat flatMap forEach freeze from \
    fromEntries get has hasOwnProperty headers includes indexOf isArray it join json keys \
    lastIndexOf length log map match max message min name never next now number parse parseInt \
    pop process prototype push reduce replace resolve reverse set setTimeout slice some sort \
    split splice startsWith endsWith stringify symbol test then toBe toEqual toLowerCase \
    toString toUpperCase trim undefined unshift shift value values warn window";

const GO: &str = "Error Errorf Fatal Fatalf Fprintf Print Printf Println Sprintf String append \
    bool byte bytes cap chan close complex128 context copy delete err error errors float32 \
    float64 fmt int int16 int32 int64 int8 iota len main make map nil os panic print println \
    range recover rune string strings sync t testing time uint uint16 uint32 uint64 uint8 \
    uintptr";

const C: &str = "NULL assert bool char const free include int int32_t int64_t int8_t malloc \
    memcpy memset printf size_t sizeof std strcmp string strlen uint16_t uint32_t uint64_t \
    uint8_t vector begin end push_back nullptr auto template typename";

/// Tells whether a name is a keyword of a language, or is known in every program of it.
pub fn is_builtin(name: &str, language: &str) -> bool {
    let of_language = match language {
        "rust" => RUST,
        "python" => PYTHON,
        "go" => GO,
        "c" | "cpp" => C,
        "javascript" | "javascriptreact" | "typescript" | "typescriptreact" | "svelte" | "vue" => {
            SCRIPT
        }
        _ => "",
    };
    let mut known = COMMON.split_whitespace().chain(of_language.split_whitespace());
    known.any(|known| known == name)
}

#[cfg(test)]
mod tests {
    use super::is_builtin;

    #[test]
    fn each_language_knows_its_own_names() {
        assert!(is_builtin("return", "rust") && is_builtin("unwrap", "rust"));
        assert!(is_builtin("isinstance", "python") && !is_builtin("unwrap", "python"));
        assert!(is_builtin("forEach", "typescriptreact") && !is_builtin("fetchAll", "typescript"));
        assert!(is_builtin("if", "klingon"));
    }
}
