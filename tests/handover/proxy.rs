//! The line between one replica and the server, which can be frozen or cut.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "real time and real connections: nothing here repeats from a seed"
)]

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_util::task::TaskTracker;

/// What the line does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Open,
    /// Bytes wait, connections stay.
    Frozen,
    /// Connections break, new ones are refused.
    Cut,
}

pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    mode: watch::Sender<Mode>,
}

impl Proxy {
    /// A line to `server`.
    pub(crate) async fn start(server: SocketAddr, tasks: &TaskTracker) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mode = watch::Sender::new(Mode::Open);
        let (accepting, connections) = (mode.subscribe(), tasks.clone());
        tasks.spawn(async move {
            loop {
                let (client, _) = listener.accept().await.unwrap();
                let mode = accepting.clone();
                if *mode.borrow() == Mode::Cut {
                    continue;
                }
                connections.spawn(async move {
                    if let Ok(server) = TcpStream::connect(server).await {
                        carry(client, server, mode).await;
                    }
                });
            }
        });
        Self { address, mode }
    }

    pub(crate) fn set(&self, mode: Mode) {
        self.mode.send_replace(mode);
    }
}

/// Carries both directions until either ends or the line is cut.
async fn carry(client: TcpStream, server: TcpStream, mode: watch::Receiver<Mode>) {
    client.set_nodelay(true).unwrap();
    server.set_nodelay(true).unwrap();
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let mut cut = mode.clone();
    tokio::select! {
        () = pump(from_client, to_server, mode.clone()) => {}
        () = pump(from_server, to_client, mode) => {}
        _ = cut.wait_for(|mode| *mode == Mode::Cut) => {}
    }
}

async fn pump(
    mut from: impl AsyncReadExt + Unpin,
    mut to: impl AsyncWriteExt + Unpin,
    mut mode: watch::Receiver<Mode>,
) {
    let mut buffer = vec![0; 64 << 10];
    loop {
        let Ok(read @ 1..) = from.read(&mut buffer).await else { return };
        if mode.wait_for(|mode| *mode != Mode::Frozen).await.is_err() {
            return;
        }
        if to.write_all(&buffer[..read]).await.is_err() {
            return;
        }
    }
}
