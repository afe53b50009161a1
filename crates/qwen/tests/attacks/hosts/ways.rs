//! Ways past the proxy, and ways to mislead it.

use std::net::UdpSocket;

use serde_json::json;

use super::{CLOSED, Net, OPEN};

/// The proxy's port, for commands that speak to it by hand.
const BY_HAND: &str = "speak() { exec 3<>/dev/tcp/127.0.0.1/${HTTP_PROXY##*:}; printf \"$1\" >&3; timeout 20 cat <&3; exec 3>&-; }; ";

#[test]
fn nothing_but_the_proxy_is_reached() {
    let Some(net) = Net::new(&["Network(docs.example.test)"]) else { return };
    let ear = UdpSocket::bind("127.0.0.1:0").unwrap();
    ear.set_nonblocking(true).unwrap();
    let udp = ear.local_addr().unwrap().port();
    let commands = [
        "curl -sS --noproxy '*' http://127.0.0.1:PLAIN/".to_owned(),
        "NO_PROXY='*' no_proxy='*' curl -sS http://OPEN:PLAIN/".to_owned(),
        "env -u HTTP_PROXY -u http_proxy -u ALL_PROXY -u all_proxy curl -sS http://127.0.0.1:PLAIN/".to_owned(),
        "exec 3<>/dev/tcp/127.0.0.1/PLAIN; printf 'GET / HTTP/1.1\\r\\n\\r\\n' >&3; cat <&3".to_owned(),
        "curl -sS -g --noproxy '*' 'http://[::1]:PLAIN/'".to_owned(),
        "curl -sS -g --noproxy '*' 'http://[::ffff:127.0.0.1]:PLAIN/'".to_owned(),
        format!("echo secret > /dev/udp/127.0.0.1/{udp}"),
        format!("python3 -c \"import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', {udp}))\""),
        "python3 -c \"import socket; print(socket.getaddrinfo('example.org', 80))\"".to_owned(),
        "getent ahosts example.org".to_owned(),
        "python3 -c \"import socket; s=socket.socket(socket.AF_INET, socket.SOCK_RAW, 1); s.sendto(b'x', ('127.0.0.1', 0)); print('raw socket')\""
            .to_owned(),
        "python3 -c \"import socket; s=socket.socket(socket.AF_PACKET, socket.SOCK_RAW); print('packet socket')\"".to_owned(),
        "ip route add default dev lo; ip link set lo down; curl -sS --noproxy '*' http://127.0.0.1:PLAIN/".to_owned(),
    ];
    let commands: Vec<&str> = commands.iter().map(String::as_str).collect();
    let played = net.play(&commands);
    assert_eq!(net.hits(), 0, "{:?}", net.plain.seen());
    assert!(ear.recv(&mut [0; 8]).is_err(), "a datagram came out");
    for (number, command) in commands.iter().enumerate() {
        let result = played.result(&format!("c{}", number + 1));
        for sign in ["hello", "('93.", "packet socket\n", "STREAM"] {
            assert!(!result.contains(sign), "{command}: {result}");
        }
    }
}

