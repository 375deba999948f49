//! The options by which LSP clients choose a transport. Many clients append them to every
//! server's command line, also where there is nothing to choose.

use anyhow::{Result, bail};

#[derive(Debug, Default, clap::Args)]
pub struct TransportOptions {
    /// Speak on stdin and stdout, as without this option; many clients append it
    #[arg(long)]
    stdio: bool,
    // A server may watch this process and end with it. The end of stdin says the same.
    #[arg(long = "clientProcessId", alias = "client-process-id", value_name = "PID", hide = true)]
    client_process_id: Option<String>,
    #[arg(long, hide = true)]
    node_ipc: bool,
    #[arg(long, value_name = "PORT", hide = true)]
    socket: Option<String>,
    #[arg(long, alias = "port", value_name = "NAME", hide = true)]
    pipe: Option<String>,
}

impl TransportOptions {
    /// # Errors
    /// Another transport than stdin and stdout is asked for.
    pub fn check(&self) -> Result<()> {
        let asked = [
            ("--node-ipc", self.node_ipc),
            ("--socket", self.socket.is_some()),
            ("--pipe", self.pipe.is_some()),
        ];
        match asked.iter().find(|(_, asked)| *asked) {
            None => Ok(()),
            Some((option, _)) => bail!(
                "`hone lsp` speaks on stdin and stdout only; set the client's transport to stdio, \
                 or leave {option} out"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        transport: TransportOptions,
    }

    fn check(options: &[&str]) -> Result<()> {
        let line = [&["hone"], options].concat();
        Line::try_parse_from(line).unwrap_or_else(|error| panic!("{error}")).transport.check()
    }

    #[test]
    fn stdio_is_accepted_however_it_is_said_and_nothing_else_is() {
        check(&[]).unwrap();
        check(&["--stdio"]).unwrap();
        check(&["--stdio", "--clientProcessId=42"]).unwrap();
        check(&["--clientProcessId", "42"]).unwrap();
        for other in ["--node-ipc", "--socket=9000", "--pipe=/tmp/x", "--port=9000"] {
            let error = check(&[other]).unwrap_err().to_string();
            assert!(error.contains("stdin and stdout only"), "{other}: {error}");
        }
    }
}
