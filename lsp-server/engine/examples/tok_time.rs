use std::time::Instant;
fn main() {
    let path = std::path::PathBuf::from(std::env::args().nth(1).unwrap());
    let text = std::fs::read_to_string(std::env::args().nth(2).unwrap()).unwrap();
    let loaded = engine::tokenizer_of(&path);
    for chars in [2000usize, 4000, 8000, 12000] {
        let part: String = text.chars().take(chars).collect();
        let mut times = vec![];
        for _ in 0..21 {
            let t = Instant::now();
            let n = loaded(&part).len();
            times.push((t.elapsed().as_secs_f64() * 1e3, n));
        }
        times.sort_by(|a, b| a.0.total_cmp(&b.0));
        println!("{chars} chars, {} tokens: {:.2} ms", times[10].1, times[10].0);
    }
}
