//! The network of sandboxed programs: a proxy in our process that decides about each destination.
//!
//! Programs in a sandbox have a private network with nothing in it but one listening socket, which [`serve`]
//! is given. The proxy resolves names itself, asks a [`Gatekeeper`] about the destination and about the
//! address, and checks that a connection leads where it claims to: the name in the TLS handshake, and the `Host`
//! of a request, must be the destination. Where rules are about methods, or a host gets a credential, TLS ends
//! here, with a certificate of the session's [`Authority`].
//!
//! What decides is pure and separate from the connections: [`client_hello`], [`destination`], [`head`],
//! `mask`. Every head, handshake and wait is bounded, and so is the number of connections.
//!
//! Invariant: no byte reaches a server before its host, address and (where it can be seen) method were admitted.

mod buffered;
mod certificate;
pub mod client_hello;
pub mod destination;
mod exchange;
mod gatekeeper;
pub mod head;
mod mask;
mod server;
mod tunnel;

pub use certificate::{Authority, pem};
pub use destination::Destination;
pub use gatekeeper::{Admission, ConnectionRecord, Credential, Gatekeeper, Problem};
pub use mask::Mask;
pub use server::{MAX_CONNECTIONS, Serving, serve};
