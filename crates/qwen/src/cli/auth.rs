//! `qwen auth`.

use clap::{Args, Subcommand};

use super::Configuration;

/// `qwen auth`
#[derive(Subcommand, Debug)]
pub enum AuthAction {
    /// Show where the model's key comes from; exit code 1 if no model is configured
    Status(AuthStatusArgs),
    /// Explain how to provide a key: there is nothing to sign in to
    Login(AuthLoginArgs),
    /// Do nothing: no sign-in is stored
    Logout,
}

/// `qwen auth status`
#[derive(Args, Debug)]
pub struct AuthStatusArgs {
    /// Print JSON, which is the default
    #[arg(long, conflicts_with = "text")]
    pub json: bool,

    /// Print the result as text
    #[arg(long)]
    pub text: bool,

    /// Where settings come from
    #[command(flatten)]
    pub configuration: Configuration,
}

/// `qwen auth login`
#[derive(Args, Debug)]
pub struct AuthLoginArgs {
    /// The account or service that other CLIs sign in to
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    pub account: Vec<String>,
}
