//! A program that dials, for commands under attack tests to start: this test binary itself, asked by
//! variables.

use std::io::Write;
use std::net::TcpStream;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};

/// A command line that dials `address` (`tcp:HOST:PORT`, `unix:PATH`, `abstract:NAME`) and says `reached` if
/// it got through.
pub fn dial(address: &str) -> String {
    let program = std::env::current_exe().unwrap();
    format!("DIAL={address} {} --exact dialler::dials_when_asked_to --nocapture", program.display())
}

#[test]
fn dials_when_asked_to() {
    let Ok(address) = std::env::var("DIAL") else { return };
    let (kind, rest) = address.split_once(':').unwrap();
    let reached = match kind {
        "tcp" => TcpStream::connect(rest).and_then(|mut stream| stream.write_all(b"x")),
        "unix" => UnixStream::connect(rest).and_then(|mut stream| stream.write_all(b"x")),
        "abstract" => SocketAddr::from_abstract_name(rest)
            .and_then(|address| UnixStream::connect_addr(&address))
            .and_then(|mut stream| stream.write_all(b"x")),
        other => panic!("what is {other}?"),
    };
    match reached {
        Ok(()) => println!("reached"),
        Err(error) => println!("not got through: {error}"),
    }
}
