//! A certificate authority that lives as long as the process. Its key never leaves our memory, and only
//! sandboxed programs are told to trust it.
//!
//! The certificates are written here, in DER, instead of by a library: two fixed templates with six values
//! (docs/decisions/0015-network-by-destination.md).

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom, SystemRandom};
use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

/// Most servers whose certificates are remembered.
const MAX_SERVERS: usize = 64;

/// Issues certificates for the servers whose connections the proxy reads.
pub struct Authority {
    key: EcdsaKeyPair,
    name: String,
    certificate: CertificateDer<'static>,
    servers: Mutex<HashMap<String, Arc<ServerConfig>>>,
}

impl Authority {
    pub fn new() -> io::Result<Self> {
        let random = SystemRandom::new();
        let (key, _) = make_key(&random)?;
        let name = format!("qwen session {}", hex(&random_bytes::<8>(&random)?));
        let subject = Certificate {
            issuer: &name,
            subject: &name,
            public_key: key.public_key().as_ref(),
            issuer_key: key.public_key().as_ref(),
            role: Role::Authority,
        };
        let certificate = subject.sign(&key, &random)?;
        Ok(Self { key, name, certificate, servers: Mutex::default() })
    }

    /// The authority's certificate as a text.
    pub fn pem(&self) -> String {
        pem(&self.certificate)
    }

    /// The configuration for answering as this host.
    pub fn server(&self, host: &str) -> io::Result<Arc<ServerConfig>> {
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(server) = servers.get(host) {
            return Ok(server.clone());
        }
        let random = SystemRandom::new();
        let (key, pkcs8) = make_key(&random)?;
        let certificate = Certificate {
            issuer: &self.name,
            subject: "qwen proxy",
            public_key: key.public_key().as_ref(),
            issuer_key: self.key.public_key().as_ref(),
            role: Role::Server(host),
        };
        let certificate = certificate.sign(&self.key, &random)?;
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(pkcs8));
        let mut config =
            ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
                .with_safe_default_protocol_versions()
                .and_then(|builder| builder.with_no_client_auth().with_single_cert(vec![certificate], key))
                .map_err(io::Error::other)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let config = Arc::new(config);
        if servers.len() >= MAX_SERVERS {
            servers.clear();
        }
        servers.insert(host.to_owned(), config.clone());
        Ok(config)
    }
}

/// A certificate as a text.
pub fn pem(certificate: &[u8]) -> String {
    const LINE: usize = 64;
    let body = BASE64_STANDARD.encode(certificate);
    let lines: Vec<&str> =
        body.as_bytes().chunks(LINE).filter_map(|line| std::str::from_utf8(line).ok()).collect();
    format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", lines.join("\n"))
}

fn make_key(random: &SystemRandom) -> io::Result<(EcdsaKeyPair, Vec<u8>)> {
    let algorithm = &ECDSA_P256_SHA256_ASN1_SIGNING;
    let pkcs8 = EcdsaKeyPair::generate_pkcs8(algorithm, random).map_err(|_| no_key())?;
    let key = EcdsaKeyPair::from_pkcs8(algorithm, pkcs8.as_ref(), random).map_err(|_| no_key())?;
    Ok((key, pkcs8.as_ref().to_vec()))
}

fn no_key() -> io::Error {
    io::Error::other("a key for the sandbox's certificates cannot be made")
}

fn random_bytes<const LENGTH: usize>(random: &SystemRandom) -> io::Result<[u8; LENGTH]> {
    let mut bytes = [0; LENGTH];
    random.fill(&mut bytes).map_err(|_| no_key())?;
    Ok(bytes)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What a certificate is for.
enum Role<'a> {
    Authority,
    /// The server with this name or address.
    Server(&'a str),
}

struct Certificate<'a> {
    issuer: &'a str,
    subject: &'a str,
    public_key: &'a [u8],
    issuer_key: &'a [u8],
    role: Role<'a>,
}

