//! The table `[team]`: sharing a part of the adapter with a team.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What is shared with a team, if anything. `hone team join` sets the address.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TeamConfig {
    /// Where the team's coordinator listens, such as `hone.example.org:9092`. If it is not set,
    /// nothing is shared and nothing is received.
    pub address: Option<String>,
    /// The PEM file with the certificate that the coordinator's must be signed by.
    pub certificate: Option<String>,
    /// A contribution is made only for rounds with at least this many members. With two, each
    /// could compute the other's contribution from the sum.
    #[schemars(range(min = 2, max = 100_000))]
    pub minimum_members: usize,
    /// Noise for differential privacy, as a multiple of `lab.team_max_norm`: the sum of a round has
    /// Gaussian noise of this standard deviation at least. Each member adds a share of it before
    /// anything is sent. 0 adds none.
    #[schemars(range(min = 0.0, max = 1_000.0))]
    pub noise: f64,
    /// With noise, nothing is contributed once this ε would be passed.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub epsilon_limit: f64,
}

impl Default for TeamConfig {
    fn default() -> Self {
        TeamConfig {
            address: None,
            certificate: None,
            minimum_members: 3,
            noise: 0.0,
            epsilon_limit: 8.0,
        }
    }
}
