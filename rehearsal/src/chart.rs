//! The cumulative accept rate of both arms, with a mark at every update.

use crate::record::LineRecord;
use crate::run::Outcome;
use anyhow::{Context, Result, anyhow};
use plotters::prelude::*;
use std::path::Path;

const SIZE: (u32, u32) = (800, 420);
/// Rates before this many shown offers jump too much to be drawn.
const MIN_SHOWN: usize = 5;
const COLORS: [RGBColor; 2] = [RGBColor(120, 120, 120), RGBColor(0, 110, 200)];
const FONT: &str = "sans-serif";

pub fn write(outcome: &Outcome, path: &Path) -> Result<()> {
    let mut svg = String::new();
    draw(outcome, &mut svg).map_err(|error| anyhow!("cannot draw the chart: {error}"))?;
    std::fs::write(path, svg).with_context(|| format!("cannot write {}", path.display()))
}

fn draw(outcome: &Outcome, svg: &mut String) -> Result<(), Box<dyn std::error::Error>> {
    let curves: Vec<Vec<(f64, f64)>> =
        (0..outcome.arms.len()).map(|arm| accept_rates(&outcome.lines, arm)).collect();
    let points = outcome.lines.iter().map(|line| line.points.len()).sum::<usize>().max(1) as f64;
    let top = curves.iter().flatten().map(|(_, rate)| *rate).fold(10.0, f64::max) * 1.15;

    let root = SVGBackend::with_string(svg, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&root)
        .margin(12)
        .caption("Accepted of the offers shown so far", (FONT, 18))
        .x_label_area_size(40)
        .y_label_area_size(52)
        .build_cartesian_2d(0.0..points, 0.0..top)?;
    chart
        .configure_mesh()
        .light_line_style(WHITE)
        .x_desc("places in the stream at which a completion was asked for")
        .y_desc("accept rate, %")
        .x_label_formatter(&|x| format!("{x:.0}"))
        .y_label_formatter(&|y| format!("{y:.0}"))
        .label_style((FONT, 13))
        .draw()?;
    for ((arm, curve), color) in outcome.arms.iter().zip(&curves).zip(COLORS) {
        for update in &arm.updates {
            let x = update.at_point as f64;
            chart.draw_series([PathElement::new([(x, 0.0), (x, top)], color.mix(0.25))])?;
        }
        chart
            .draw_series(LineSeries::new(curve.iter().copied(), color.stroke_width(2)))?
            .label(match arm.updates.len() {
                0 => arm.kind.name().to_owned(),
                count => format!("{} ({count} updates, thin lines)", arm.kind.name()),
            })
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], color.stroke_width(2)));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .background_style(WHITE.mix(0.8))
        .label_font((FONT, 13))
        .draw()?;
    root.present()?;
    Ok(())
}

/// (points so far, accepted of shown in percent), at every point that showed something.
fn accept_rates(lines: &[LineRecord], arm: usize) -> Vec<(f64, f64)> {
    let (mut shown, mut accepted) = (0, 0);
    let mut curve = Vec::new();
    for (index, point) in lines.iter().flat_map(|line| &line.points).enumerate() {
        let Some(asked) = point.asked[arm].filter(|asked| asked.fate.is_some()) else { continue };
        shown += 1;
        accepted += usize::from(asked.accepted());
        if shown >= MIN_SHOWN {
            curve.push(((index + 1) as f64, 100.0 * accepted as f64 / shown as f64));
        }
    }
    curve
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::outcome;

    #[test]
    fn curves_count_from_the_first_offers_on() {
        let curve = accept_rates(&outcome().lines, 1);
        assert_eq!(curve.len(), 36);
        assert_eq!(curve[0], (5.0, 40.0));
        assert_eq!(curve[35], (40.0, 25.0));
    }

    #[test]
    fn the_chart_is_an_svg_that_names_both_arms_and_the_updates() {
        let mut svg = String::new();
        draw(&outcome(), &mut svg).unwrap();
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
        assert!(svg.contains("frozen") && svg.contains("learning (1 updates"));
    }
}