// Tags of DER.
const BOOLEAN: u8 = 0x01;
const INTEGER: u8 = 0x02;
const BITS: u8 = 0x03;
const OCTETS: u8 = 0x04;
const OBJECT: u8 = 0x06;
const UTF8: u8 = 0x0c;
const TIME: u8 = 0x17;
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const VERSION: u8 = 0xa0;
const EXTENSIONS: u8 = 0xa3;
/// The first implicit field of a structure.
const FIRST: u8 = 0x80;
const DNS_NAME: u8 = 0x82;
const ADDRESS: u8 = 0x87;

// Object identifiers, encoded.
const ECDSA_SHA256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2];
const EC_PUBLIC_KEY: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1];
const P256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7];
const COMMON_NAME: &[u8] = &[0x55, 4, 3];
const SUBJECT_KEY_ID: &[u8] = &[0x55, 0x1d, 14];
const KEY_USAGE: &[u8] = &[0x55, 0x1d, 15];
const ALTERNATIVE_NAME: &[u8] = &[0x55, 0x1d, 17];
const BASIC_CONSTRAINTS: &[u8] = &[0x55, 0x1d, 19];
const AUTHORITY_KEY_ID: &[u8] = &[0x55, 0x1d, 35];
const EXTENDED_KEY_USAGE: &[u8] = &[0x55, 0x1d, 37];
const SERVER_AUTH: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 3, 1];

/// The key is gone with the process, so the dates need not limit it.
const NOT_BEFORE: &[u8] = b"240101000000Z";
const NOT_AFTER: &[u8] = b"491231235959Z";

impl Certificate<'_> {
    fn sign(&self, key: &EcdsaKeyPair, random: &SystemRandom) -> io::Result<CertificateDer<'static>> {
        let mut serial = random_bytes::<16>(random)?;
        // A positive number without a leading zero.
        if let Some(first) = serial.first_mut() {
            *first = *first & 0x7f | 0x40;
        }
        let algorithm = node(SEQUENCE, &[&node(OBJECT, &[ECDSA_SHA256])]);
        let body = node(
            SEQUENCE,
            &[
                &node(VERSION, &[&node(INTEGER, &[&[2]])]),
                &node(INTEGER, &[&serial]),
                &algorithm,
                &name(self.issuer),
                &node(SEQUENCE, &[&node(TIME, &[NOT_BEFORE]), &node(TIME, &[NOT_AFTER])]),
                &name(self.subject),
                &node(
                    SEQUENCE,
                    &[
                        &node(SEQUENCE, &[&node(OBJECT, &[EC_PUBLIC_KEY]), &node(OBJECT, &[P256])]),
                        &node(BITS, &[&[0], self.public_key]),
                    ],
                ),
                &node(EXTENSIONS, &[&node(SEQUENCE, &[&self.extensions()])]),
            ],
        );
        let signature = key.sign(random, &body).map_err(|_| no_key())?;
        let whole = node(SEQUENCE, &[&body, &algorithm, &node(BITS, &[&[0], signature.as_ref()])]);
        Ok(CertificateDer::from(whole))
    }

    fn extensions(&self) -> Vec<u8> {
        let subject_key = extension(SUBJECT_KEY_ID, false, &node(OCTETS, &[&key_id(self.public_key)]));
        let issuer_key = node(SEQUENCE, &[&node(FIRST, &[&key_id(self.issuer_key)])]);
        let issuer_key = extension(AUTHORITY_KEY_ID, false, &issuer_key);
        // Bits, after the number of unused ones: digitalSignature; keyCertSign and cRLSign.
        let usage = |unused: u8, bits: u8| extension(KEY_USAGE, true, &node(BITS, &[&[unused, bits]]));
        let truth = node(BOOLEAN, &[&[0xff]]);
        match self.role {
            Role::Authority => [
                extension(BASIC_CONSTRAINTS, true, &node(SEQUENCE, &[&truth, &node(INTEGER, &[&[0]])])),
                usage(1, 0x06),
                subject_key,
                issuer_key,
            ]
            .concat(),
            Role::Server(host) => {
                let host = match host.parse() {
                    Ok(IpAddr::V4(address)) => node(ADDRESS, &[&address.octets()]),
                    Ok(IpAddr::V6(address)) => node(ADDRESS, &[&address.octets()]),
                    Err(_) => node(DNS_NAME, &[host.as_bytes()]),
                };
                [
                    extension(BASIC_CONSTRAINTS, true, &node(SEQUENCE, &[])),
                    usage(7, 0x80),
                    extension(EXTENDED_KEY_USAGE, false, &node(SEQUENCE, &[&node(OBJECT, &[SERVER_AUTH])])),
                    extension(ALTERNATIVE_NAME, false, &node(SEQUENCE, &[&host])),
                    subject_key,
                    issuer_key,
                ]
                .concat()
            }
        }
    }
}

