//! Decides which IP addresses are public.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Returns an error if the address must not be connected to.
pub fn check_public(address: IpAddr) -> Result<(), String> {
    match kind(address) {
        None => Ok(()),
        Some(kind) => Err(format!("it is {kind}, not part of the public net")),
    }
}

/// Describes a non-public address; `None` for a public one.
fn kind(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(address) => kind_v4(address),
        IpAddr::V6(address) => kind_v6(address),
    }
}

fn kind_v4(address: Ipv4Addr) -> Option<&'static str> {
    Some(match address.octets() {
        [0, ..] => "an unspecified address",
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => "a private address",
        [127, ..] => "a loopback address",
        [100, 64..=127, ..] => "an address inside a provider's or a cloud's net",
        [169, 254, ..] => "a link-local address",
        // Azure's virtual machine metadata service.
        [168, 63, 129, 16] => "an address inside a cloud's net",
        [192, 0, 0, _] | [192, 88, 99, _] | [198, 18..=19, ..] => "an address for special purposes",
        [192, 0, 2, _] | [198, 51, 100, _] | [203, 0, 113, _] => "an address for documentation",
        [224..=239, ..] => "a multicast address",
        [240..=255, ..] => "a reserved address",
        _ => return None,
    })
}

fn kind_v6(address: Ipv6Addr) -> Option<&'static str> {
    // An embedded IPv4 address is in the last four bytes.
    let [.., a, b, c, d] = address.octets();
    let embedded = Ipv4Addr::new(a, b, c, d);
    Some(match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0] => "an unspecified address",
        [0, 0, 0, 0, 0, 0, 0, 1] => "a loopback address",
        // Forms that embed an IPv4 address: compatible, mapped, translated, and NAT64.
        [0, 0, 0, 0, 0, 0 | 0xffff, _, _]
        | [0, 0, 0, 0, 0xffff, 0, _, _]
        | [0x64, 0xff9b, 0, 0, 0, 0, _, _] => {
            return kind_v4(embedded);
        }
        [0xfc00..=0xfdff, ..] => "a private address",
        [0xfe80..=0xfeff, ..] => "a link-local address",
        [0xff00..=0xffff, ..] => "a multicast address",
        [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => "an address for documentation",
        // Tunnels, whose IPv4 endpoint cannot be checked here.
        [0x2001, 0, ..] | [0x2002, ..] => "an address inside a tunnel",
        [0x2001, 0..=0x1ff, ..] => "an address for special purposes",
        [0x2000..=0x3fff, ..] => return None,
        _ => "a reserved address",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_the_public_net_are_let_through() {
        for address in [
            "1.1.1.1",
            "8.8.8.8",
            "100.63.255.255",
            "100.128.0.0",
            "172.15.0.1",
            "172.32.0.1",
            "192.167.0.1",
            "169.253.0.1",
            "2606:4700::1111",
            "2001:4860:4860::8888",
            "::ffff:8.8.8.8",
            "64:ff9b::8.8.8.8",
        ] {
            assert_eq!(check_public(address.parse().unwrap()), Ok(()), "{address}");
        }
        for address in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "127.0.0.1",
            "127.255.255.255",
            "100.64.0.1",
            "100.100.100.200",
            "169.254.169.254",
            "168.63.129.16",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "192.0.0.192",
            "192.0.2.1",
            "198.18.0.1",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::127.0.0.1",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "::ffff:0:127.0.0.1",
            "64:ff9b::10.0.0.1",
            "64:ff9b::7f00:1",
            "64:ff9b:1::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "2001:db8::1",
            "2001::1",
            "2002:7f00:1::",
            "100::1",
            "4000::1",
        ] {
            assert!(check_public(address.parse().unwrap()).is_err(), "{address}");
        }
    }
}
