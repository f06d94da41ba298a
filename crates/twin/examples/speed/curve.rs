//! Measures the cost of a step against the length of the queue, as data and as a picture.

use crate::decision::{Cost, measure};

/// Numbers of waiting requests.
const QUEUED: [u64; 7] = [1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000];

/// A line of the picture: name, color, what it shows.
type Line = (&'static str, &'static str, fn(&Cost) -> f64);

pub(crate) fn print(svg: Option<&str>) {
    let costs = QUEUED.map(|queued| measure(queued, "fulgurite"));
    for Cost { queued, mean, p50, p99, .. } in &costs {
        println!(
            "{{\"queued\":{queued},\"mean_ns\":{mean:.0},\"p50_ns\":{p50:.0},\"p99_ns\":{p99:.0}}}"
        );
    }
    if let Some(path) = svg {
        std::fs::write(path, draw(&costs)).unwrap();
    }
}

/// Draws the curve. Both axes are logarithmic: 10 ns to 100 us over 1e3 to 1e6 requests.
fn draw(costs: &[Cost]) -> String {
    let x = |queued: u64| 80.0 + ((queued as f64).log10() - 3.0) / 3.0 * 520.0;
    let y = |nanos: f64| 340.0 - (nanos.log10() - 1.0) / 4.0 * 300.0;
    let mut svg = String::from(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 640 400\" \
         font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"640\" height=\"400\" fill=\"#fff\"/>\n\
         <text x=\"340\" y=\"24\" text-anchor=\"middle\" font-size=\"15\">Cost of an event against \
         the length of the queue (40 shuttles)</text>\n",
    );
    for power in 3..=6u32 {
        let at = x(10u64.pow(power));
        svg += &format!(
            "<path d=\"M{at:.0} 40V340\" stroke=\"#ddd\"/><text x=\"{at:.0}\" y=\"358\" \
             text-anchor=\"middle\">1e{power}</text>\n"
        );
    }
    for (nanos, label) in
        [(10.0, "10 ns"), (1e2, "100 ns"), (1e3, "1 us"), (1e4, "10 us"), (1e5, "100 us")]
    {
        let at = y(nanos);
        svg += &format!(
            "<path d=\"M80 {at:.0}H600\" stroke=\"#ddd\"/><text x=\"74\" y=\"{:.0}\" \
             text-anchor=\"end\">{label}</text>\n",
            at + 4.0
        );
    }
    svg += "<text x=\"340\" y=\"384\" text-anchor=\"middle\">requests waiting</text>\n";
    let target = y(2e4);
    svg += &format!(
        "<path d=\"M80 {target:.0}H600\" stroke=\"#999\" stroke-dasharray=\"5 4\"/>\
         <text x=\"596\" y=\"{:.0}\" text-anchor=\"end\" fill=\"#777\">target of the 99th \
         percentile: 20 us</text>\n",
        target - 5.0
    );
    let lines: [Line; 3] = [
        ("99th percentile", "#b9481a", |cost| cost.p99),
        ("mean", "#14508f", |cost| cost.mean),
        ("median", "#4c8a3f", |cost| cost.p50),
    ];
    for (name, color, value) in lines {
        let points: Vec<String> = costs
            .iter()
            .map(|cost| format!("{:.1},{:.1}", x(cost.queued), y(value(cost).max(10.0))))
            .collect();
        let last = costs.last().map_or(340.0, |cost| y(value(cost).max(10.0)));
        svg += &format!(
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{color}\" stroke-width=\"2\"/>\
             <text x=\"596\" y=\"{:.0}\" text-anchor=\"end\" fill=\"{color}\">{name}</text>\n",
            points.join(" "),
            last - 7.0
        );
    }
    svg + "</svg>\n"
}
