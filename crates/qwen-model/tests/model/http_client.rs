//! The HTTP client on its own, as other parts of the program use it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use qwen_http::{Client, ClientConfig, Error, HttpRequest, ProxyConfig, Response};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::server::{Server, Then, sized};

async fn text(mut response: Response) -> String {
    let mut text = Vec::new();
    while let Some(bytes) = response.body.data().await {
        text.extend_from_slice(&bytes.unwrap());
    }
    String::from_utf8(text).unwrap()
}

#[tokio::test]
async fn get_and_post_on_one_connection() {
    let server = Server::answering([
        (sized("200 OK", "text/plain", "got"), Then::KeepOpen),
        (sized("404 Not Found", "text/plain", "nothing"), Then::KeepOpen),
    ])
    .await;
    let client = Client::new(ClientConfig::default());
    let response = client.send(HttpRequest::get(format!("http://{}/a?b=c", server.address))).await.unwrap();
    assert_eq!((response.status.as_u16(), text(response).await.as_str()), (200, "got"));
    let url = format!("http://localhost:{}/", server.address.port());
    let response = client.send(HttpRequest::post(url, Bytes::from_static(b"hello"))).await.unwrap();
    assert_eq!((response.status.as_u16(), text(response).await.as_str()), (404, "nothing"));
    let requests = server.requests();
    assert!(requests[0].head.starts_with("GET /a?b=c HTTP/1.1\r\n"), "{}", requests[0].head);
    assert_eq!(requests[0].header("content-length"), None);
    assert_eq!((requests[1].body.as_str(), requests[1].header("content-length")), ("hello", Some("5")));
    assert_eq!(requests[1].header("host"), Some(format!("localhost:{}", server.address.port()).as_str()));
    assert_eq!((requests[0].connection, requests[1].connection), (0, 1), "another host, another connection");
}

#[tokio::test]
async fn an_address_is_checked_before_it_is_connected_to() {
    let server = Server::answering([("", Then::Close)]).await;
    let check_address =
        Arc::new(
            |ip: std::net::IpAddr| {
                if ip.is_loopback() { Err("loopback is off limits".to_owned()) } else { Ok(()) }
            },
        );
    let client = Client::new(ClientConfig { check_address: Some(check_address), ..ClientConfig::default() });
    for host in ["127.0.0.1", "localhost"] {
        let url = format!("http://{host}:{}/", server.address.port());
        let error = client.send(HttpRequest::get(url)).await.unwrap_err();
        assert!(matches!(error, Error::AddressRefused { .. }), "{error}");
        assert!(error.to_string().contains("off limits") && !error.is_transient());
    }
    assert_eq!(server.requests().len(), 0);
}

#[tokio::test]
async fn a_plain_request_through_a_proxy_names_the_whole_address() {
    let proxy = Server::answering([(sized("200 OK", "text/plain", "via"), Then::Close)]).await;
    let config =
        ProxyConfig { all: Some(format!("http://me:pw@{}", proxy.address)), ..ProxyConfig::default() };
    let client = Client::new(ClientConfig { proxy: config, ..ClientConfig::default() });
    let response = client.send(HttpRequest::get("http://far.example:81/x")).await.unwrap();
    assert_eq!(text(response).await, "via");
    let received = proxy.requests().remove(0);
    assert!(received.head.starts_with("GET http://far.example:81/x HTTP/1.1\r\n"), "{}", received.head);
    assert_eq!(received.header("host"), Some("far.example:81"));
    assert_eq!(received.header("proxy-authorization"), Some("Basic bWU6cHc="));
}

#[tokio::test]
async fn a_secure_request_asks_the_proxy_for_a_tunnel() {
    let refusal = "HTTP/1.1 407 Proxy Authentication Required\r\n\r\n";
    let proxy = Server::answering([(refusal, Then::Close), ("HTTP/1.1 200 OK\r\n\r\n", Then::Close)]).await;
    let config = ProxyConfig { https: Some(proxy.address.to_string()), ..ProxyConfig::default() };
    let client = Client::new(ClientConfig { proxy: config, ..ClientConfig::default() });
    let error = client.send(HttpRequest::get("https://far.example/x")).await.unwrap_err();
    assert!(matches!(error, Error::Proxy { .. }) && error.to_string().contains("407"), "{error}");
    // Let through, but what is there does not speak TLS.
    let error = client.send(HttpRequest::get("https://far.example/x")).await.unwrap_err();
    assert!(matches!(error, Error::Tls { .. }), "{error}");
    let received = proxy.requests().remove(0);
    assert!(received.head.starts_with("CONNECT far.example:443 HTTP/1.1\r\n"), "{}", received.head);
    assert_eq!(received.header("host"), Some("far.example:443"));
}

#[tokio::test]
async fn connecting_has_a_time_limit_of_its_own() {
    // A proxy that never answers CONNECT holds the connection up.
    let proxy = Server::start(|mut connection| async move {
        connection.request().await;
        connection.closed().await;
    })
    .await;
    let config = ProxyConfig { all: Some(proxy.address.to_string()), ..ProxyConfig::default() };
    let limit = Duration::from_millis(50);
    let client =
        Client::new(ClientConfig { connect_timeout: limit, proxy: config, ..ClientConfig::default() });
    let error = client.send(HttpRequest::get("https://far.example/")).await.unwrap_err();
    assert!(matches!(error, Error::ConnectTimeout { .. }), "{error}");
    assert!(error.to_string().contains("far.example:443") && error.to_string().contains("0.05 s"), "{error}");
}

#[tokio::test]
async fn a_head_that_does_not_come_is_a_time_out() {
    let server = Server::start(|mut connection| async move {
        connection.request().await;
        connection.closed().await;
    })
    .await;
    let client = Client::new(ClientConfig::default());
    let request = HttpRequest {
        head_timeout: Some(Duration::from_millis(50)),
        ..HttpRequest::get(format!("http://{}/", server.address))
    };
    let error = client.send(request).await.unwrap_err();
    assert!(matches!(error, Error::HeadTimeout { .. }), "{error}");
}

/// A server behind a certificate that nobody has signed; made for these tests and good for nothing else.
async fn unsigned_server() -> std::net::SocketAddr {
    let certificate = CertificateDer::from_slice(include_bytes!("tls/certificate.der"));
    let key = PrivateKeyDer::try_from(include_bytes!("tls/key.der").as_slice()).unwrap();
    let config =
        rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)
            .unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let Ok(mut stream) = acceptor.accept(stream).await else { continue };
            let mut request = [0; 4096];
            while stream.read(&mut request).await.is_ok_and(|n| n > 0) {
                stream.write_all(&sized("200 OK", "text/plain", "secret")).await.unwrap();
            }
        }
    });
    address
}

#[tokio::test]
async fn a_certificate_that_nobody_signed_is_refused_unless_the_user_insists() {
    let url = format!("https://localhost:{}/", unsigned_server().await.port());
    let error = Client::new(ClientConfig::default()).send(HttpRequest::get(url.as_str())).await.unwrap_err();
    assert!(matches!(error, Error::Tls { .. }) && !error.is_transient(), "{error}");
    let client = Client::new(ClientConfig { insecure: true, ..ClientConfig::default() });
    for _ in 0..2 {
        let response = client.send(HttpRequest::get(url.as_str())).await.unwrap();
        assert_eq!(text(response).await, "secret");
    }
}
