//! The load benchmark: the release binary against a server in another process, watched from outside, beside the floor and the
//! peer. `docs/performance.md` says what the numbers mean.
//!
//! One way through the files: [`args`] says what is wanted; a scenario ([`herd`], [`alone`], [`cold`], [`idle`], [`steady`])
//! starts a [`server`], fills it with a [`world`], starts a [`subject`] (us or the peer) or the [`floor`], and listens with an
//! [`observer`]; what it finds are [`figures`], which [`report`] prints and [`plot`] draws.
//!
//! Invariants
//! - Nothing is measured inside the subject: Jobs are seen on a watch of our own, writes are counted by the server, CPU and
//!   memory by the kernel.
//! - All subjects of a run get servers that were started afresh and filled alike, in turns.
//! - Whatever is started ends with this process, also when it is killed.

#![allow(clippy::print_stdout, reason = "the report is what people come for")]

mod alone;
pub(crate) mod args;
mod cold;
mod counts;
mod figures;
mod floor;
mod gate;
mod herd;
mod idle;
mod observer;
pub(crate) mod plot;
mod process;
mod progress;
pub(crate) mod report;
mod server;
mod steady;
mod subject;
mod world;

#[path = "../../tests/support/mod.rs"]
#[allow(clippy::unwrap_used, clippy::expect_used, reason = "shared with tests, where what cannot go on has failed")]
mod support;

use clap::Parser;

use args::{Args, Scenario};
use report::Report;

#[allow(dead_code, reason = "the smoke test includes this file and calls `measure`")]
fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let report = measure(&args)?;
    if args.json {
        println!("{}", report.json());
    } else {
        println!("{report}");
    }
    if let (Some(path), false) = (&args.plot, report.curves.is_empty()) {
        std::fs::write(path, plot::svg(&report.title, &report.curves))?;
    }
    Ok(())
}

/// Runs the scenario.
///
/// # Errors
/// A program does not start, the server refuses, or the machine is too slow for the times asked for.
pub(crate) fn measure(args: &Args) -> anyhow::Result<Report> {
    if args.scenario == Scenario::Steady {
        // Virtual time needs a runtime of its own.
        return steady::run(args);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        match args.scenario {
            Scenario::Herd => herd::run(args).await,
            Scenario::Alone => alone::run(args).await,
            Scenario::ColdStart => cold::run(args).await,
            Scenario::Memory | Scenario::Idle | Scenario::Steady => idle::run(args).await,
        }
    })
}
