//! The limits of the learner, and how they relate to each other. Tile sizes of the
//! kernels are not limits and stay next to the loops that they are measured for.

/// Episodes of a job: all that may wait in the daemon.
pub const EPISODES_MAX: usize = feedback::limits::WAITING_EPISODES_MAX;

/// Tokens of a prompt.
pub const PROMPT_TOKENS_MAX: usize = 4096;

/// Tokens of a tail: the prompt from `adapter_from` on, and what was generated.
pub const TAIL_TOKENS_MAX: usize = 1024;

/// Rows that one prompt pass computes. The activations of all of them are in memory at
/// once.
pub const PROMPT_PASS_ROWS_MAX: usize = 4096;

/// Bytes in memory of the keys and values of all prompts of a job that are computed.
pub const PROMPT_KV_BYTES_MAX: usize = 1 << 30;

/// Files of known prompts that a job holds open. Further prompts are computed. macOS lets a process
/// have 256 files.
pub const PROMPT_FILES_MAX: usize = 128;

/// Tail rows of a microbatch. They bound what a forward pass keeps for its gradient: 0.36 MiB a
/// row with Qwen2.5-Coder-0.5B. With fewer rows, unpacking the weights takes a larger share of a
/// pass. A tail that is longer is a microbatch of its own.
pub const MICROBATCH_ROWS_MAX: usize = 192;

/// Tail rows of a pass that computes log-probs alone. It keeps nothing for a gradient, and with 512
/// rows it needs less memory than the gradient of a microbatch.
pub const SCORED_ROWS_MAX: usize = 512;

/// Log-ratios are clamped to this distance from zero, so that no exponential overflows.
/// Beyond it a token has no gradient from the term that the ratio is in.
pub const LOG_RATIO_NATS_MAX: f64 = 10.0;

/// Bytes of a job line.
pub const JOB_LINE_BYTES_MAX: usize = 256 * 1024 * 1024;

/// Bytes of a long episode in it: some 1,600 token ids of 7 bytes for the longest prompt that
/// the server makes, 128 tokens with their log-probabilities, and the experts that they went
/// through, which base64 makes a third longer.
const EPISODE_JSON_BYTES: usize =
    24 * 1024 + feedback::limits::CHOSEN_EXPERTS_BYTES_MAX.div_ceil(3) * 4;

/// Bytes of a cancel line. A longer line is a job, which must not be parsed twice.
pub const CANCEL_LINE_BYTES_MAX: usize = 256;

/// Job lines that wait for the trainer.
pub const JOB_QUEUE_LINES: usize = 4;

/// Answers that wait for stdout.
pub const ANSWER_QUEUE_LINES: usize = 64;

/// Memory beyond a job's limit that the system still grants the process, in MiB. The
/// job's limit is on resident memory; this covers what is not resident, such as thread
/// stacks.
pub const MEMORY_HEADROOM_MB: u64 = 512;

/// GPU memory that is left to activations, the keys and values of prompts, cuBLAS and the desktop.
pub const GPU_SPARE_BYTES: usize = 2 << 30;

// The largest job that the settings allow fits into a line.
const _: () = assert!(EPISODES_MAX * EPISODE_JSON_BYTES < JOB_LINE_BYTES_MAX);
// Neither a memory limit with its headroom nor the bytes of it overflow.
const _: () = assert!(feedback::limits::MEMORY_LIMIT_MB_MAX + MEMORY_HEADROOM_MB <= u64::MAX >> 20);

/// Bytes of a token id and its comma in a job line.
const TOKEN_JSON_BYTES_MAX: usize = 8;

/// Episodes of a job by default (`lab.batch_episodes`).
const DEFAULT_EPISODES: usize = 16;

/// Bytes of the keys and values of one token, with room, of a model whose heads share them: Llama 3
/// 8B has half of it. DeepSeek-Coder-6.7B, whose heads do not, has twice as many.
const TOKEN_KV_BYTES_MAX: usize = 256 << 10;

// The prompts of a job of the default size are all read, with those of the demonstrations.
const _: () = assert!(2 * DEFAULT_EPISODES <= PROMPT_FILES_MAX);
// A prompt fits into one prompt pass.
const _: () = assert!(PROMPT_TOKENS_MAX <= PROMPT_PASS_ROWS_MAX);
// One prompt alone never needs too much memory for its keys and values if heads share them. With
// other models, a job learns from as many prompts as fit.
const _: () = assert!(PROMPT_TOKENS_MAX * TOKEN_KV_BYTES_MAX <= PROMPT_KV_BYTES_MAX);
// Only some tails are too long to share a microbatch.
const _: () = assert!(MICROBATCH_ROWS_MAX < TAIL_TOKENS_MAX);
// Microbatches share a pass that computes log-probs.
const _: () = assert!(2 * MICROBATCH_ROWS_MAX <= SCORED_ROWS_MAX);
// A tail is the end of a prompt and a short completion.
const _: () = assert!(TAIL_TOKENS_MAX < PROMPT_TOKENS_MAX);
// A job of the default size fits into a line, even if all its prompts are full.
const _: () =
    assert!(DEFAULT_EPISODES * TOKEN_JSON_BYTES_MAX * PROMPT_TOKENS_MAX < JOB_LINE_BYTES_MAX);
const _: () = assert!(CANCEL_LINE_BYTES_MAX < JOB_LINE_BYTES_MAX);
