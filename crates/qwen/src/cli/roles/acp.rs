//! Flags of the Agent Client Protocol.

use clap::Args;

#[derive(Args, Debug, Default, Clone, PartialEq, Eq)]
pub struct AcpFlags {
    /// Serve an editor over the Agent Client Protocol on standard input and output
    #[arg(long, alias = "experimental-acp", help_heading = "Input and output")]
    pub acp: bool,

    /// Also send parts of the Agent Client Protocol that are not stable: usage
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = ["usage"], help_heading = "Input and output")]
    pub acp_unstable: Vec<String>,

    /// What the editor can show, for the acp dialect of a worker
    #[arg(long, value_name = "NAMES", hide = true)]
    pub acp_client: Option<String>,
}
