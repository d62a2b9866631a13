//! Asking a port on loopback, plain or over TLS without looking at its certificate.

use std::sync::Arc;

use kube::client::ConfigExt;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;

/// Code and body of an answer. HTTP/1.0, so that a body comes whole and ends with the connection.
pub(crate) type Answer = (u16, String);

/// GET over TLS, with a token if there is one.
pub(crate) async fn get_secure(port: u16, path: &str, token: Option<&str>) -> std::io::Result<Answer> {
    let tcp = TcpStream::connect(("127.0.0.1", port)).await?;
    let connector = TlsConnector::from(Arc::new(trusting()));
    get(connector.connect("localhost".try_into().unwrap(), tcp).await?, path, token).await
}

/// GET in plain HTTP.
pub(crate) async fn get_plain(port: u16, path: &str) -> std::io::Result<Answer> {
    get(TcpStream::connect(("127.0.0.1", port)).await?, path, None).await
}

/// A client that believes every certificate.
fn trusting() -> ClientConfig {
    let mut config = kube::Config::new("https://localhost".parse().unwrap());
    config.accept_invalid_certs = true;
    config.root_cert = Some(Vec::new());
    config.rustls_client_config().unwrap()
}

async fn get<S: AsyncRead + AsyncWrite + Unpin>(mut to: S, path: &str, token: Option<&str>) -> std::io::Result<Answer> {
    let authorization = token.map(|token| format!("authorization: Bearer {token}\r\n")).unwrap_or_default();
    let request = format!("GET {path} HTTP/1.0\r\nhost: localhost\r\n{authorization}\r\n");
    to.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    match to.read_to_string(&mut answer).await {
        // A server that closes without TLS' farewell has answered all the same.
        Err(error) if answer.is_empty() => return Err(error),
        _ => {}
    }
    let (head, body) = answer.split_once("\r\n\r\n").ok_or_else(|| std::io::Error::other(answer.clone()))?;
    let code = head.split(' ').nth(1).unwrap().parse().unwrap();
    Ok((code, body.to_owned()))
}