fn extension(id: &[u8], is_critical: bool, value: &[u8]) -> Vec<u8> {
    let critical = if is_critical { node(BOOLEAN, &[&[0xff]]) } else { Vec::new() };
    node(SEQUENCE, &[&node(OBJECT, &[id]), &critical, &node(OCTETS, &[value])])
}

fn name(text: &str) -> Vec<u8> {
    let attribute = node(SEQUENCE, &[&node(OBJECT, &[COMMON_NAME]), &node(UTF8, &[text.as_bytes()])]);
    node(SEQUENCE, &[&node(SET, &[&attribute])])
}

fn key_id(public_key: &[u8]) -> Vec<u8> {
    const LENGTH: usize = 20;
    digest(&SHA256, public_key).as_ref().iter().take(LENGTH).copied().collect()
}

/// A value of DER: the tag, the length and the parts of the content.
fn node(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    let mut bytes = vec![tag];
    let digits = length.to_be_bytes();
    let significant: Vec<u8> = digits.iter().copied().skip_while(|digit| *digit == 0).collect();
    match u8::try_from(length) {
        Ok(short) if short < 0x80 => bytes.push(short),
        _ => {
            bytes.push(0x80 | u8::try_from(significant.len()).unwrap_or_default());
            bytes.extend(&significant);
        }
    }
    for part in parts {
        bytes.extend_from_slice(part);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use rustls::pki_types::ServerName;
    use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConnection};

    use super::*;

    /// Whether a client that trusts only `authority` accepts its server for `issued` as `asked`.
    fn accepts(authority: &Authority, issued: &str, asked: &str) -> bool {
        let mut roots = RootCertStore::empty();
        roots.add(authority.certificate.clone()).unwrap();
        let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let name = ServerName::try_from(asked.to_owned()).unwrap();
        let mut client = ClientConnection::new(Arc::new(config), name).unwrap();
        let mut server = ServerConnection::new(authority.server(issued).unwrap()).unwrap();
        for _ in 0..4 {
            let mut bytes = Vec::new();
            client.write_tls(&mut bytes).unwrap();
            server.read_tls(&mut bytes.as_slice()).unwrap();
            server.process_new_packets().unwrap();
            bytes.clear();
            server.write_tls(&mut bytes).unwrap();
            client.read_tls(&mut bytes.as_slice()).unwrap();
            if client.process_new_packets().is_err() {
                return false;
            }
        }
        !client.is_handshaking()
    }

    #[test]
    fn clients_accept_a_certificate_for_its_host_and_for_no_other() {
        let authority = Authority::new().unwrap();
        for host in ["docs.example.org", "127.0.0.1", "::1"] {
            assert!(accepts(&authority, host, host), "{host}");
        }
        assert!(!accepts(&authority, "docs.example.org", "evil.example"));
        assert!(!accepts(&authority, "docs.example.org", "a.docs.example.org"));
    }

    #[test]
    fn clients_of_another_authority_accept_nothing() {
        let (one, other) = (Authority::new().unwrap(), Authority::new().unwrap());
        let stolen = Authority { servers: Mutex::new(one.servers.lock().unwrap().clone()), ..other };
        one.server("a.example").unwrap();
        stolen.servers.lock().unwrap().insert("a.example".into(), one.server("a.example").unwrap());
        assert!(!accepts(&stolen, "a.example", "a.example"));
    }

    #[test]
    fn only_so_many_servers_are_remembered() {
        let authority = Authority::new().unwrap();
        for number in 0..=MAX_SERVERS {
            authority.server(&format!("h{number}.example")).unwrap();
        }
        assert!(authority.servers.lock().unwrap().len() <= MAX_SERVERS);
    }
}
