//! Allocations of one step. Apart from the timings, which a counting allocator would falsify.

mod scene;

use std::hint::black_box;

use cronjob_controller::reconcile::Memory;
use scene::{CHILDREN, ROWS, Scene};

#[global_allocator]
static ALLOCATOR: dhat::Alloc = dhat::Alloc;

fn main() {
    let _profiler = dhat::Profiler::builder().testing().build();
    for (what, recorded) in ROWS {
        for children in CHILDREN {
            let scene = Scene::new(children, recorded);
            let mut memory = Memory::default();
            // The first step of the process also loads the zone.
            black_box(scene.step(&mut Memory::default()));
            let before = dhat::HeapStats::get();
            black_box(scene.step(&mut memory));
            let after = dhat::HeapStats::get();
            let (blocks, bytes) = (after.total_blocks - before.total_blocks, after.total_bytes - before.total_bytes);
            println!("step, {what}, {children} children: {blocks} allocations, {bytes} bytes");
        }
    }
}
