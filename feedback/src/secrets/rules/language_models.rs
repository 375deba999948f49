//! Credentials of services that run language models and search for them.

use super::{Rule, rule};

pub(super) const RULES: &[Rule] = &[
    rule("Anthropic key", &["sk-ant-"], r"\bsk-ant-[\w-]{16,}").min_entropy(3.0),
    rule(
        "OpenAI key",
        &["sk-proj-", "sk-svcacct-", "sk-admin-", "sk-or-", "sk-lf-", "sk-none-"],
        r"\bsk-(?:proj|svcacct|admin|or|lf|None)-[\w-]{16,}",
    )
    .min_entropy(3.0),
    rule("OpenAI key", &["sk-"], r"\bsk-[A-Za-z0-9]{32,}").min_entropy(3.0),
    rule("Hugging Face token", &["hf_"], r"\bhf_[A-Za-z]{30,}").min_entropy(3.0),
    rule("Hugging Face token", &["api_org_"], r"\bapi_org_[A-Za-z]{30,}").min_entropy(3.0),
    rule("Groq key", &["gsk_"], r"\bgsk_[A-Za-z0-9]{40,}"),
    rule("Replicate token", &["r8_"], r"\br8_[A-Za-z0-9]{30,}"),
    rule("xAI key", &["xai-"], r"\bxai-[A-Za-z0-9]{40,}"),
    rule("Perplexity key", &["pplx-"], r"\bpplx-[A-Za-z0-9]{40,}"),
    rule("NVIDIA key", &["nvapi-"], r"\bnvapi-[\w-]{40,}"),
    rule("Together key", &["tgp_v1_"], r"\btgp_v1_[\w-]{30,}"),
    rule("Fireworks key", &["fw_"], r"\bfw_[A-Za-z0-9]{22,}\b").min_entropy(3.8),
    rule("Cerebras key", &["csk-"], r"\bcsk-[a-z0-9]{40,}"),
    rule("Pinecone key", &["pcsk_"], r"\bpcsk_[\w]{40,}"),
    rule("LangSmith key", &["lsv2_"], r"\blsv2_(?:pt|sk)_[a-f0-9]{32}_[a-f0-9]{10}"),
    rule("Tavily key", &["tvly-"], r"\btvly-(?:dev-|prod-)?[A-Za-z0-9]{24,}"),
    rule("Firecrawl key", &["fc-"], r"\bfc-[a-f0-9]{32}\b"),
    rule("ElevenLabs key", &["sk_"], r"\bsk_[a-f0-9]{48}\b"),
    rule("Weights & Biases key", &["wandb"], r"(?i)wandb[\w .-]{0,20}[\s:=(]+.?[a-f0-9]{40}\b"),
];