#[test]
fn a_connection_leads_where_it_claims_to() {
    let Some(net) = Net::new(&["Network(docs.example.test)"]) else { return };
    let by_hand = [
        // The address of an open host is not that host.
        "CONNECT 127.0.0.1:PLAIN HTTP/1.1\\r\\n\\r\\nGET / HTTP/1.1\\r\\nHost: OPEN:PLAIN\\r\\n\\r\\n",
        "CONNECT [::ffff:127.0.0.1]:PLAIN HTTP/1.1\\r\\n\\r\\nGET / HTTP/1.1\\r\\nHost: OPEN:PLAIN\\r\\n\\r\\n",
        "CONNECT 2130706433:PLAIN HTTP/1.1\\r\\n\\r\\n",
        "CONNECT 0x7f.1:PLAIN HTTP/1.1\\r\\n\\r\\n",
        "CONNECT OPEN:PLAIN@CLOSED:PLAIN HTTP/1.1\\r\\n\\r\\n",
        "CONNECT CLOSED:PLAIN HTTP/1.1\\r\\nHost: OPEN:PLAIN\\r\\n\\r\\nGET / HTTP/1.1\\r\\nHost: OPEN:PLAIN\\r\\n\\r\\n",
        // The Host differs from the address.
        "GET http://OPEN:PLAIN/ HTTP/1.1\\r\\nHost: CLOSED:PLAIN\\r\\n\\r\\n",
        "GET http://OPEN:PLAIN/ HTTP/1.1\\r\\nHost: OPEN:1\\r\\n\\r\\n",
        "GET http://OPEN:PLAIN/ HTTP/1.1\\r\\nHost: OPEN:PLAIN\\r\\nHost: CLOSED:PLAIN\\r\\n\\r\\n",
        "GET http://OPEN:PLAIN/ HTTP/1.1\\r\\n\\r\\n",
        "GET http://CLOSED:PLAIN/ HTTP/1.1\\r\\nHost: OPEN:PLAIN\\r\\n\\r\\n",
        "GET http://OPEN:PLAIN@CLOSED:PLAIN/ HTTP/1.1\\r\\nHost: OPEN:PLAIN\\r\\n\\r\\n",
        "GET /relative HTTP/1.1\\r\\nHost: OPEN:PLAIN\\r\\n\\r\\n",
        "CONNECT OPEN:PLAIN HTTP/1.1\\r\\n\\r\\nGET / HTTP/1.1\\r\\nHost: CLOSED:PLAIN\\r\\n\\r\\n",
        "CONNECT OPEN:PLAIN HTTP/1.1\\r\\n\\r\\nGET http://CLOSED:PLAIN/ HTTP/1.1\\r\\nHost: OPEN:PLAIN\\r\\n\\r\\n",
        // Framing that servers read differently.
        "POST http://OPEN:PLAIN/ HTTP/1.1\\r\\nHost: OPEN:PLAIN\\r\\nContent-Length: 4\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n0\\r\\n\\r\\nGET / HTTP/1.1\\r\\nHost: CLOSED\\r\\n\\r\\n",
        "POST http://OPEN:PLAIN/ HTTP/1.1\\r\\nHost: OPEN:PLAIN\\r\\nContent-Length: 0\\r\\nContent-Length: 40\\r\\n\\r\\n",
        "GET http://OPEN:PLAIN/ HTTP/1.1\\r\\nHost: OPEN:PLAIN\\r\\nX: a\\nHost: CLOSED\\r\\n\\r\\n",
        // HTTP/2 without TLS, and protocols that are not checked.
        "CONNECT OPEN:PLAIN HTTP/1.1\\r\\n\\r\\nPRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n",
        "PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n",
        "CONNECT OPEN:PLAIN HTTP/1.1\\r\\n\\r\\nSSH-2.0-OpenSSH_9\\r\\n",
        "CONNECT OPEN:PLAIN HTTP/1.1\\r\\n\\r\\n\\x16\\x03\\x01\\x00\\x04\\x02\\x00\\x00\\x00",
        // SOCKS: the address of the host, BIND, UDP, and a name with a NUL.
        "\\x05\\x01\\x00\\x05\\x01\\x00\\x01\\x7f\\x00\\x00\\x01\\x00\\x50",
        "\\x05\\x01\\x00\\x05\\x02\\x00\\x01\\x7f\\x00\\x00\\x01\\x00\\x50",
        "\\x05\\x01\\x00\\x05\\x03\\x00\\x01\\x00\\x00\\x00\\x00\\x00\\x00",
        "\\x05\\x01\\x00\\x05\\x01\\x00\\x03\\x03a\\x00b\\x00\\x50",
        "\\x04\\x01\\x00\\x50\\x7f\\x00\\x00\\x01\\x00",
    ];
    let mut commands: Vec<String> = by_hand.iter().map(|text| format!("{BY_HAND} speak '{text}'")).collect();
    let by_curl = [
        // The name in the handshake is another one, or none.
        "curl -sS -k --connect-to CLOSED:TLS:OPEN:TLS https://CLOSED:TLS/",
        "curl -sS -k --connect-to ::127.0.0.1:TLS https://OPEN:TLS/",
        "curl -sS -k --connect-to 127.0.0.1:TLS:OPEN:TLS https://127.0.0.1:TLS/",
        "curl -sS -H 'Host: evil.example.test' http://OPEN:PLAIN/",
        "curl -sS --http2-prior-knowledge --proxytunnel http://OPEN:PLAIN/",
    ];
    commands.extend(by_curl.map(str::to_owned));
    let played = net.play(&commands.iter().map(String::as_str).collect::<Vec<_>>());
    for (number, command) in commands.iter().enumerate() {
        let result = played.result(&format!("c{}", number + 1));
        assert!(!result.contains("hello"), "{command}: {result}");
    }
    assert_eq!(net.hits(), 0, "{:?} {:?}", net.plain.seen(), net.tls.seen());
}

