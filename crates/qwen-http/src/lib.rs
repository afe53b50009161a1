//! A small HTTP/1.1 client. It pays only for what a call needs: no resolver thread for literal addresses, no
//! TLS set-up before the first `https` address, no background task. The reader of a [`ResponseBody`] drives
//! the connection, so dropping the body closes the connection at once.
//!
//! Invariant: nothing here reads the environment, except that the system's certificates are looked up where
//! `SSL_CERT_FILE` and `SSL_CERT_DIR` point.

mod client;
mod connect;
mod error;
mod paced;
mod proxy;
mod public_address;
mod socket;
pub mod sse;
mod target;
mod tls;
mod url;

pub use client::{Client, HttpRequest, Response, ResponseBody};
pub use connect::{AddressCheck, ClientConfig, connect};
pub use error::Error;
pub use proxy::ProxyConfig;
pub use public_address::check_public;
pub use target::without_secrets;
pub use tls::{config as tls_config, trusted_certificates};
pub use url::Url;
