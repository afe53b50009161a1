//! Attempts to reach peers over a network or a socket.

use std::io::Read;
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};

use super::{Fixture, has, variants};

#[test]
fn the_network_is_unreachable_unless_allowed() {
    if !has("python3") {
        return;
    }
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    tcp.set_nonblocking(true).unwrap();
    udp.set_nonblocking(true).unwrap();
    let (tcp_port, udp_port) = (tcp.local_addr().unwrap().port(), udp.local_addr().unwrap().port());
    let script = format!(
        "python3 - <<'END'
import socket
def attempt(what):
    try: what()
    except OSError as error: print(error)
attempt(lambda: socket.create_connection(('127.0.0.1', {tcp_port}), 5).sendall(b'tcp'))
attempt(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'udp', ('127.0.0.1', {udp_port})))
attempt(lambda: socket.socket(socket.AF_INET6, socket.SOCK_DGRAM).sendto(b'udp', ('::ffff:127.0.0.1', {udp_port})))
END
(echo bash > /dev/tcp/127.0.0.1/{tcp_port}) 2> /dev/null; (echo bash > /dev/udp/127.0.0.1/{udp_port}) 2> /dev/null; true"
    );
    for variant in variants() {
        for allowed in [false, true] {
            let mut fixture = Fixture::new();
            fixture.policy.network = allowed;
            let ran = fixture.run(&variant, &script);
            let mut heard = vec![];
            while let Ok((mut stream, _)) = tcp.accept() {
                stream.set_nonblocking(false).unwrap();
                let mut text = String::new();
                stream.read_to_string(&mut text).unwrap();
                heard.push(text);
            }
            let mut buffer = [0; 16];
            while let Ok(length) = udp.recv(&mut buffer) {
                heard.push(String::from_utf8_lossy(&buffer[..length]).into_owned());
            }
            let expected: &[&str] = if allowed { &["tcp", "bash\n", "udp", "udp", "bash\n"] } else { &[] };
            assert_eq!(heard, expected, "{}, allowed {allowed}: {ran:?}", variant.name);
        }
    }
}

#[test]
fn commands_have_a_loopback_among_themselves_where_networks_can_be_made() {
    if !has("python3") {
        return;
    }
    let script = "python3 - <<'END'
import socket
server = socket.create_server(('127.0.0.1', 0))
client = socket.create_connection(server.getsockname())
server.accept()[0].sendall(b'hello')
print(client.recv(5).decode())
END";
    for variant in
        variants().iter().filter(|variant| variant.means.namespaces.is_some_and(|(_, network)| network))
    {
        let ran = Fixture::new().run(variant, script);
        assert_eq!(ran.out, "hello\n", "{}: {ran:?}", variant.name);
    }
}

#[test]
fn unix_sockets_are_out_of_reach_unless_allowed() {
    if !has("python3") {
        return;
    }
    for variant in variants() {
        for network in [false, true] {
            for allowed in [false, true] {
                let mut fixture = Fixture::new();
                fixture.policy.network = network;
                fixture.policy.unix_sockets = allowed;
                let stream = UnixListener::bind(fixture.root.join("stream")).unwrap();
                let datagram = UnixDatagram::bind(fixture.root.join("datagram")).unwrap();
                let name =
                    format!("qwen-{}-{allowed}-{network}-{}", std::process::id(), fixture.root.display());
                let hidden =
                    UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
                stream.set_nonblocking(true).unwrap();
                datagram.set_nonblocking(true).unwrap();
                hidden.set_nonblocking(true).unwrap();
                let script = format!(
                    "python3 - <<'END'
import socket
def attempt(what):
    try: what()
    except OSError as error: print(error)
attempt(lambda: socket.socket(socket.AF_UNIX).connect('stream'))
attempt(lambda: socket.socket(socket.AF_UNIX).connect('\\0{name}'))
attempt(lambda: socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b'x', 'datagram'))
attempt(lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)[0].sendto(b'x', 'datagram'))
attempt(lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)[0].connect('stream'))
one, two = socket.socketpair()
one.sendall(b'pair')
print(two.recv(4).decode())
END"
                );
                let ran = fixture.run(&variant, &script);
                let case = format!("{}, network {network}, allowed {allowed}: {ran:?}", variant.name);
                assert!(ran.out.contains("pair"), "{case}");
                assert_eq!(stream.accept().is_ok(), allowed, "{case}");
                assert_eq!(datagram.recv(&mut [0]).is_ok(), allowed, "{case}");
                // Another network has other abstract names.
                assert!(allowed || hidden.accept().is_err(), "{case}");
            }
        }
    }
}

#[test]
fn sockets_of_other_kinds_are_refused() {
    if !has("python3") {
        return;
    }
    let script = "python3 - <<'END'
import socket
for family, kind, protocol in [(17, 3, 0), (40, 1, 0), (38, 5, 0), (16, 3, 15), (16, 3, 9), (16, 3, 4), (44, 3, 0), (31, 3, 0)]:
    try:
        socket.socket(family, kind, protocol)
        print('made', family, protocol)
    except PermissionError:
        pass
socket.socket(16, 3, 0)
END";
    for variant in variants() {
        for network in [false, true] {
            let mut fixture = Fixture::new();
            fixture.policy.network = network;
            let ran = fixture.run(&variant, script);
            assert!(ran.ok && ran.out.is_empty(), "{}: {ran:?}", variant.name);
        }
    }
}
