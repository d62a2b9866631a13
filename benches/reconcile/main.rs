//! One step of a CronJob, without the server: what a decision costs, by the number of its Jobs.

mod scene;

use criterion::{BatchSize, BenchmarkId, Criterion, criterion_group, criterion_main};
use cronjob_controller::reconcile::Memory;
use scene::{CHILDREN, ROWS, Scene};

fn steps(criterion: &mut Criterion) {
    for (what, recorded) in ROWS {
        let mut group = criterion.benchmark_group(format!("step, {what}"));
        for children in CHILDREN {
            let scene = Scene::new(children, recorded);
            group.bench_with_input(BenchmarkId::new("children", children), &scene, |bencher, scene| {
                bencher.iter_batched_ref(Memory::default, |memory| scene.step(memory), BatchSize::SmallInput);
            });
        }
        group.finish();
    }
}

criterion_group!(benches, steps);
criterion_main!(benches);
