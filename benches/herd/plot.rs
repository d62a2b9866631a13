//! Arrivals over time as SVG, written by hand: a few lines of text that every browser shows.

use std::fmt::Write;

use super::report::Curve;

const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 480.0;
/// Room for axes and legend.
const MARGIN: f64 = 60.0;
const COLOURS: [&str; 4] = ["#7f7f7f", "#1f77b4", "#d62728", "#2ca02c"];
/// A curve is drawn with no more points than that.
const POINTS: usize = 400;
const TICKS: u32 = 5;

/// How many of each curve had come by which time.
pub(crate) fn svg(title: &str, curves: &[Curve]) -> String {
    let end = curves.iter().filter_map(|curve| curve.at_s.last()).fold(1e-3, |a: f64, b| a.max(*b));
    let most = curves.iter().map(|curve| curve.at_s.len()).max().unwrap_or(1).max(1) as f64;
    let x = |at: f64| MARGIN + at.max(0.0) / end * (WIDTH - 2.0 * MARGIN);
    let y = |count: f64| HEIGHT - MARGIN - count / most * (HEIGHT - 2.0 * MARGIN);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n<text x=\"{MARGIN}\" y=\"24\">{title}</text>\n"
    );
    // Writing to a String cannot fail.
    for tick in 0..=TICKS {
        let share = f64::from(tick) / f64::from(TICKS);
        let (at, count) = (end * share, most * share);
        let _ = writeln!(
            out,
            "<line x1=\"{MARGIN}\" x2=\"{right}\" y1=\"{level:.1}\" y2=\"{level:.1}\" stroke=\"#ddd\"/>\
             <text x=\"{left}\" y=\"{level:.1}\" text-anchor=\"end\">{count:.0}</text>\
             <text x=\"{place:.1}\" y=\"{below}\" text-anchor=\"middle\">{at:.2} s</text>",
            right = WIDTH - MARGIN,
            left = MARGIN - 6.0,
            level = y(count),
            place = x(at),
            below = HEIGHT - MARGIN + 18.0,
        );
    }
    for (number, curve) in curves.iter().enumerate() {
        let colour = COLOURS[number % COLOURS.len()];
        let _ = writeln!(
            out,
            "<polyline fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" points=\"{}\"/>\
             <text x=\"{}\" y=\"{}\" fill=\"{colour}\">{}</text>",
            points(curve, x, y),
            WIDTH - MARGIN - 200.0,
            HEIGHT - MARGIN - 14.0 - 18.0 * number as f64,
            curve.name,
        );
    }
    out + "</svg>\n"
}

fn points(curve: &Curve, x: impl Fn(f64) -> f64, y: impl Fn(f64) -> f64) -> String {
    let count = curve.at_s.len();
    let step = count.div_ceil(POINTS).max(1);
    let places = (0..count).step_by(step).chain(count.checked_sub(1));
    places.map(|at| format!("{:.1},{:.1} ", x(curve.at_s[at]), y((at + 1) as f64))).collect()
}
