//! A way to the server that can be shut: for a while nothing gets through, and what was connected is cut. Afterwards a watch
//! whose revision the server has forgotten meanwhile must list anew.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "real time and real connections: nothing here repeats from a seed"
)]

use anyhow::Context;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

/// Open until told otherwise; ends when dropped.
pub(crate) struct Gate {
    pub(crate) port: u16,
    open: watch::Sender<bool>,
    _stop: DropGuard,
}

impl Gate {
    /// Leads to `server` (host and port).
    pub(crate) async fn to(server: String) -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await.context("no free port")?;
        let port = listener.local_addr()?.port();
        let (open, seen) = watch::channel(true);
        let stop = CancellationToken::new();
        let (tasks, until) = (TaskTracker::new(), stop.clone());
        let accepting = tasks.clone();
        tasks.spawn(async move {
            until
                .run_until_cancelled(async {
                    while let Ok((client, _)) = listener.accept().await {
                        if *seen.borrow() {
                            accepting.spawn(carry(client, server.clone(), seen.clone()));
                        }
                    }
                })
                .await
        });
        Ok(Self { port, open, _stop: stop.drop_guard() })
    }

    pub(crate) fn set_open(&self, open: bool) {
        self.open.send_replace(open);
    }
}

async fn carry(mut client: TcpStream, server: String, mut open: watch::Receiver<bool>) {
    let Ok(mut server) = TcpStream::connect(server).await else { return };
    let shut = open.wait_for(|open| !open);
    tokio::select! {
        biased;
        _shut_or_gone = shut => {}
        // Whoever ends it, it is over.
        _ended = copy_bidirectional(&mut client, &mut server) => {}
    }
}