#[test]
fn what_follows_a_request_is_not_another_request() {
    let Some(net) = Net::new(&["Network(docs.example.test)"]) else { return };
    let second = "GET /second HTTP/1.1\\r\\nHost: CLOSED:PLAIN\\r\\n\\r\\n";
    let first = [
        "GET http://OPEN:PLAIN/ HTTP/1.1\\r\\nHost: OPEN:PLAIN\\r\\n\\r\\n",
        "GET http://OPEN:PLAIN/ HTTP/1.1\\r\\nHost: OPEN:PLAIN\\r\\nConnection: keep-alive, Content-Length\\r\\nContent-Length: 0\\r\\n\\r\\n",
        "POST http://OPEN:PLAIN/ HTTP/1.1\\r\\nHost: OPEN:PLAIN\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n0\\r\\n\\r\\n",
        "CONNECT OPEN:PLAIN HTTP/1.1\\r\\n\\r\\nGET / HTTP/1.1\\r\\nHost: OPEN:PLAIN\\r\\n\\r\\n",
        "GET http://OPEN:PLAIN/upgrade HTTP/1.1\\r\\nHost: OPEN:PLAIN\\r\\n\\r\\n",
    ];
    let commands: Vec<String> =
        first.iter().map(|first| format!("{BY_HAND} speak '{first}{second}'")).collect();
    net.play(&commands.iter().map(String::as_str).collect::<Vec<_>>());
    let seen = net.plain.seen();
    assert_eq!(seen.len(), first.len(), "{seen:?}");
    assert!(!seen.iter().any(|head| head.contains("second") || head.contains(CLOSED)), "{seen:?}");
}

#[test]
fn a_redirect_leads_nowhere_that_the_first_address_could_not() {
    let Some(net) = Net::new(&["Network(docs.example.test)"]) else { return };
    let targets = [
        "http://CLOSED:PLAIN/",
        "https://CLOSED:TLS/",
        "http://127.0.0.1:PLAIN/",
        "http://169.254.169.254/latest/meta-data/",
        "http://[::1]:PLAIN/",
        "http://CLOSED:PLAIN/to/http://OPEN:PLAIN/",
    ];
    let mut commands: Vec<String> = targets
        .iter()
        .map(|target| format!("curl -sS -g -L --noproxy '' 'http://OPEN:PLAIN/to/{target}'"))
        .collect();
    commands.push("curl -sS -L http://OPEN:PLAIN/to/http://OPEN:PLAIN/".to_owned());
    let played = net.play(&commands.iter().map(String::as_str).collect::<Vec<_>>());
    for (number, target) in targets.iter().enumerate() {
        let result = played.result(&format!("c{}", number + 1));
        assert!(!result.contains("hello") && result.contains("refused"), "{target}: {result}");
    }
    assert!(played.result(&format!("c{}", commands.len())).contains("hello"));
    assert!(
        net.plain.seen().iter().all(|head| head.contains(&format!("Host: {OPEN}"))),
        "{:?}",
        net.plain.seen()
    );
}

#[test]
fn a_name_that_leads_inside_is_refused_whatever_its_rule() {
    #[rustfmt::skip]
    let addresses = [
        "127.0.0.1", "127.8.8.8", "0.0.0.0", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.100.100.200", "168.63.129.16",
        "::1", "::ffff:127.0.0.1", "::ffff:169.254.169.254", "fd00:ec2::254", "fe80::1", "64:ff9b::7f00:1", "2002:7f00:1::",
    ];
    let names: Vec<String> = (0..addresses.len()).map(|number| format!("h{number}.rebound.test")).collect();
    let aliases: serde_json::Map<String, serde_json::Value> =
        names.iter().zip(addresses).map(|(name, address)| (name.clone(), json!([address]))).collect();
    let Some(net) = Net::with(&["Network(*)"], |settings| {
        settings["tools"]["network"]["resolve"] = aliases.into();
        settings["tools"]["webFetch"]["allowPrivateHosts"] = json!(["other.rebound.test:80"]);
    }) else {
        return;
    };
    let mut commands: Vec<String> =
        names.iter().map(|name| format!("curl -sS http://{name}:PLAIN/")).collect();
    commands.extend(
        ["localhost", "a.localhost", "169.254.169.254", "10.0.0.1"]
            .map(|host| format!("curl -sS --noproxy '' http://{host}:PLAIN/")),
    );
    let played = net.play(&commands.iter().map(String::as_str).collect::<Vec<_>>());
    for (number, command) in commands.iter().enumerate() {
        let result = played.result(&format!("c{}", number + 1));
        assert!(result.contains("allowPrivateHosts"), "{command}: {result}");
    }
    assert_eq!(net.hits(), 0);
}

#[test]
fn a_denied_address_is_denied_under_every_name() {
    let Some(net) = Net::with(&["Network(*)"], |settings| {
        settings["permissions"]["deny"] = json!(["Network(127.0.0.1)"]);
    }) else {
        return;
    };
    let played = net.play(&["curl -sS http://OPEN:PLAIN/", "curl -sS --noproxy '' http://127.0.0.1:PLAIN/"]);
    assert!(played.result("c1").contains("the rule Network(127.0.0.1) denies it"), "{}", played.result("c1"));
    assert_eq!(net.hits(), 0);
}

