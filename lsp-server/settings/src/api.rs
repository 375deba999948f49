//! The table `[api]`: the HTTP API for editors' plugins.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The port that nobody has to choose. llama.cpp's and Ollama's own ports stay theirs.
const PORT: u16 = 4663;

/// Ports below belong to the system.
const PORT_MIN: u16 = 1024;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ApiConfig {
    /// Whether plugins that speak the HTTP of OpenAI, llama.cpp or Ollama are answered, on this
    /// machine alone and with the token that `hone api` prints. The daemon then does not end by
    /// itself.
    pub enabled: bool,
    /// The port of 127.0.0.1 and ::1 on which they are answered.
    #[schemars(range(min = PORT_MIN))]
    pub port: u16,
}

impl Default for ApiConfig {
    fn default() -> Self {
        ApiConfig { enabled: false, port: PORT }
    }
}
