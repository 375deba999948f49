//! Learning curves: how many of the offers were accepted, and how many of the characters were
//! completed. Each point covers the last part of the stream before it.

use crate::run::RunResult;
use crate::run::record::LineRecord;
use anyhow::{Context, Result, anyhow};
use plotters::coord::Shift;
use plotters::prelude::*;
use std::path::Path;

const SIZE: (u32, u32) = (960, 400);
/// A point of a curve covers this share of the stream before it.
const WINDOW: f64 = 0.2;
/// Points of a curve.
const POINTS: usize = 80;
const FONT: &str = "sans-serif";
/// The first arm, which the others are compared with, is grey. The other colours are the palette of
/// Okabe and Ito, which colour-blind people can tell apart.
const COLORS: [RGBColor; 8] = [
    RGBColor(120, 120, 120),
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(0, 0, 0),
];

/// (part, whole) of a line. A curve shows the ratio of their sums in percent.
type Measure = fn(&LineRecord) -> (usize, usize);

fn accepted(line: &LineRecord) -> (usize, usize) {
    let shown = line.requests.iter().filter(|request| request.outcome.is_some()).count();
    (line.requests.iter().filter(|request| request.is_accepted()).count(), shown)
}

fn completed(line: &LineRecord) -> (usize, usize) {
    (line.completed(), line.chars)
}

/// Draws the arms over all repositories together.
pub fn write(results: &[&RunResult], path: &Path) -> Result<()> {
    let mut svg = String::new();
    draw(results, &mut svg).map_err(|error| anyhow!("cannot draw the chart: {error}"))?;
    std::fs::write(path, svg).with_context(|| format!("cannot write {}", path.display()))
}

fn draw(results: &[&RunResult], svg: &mut String) -> Result<(), Box<dyn std::error::Error>> {
    let root = SVGBackend::with_string(svg, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    let (left, right) = root.split_horizontally(SIZE.0 / 2);
    panel(&left, results, "Accepted, % of the offers shown", accepted)?;
    panel(&right, results, "Completed, % of the characters typed", completed)?;
    root.present()?;
    Ok(())
}

fn panel(
    area: &DrawingArea<SVGBackend, Shift>,
    results: &[&RunResult],
    caption: &str,
    measure: Measure,
) -> Result<(), Box<dyn std::error::Error>> {
    let arms = results.first().map_or(&[][..], |result| &result.arms);
    let places = results.iter().map(|result| result.places).max().unwrap_or(0).max(1) as f64;
    let curves: Vec<Vec<(f64, f64)>> =
        (0..arms.len()).map(|arm| curve(results, arm, places, measure)).collect();
    let top = curves.iter().flatten().map(|(_, percent)| *percent).fold(10.0, f64::max) * 1.2;
    let mut chart = ChartBuilder::on(area)
        .margin(12)
        .caption(caption, (FONT, 16))
        .x_label_area_size(40)
        .y_label_area_size(40)
        .build_cartesian_2d(0.0..places, 0.0..top)?;
    chart
        .configure_mesh()
        .light_line_style(WHITE)
        .x_desc(format!("places of the stream, over the last {:.0} % of it", 100.0 * WINDOW))
        .x_label_formatter(&|x| format!("{x:.0}"))
        .y_label_formatter(&|y| format!("{y:.0}"))
        .label_style((FONT, 12))
        .draw()?;
    for ((arm, curve), color) in arms.iter().zip(&curves).zip(COLORS.into_iter().cycle()) {
        chart
            .draw_series(LineSeries::new(curve.iter().copied(), color.stroke_width(2)))?
            .label(&arm.name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 14, y)], color.stroke_width(2)));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .background_style(WHITE.mix(0.8))
        .label_font((FONT, 12))
        .draw()?;
    Ok(())
}

/// The points (place, percent) of a curve, from the first full window on.
fn curve(results: &[&RunResult], arm: usize, places: f64, measure: Measure) -> Vec<(f64, f64)> {
    let window = WINDOW * places;
    let lines = || results.iter().flat_map(|result| &result.arms[arm].record.lines);
    (0..=POINTS)
        .filter_map(|point| {
            let to = window + (places - window) * point as f64 / POINTS as f64;
            let within = |line: &&LineRecord| (to - window..to).contains(&(line.place as f64));
            let (part, whole) = lines()
                .filter(within)
                .map(measure)
                .fold((0, 0), |(part, whole), (p, w)| (part + p, whole + w));
            (whole > 0).then(|| (to, 100.0 * part as f64 / whole as f64))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::run_result;

    #[test]
    fn a_curve_looks_back_over_its_window() {
        let result = run_result();
        let points = curve(&[&result], 0, 40.0, accepted);
        assert_eq!(points.len(), POINTS + 1);
        assert_eq!((points[0], points[POINTS]), ((8.0, 25.0), (40.0, 25.0)));
        assert!(curve(&[&result], 2, 40.0, completed).iter().all(|(_, percent)| *percent == 0.0));
    }

    #[test]
    fn the_chart_is_an_svg_that_names_the_arms() {
        let mut svg = String::new();
        let result = run_result();
        draw(&[&result, &result], &mut svg).unwrap();
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
        assert!(svg.contains("frozen") && svg.contains("ppo") && svg.contains("mute"));
    }
}