#[test]
fn large_uploads_and_other_protocols_after_an_upgrade_pass() {
    let Some(net) = Net::new(&["Network(docs.example.test)"]) else { return };
    let upgrade = "GET http://OPEN:PLAIN/upgrade HTTP/1.1\\r\\nHost: OPEN:PLAIN\\r\\nConnection: Upgrade\\r\\nUpgrade: echo\\r\\n\\r\\nping!\\n";
    let played = net.play(&[
        "head -c 20000000 /dev/zero | curl -sS -H 'Expect:' --data-binary @- http://OPEN:PLAIN/upload",
        "head -c 20000000 /dev/zero | curl -sS --cacert {bundle} --data-binary @- https://OPEN:TLS/upload",
        &format!("{BY_HAND} speak '{upgrade}'"),
    ]);
    for id in ["c1", "c2"] {
        assert!(played.result(id).contains("20000000 bytes"), "{}", played.result(id));
    }
    assert!(played.result("c3").contains("ping!"), "{}", played.result("c3"));
    let sent = net.logged().iter().filter_map(|entry| entry["sent"].as_u64()).max();
    assert!(sent >= Some(20_000_000), "{sent:?}");
}

#[test]
fn a_rule_with_a_port_opens_that_port_to_every_protocol() {
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port();
    // This server speaks first.
    std::thread::spawn(move || {
        for mut stream in server.incoming().flatten() {
            let _ = std::io::Write::write_all(&mut stream, b"220 greetings\r\n");
            let mut line = [0; 6];
            let _ = std::io::Read::read_exact(&mut stream, &mut line);
            let _ = std::io::Write::write_all(&mut stream, &line);
        }
    });
    let Some(net) = Net::with(&[&format!("Network({OPEN}:{port})")], |settings| {
        settings["tools"]["webFetch"]["allowPrivateHosts"] =
            json!([format!("{OPEN}:{port}"), format!("{OPEN}:1")]);
    }) else {
        return;
    };
    let tunnel = format!("{BY_HAND} speak 'CONNECT {OPEN}:{port} HTTP/1.1\\r\\n\\r\\n.EHLO\\n'");
    let other = format!("{BY_HAND} speak 'CONNECT {OPEN}:1 HTTP/1.1\\r\\n\\r\\n.EHLO\\n'");
    let played = net.play(&[&tunnel, &other]);
    let result = played.result("c1");
    assert!(result.contains("220 greetings") && result.contains(".EHLO"), "{result}");
    assert!(played.result("c2").contains("403"), "{}", played.result("c2"));
}

#[test]
fn a_flood_of_connections_is_bounded_and_the_session_goes_on() {
    let Some(net) = Net::new(&["Network(docs.example.test)"]) else { return };
    let flood = "python3 - <<'END'\n\
        import os, socket\n\
        port = int(os.environ['HTTP_PROXY'].rsplit(':', 1)[1])\n\
        idle = []\n\
        for number in range(600):\n\
        \x20   s = socket.socket(); s.setblocking(False); s.connect_ex(('127.0.0.1', port)); idle.append(s)\n\
        for s in idle: s.close()\n\
        for number in range(600):\n\
        \x20   s = socket.create_connection(('127.0.0.1', port))\n\
        \x20   s.sendall(b'CONNECT h%d.evil.test:443 HTTP/1.1\\r\\n\\r\\n' % number)\n\
        \x20   assert b'403' in s.recv(100)\n\
        \x20   s.close()\n\
        s = socket.create_connection(('127.0.0.1', port))\n\
        try:\n\
        \x20   s.sendall(b'GET http://' + b'a' * 5000000)\n\
        \x20   print(s.recv(100))\n\
        except OSError: pass\n\
        print('flooded')\n\
        END";
    let played = net.play(&[flood, "curl -sS http://OPEN:PLAIN/"]);
    assert!(played.result("c1").contains("flooded"), "{}", played.result("c1"));
    assert!(played.result("c1").len() < 4_000, "{}", played.result("c1"));
    assert!(played.result("c2").contains("hello"), "{}", played.result("c2"));
    let logged = net.logged();
    assert!(logged.len() < 400, "{} entries", logged.len());
    let refused: u64 = logged
        .iter()
        .filter(|entry| entry["outcome"] == "refused")
        .filter_map(|entry| entry["count"].as_u64())
        .sum();
    assert_eq!(refused, 600);
}
