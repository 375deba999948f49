//! The charts of the report. Their colours are names; the page's style gives each name its value,
//! by day and by night.

use super::Report;
use plotters::coord::Shift;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;

/// The colours stand for `--ink`, `--muted`, `--grid`, `--accent` and `--second` in the page's
/// style.
const INK: RGBColor = RGBColor(1, 1, 1);
const MUTED: RGBColor = RGBColor(2, 2, 2);
const GRID: RGBColor = RGBColor(3, 3, 3);
const ACCENT: RGBColor = RGBColor(4, 4, 4);
const SECOND: RGBColor = RGBColor(5, 5, 5);

const SIZE: (u32, u32) = (560, 250);
const FONT: &str = "sans-serif";
/// The size of labels in the picture's units. The page shows the picture at about two thirds of its
/// size.
const LABELS: u32 = 17;

/// The number of marks on the axis of days.
const DAY_MARKS: usize = 5;

/// The most adapters side by side. If there are more, the newest are shown.
const VERSIONS_LIMIT: usize = 24;

type DrawResult = Result<(), Box<dyn std::error::Error>>;
type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Draws one chart as SVG.
fn svg(label: &str, draw: impl FnOnce(&Area) -> DrawResult) -> anyhow::Result<String> {
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        draw(&root).map_err(|error| anyhow::anyhow!("cannot draw a chart: {error}"))?;
        root.present()?;
    }
    Ok(svg.replacen("<svg ", &format!("<svg role=\"img\" aria-label=\"{label}\" "), 1))
}

/// The accept rate of each version, with its interval. The chart is empty if no offer has a
/// verdict.
pub fn accept_by_version(report: &Report) -> anyhow::Result<String> {
    let judged: Vec<_> = report
        .versions
        .iter()
        .filter_map(|version| Some((version.name.as_str(), version.figures.accept?)))
        .collect();
    let shown = &judged[judged.len().saturating_sub(VERSIONS_LIMIT)..];
    if shown.is_empty() {
        return Ok(String::new());
    }
    svg("Accept rate by adapter version", |root| {
        let count = shown.len() as f64;
        let top = shown.iter().map(|(_, accept)| accept.high).fold(0.1, f64::max);
        let mut chart = ChartBuilder::on(root)
            .margin(6)
            .margin_right(22)
            .x_label_area_size(28)
            .y_label_area_size(56)
            .build_cartesian_2d(-0.5..count - 0.5, 0.0..(top * 1.1).min(1.0))?;
        let name = |x: &f64| {
            let near = x.round();
            let on = (x - near).abs() < 0.01;
            shown
                .get(near as usize)
                .filter(|_| on && near >= 0.0)
                .map_or(String::new(), |(n, _)| (*n).to_owned())
        };
        chart
            .configure_mesh()
            .disable_x_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(GRID)
            .axis_style(GRID)
            .x_labels(shown.len() * 2 + 1)
            .y_labels(5)
            .x_label_formatter(&name)
            .y_label_formatter(&|y| format!("{:.0} %", 100.0 * y))
            .label_style((FONT, LABELS).into_font().color(&MUTED))
            .draw()?;
        for (index, (_, accept)) in shown.iter().enumerate() {
            let x = index as f64;
            let line =
                PathElement::new([(x, accept.low), (x, accept.high)], ACCENT.stroke_width(2));
            chart.draw_series([line])?;
            chart.draw_series([Circle::new((x, accept.rate), 5, ACCENT.filled())])?;
        }
        Ok(())
    })
}

/// A line over the days, with a value for each day that has one.
struct Line<'a> {
    name: &'a str,
    color: RGBColor,
    points: Vec<(f64, f64)>,
}

/// The points of a line. A straight line bridges days without a value.
fn points(report: &Report, value: impl Fn(usize) -> Option<f64>) -> Vec<(f64, f64)> {
    let place = |index: usize| {
        let since = report.days[0].date.until(report.days[index].date);
        since.map_or(0.0, |span| f64::from(span.get_days()))
    };
    (0..report.days.len()).filter_map(|index| Some((place(index), value(index)?))).collect()
}

fn over_days(
    report: &Report,
    label: &str,
    lines: &[Line],
    filled: bool,
    least_top: f64,
    written: &dyn Fn(&f64) -> String,
) -> anyhow::Result<String> {
    let Some(first) = report.days.first() else { return Ok(String::new()) };
    let all = || lines.iter().flat_map(|line| &line.points);
    if all().next().is_none() {
        return Ok(String::new());
    }
    let last = all().map(|(x, _)| *x).fold(1.0, f64::max);
    let top = all().map(|(_, y)| *y).fold(least_top, f64::max) * 1.08;
    svg(label, |root| {
        let mut chart = ChartBuilder::on(root)
            .margin(6)
            .margin_right(22)
            .margin_top(if lines.len() > 1 { 26 } else { 6 })
            .x_label_area_size(28)
            .y_label_area_size(64)
            .build_cartesian_2d(0.0..last, 0.0..top)?;
        let date = |x: &f64| {
            let days = jiff::Span::new().try_days(x.round() as i64);
            let date = days.and_then(|days| first.date.checked_add(days));
            date.map_or(String::new(), |date| date.strftime("%-d %b").to_string())
        };
        chart
            .configure_mesh()
            .disable_x_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(GRID)
            .axis_style(GRID)
            .x_labels(DAY_MARKS.min(last as usize + 1))
            .y_labels(5)
            .x_label_formatter(&date)
            .y_label_formatter(&|y| written(y))
            .label_style((FONT, LABELS).into_font().color(&MUTED))
            .draw()?;
        for line in lines {
            draw_line(&mut chart, line, filled)?;
        }
        if lines.len() > 1 {
            legend(root, lines)?;
        }
        Ok(())
    })
}

type DaysChart<'a, 'b> =
    ChartContext<'a, SVGBackend<'b>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

/// Draws one line with a dot at its end and, if `filled`, the area below it.
fn draw_line(chart: &mut DaysChart, line: &Line, filled: bool) -> DrawResult {
    if filled {
        let (start, end) = (line.points.first(), line.points.last());
        let corners = start.into_iter().chain(end).map(|(x, _)| (*x, 0.0));
        let mut area: Vec<_> = line.points.clone();
        area.extend(corners.rev());
        chart.draw_series([Polygon::new(area, line.color.mix(0.15))])?;
    }
    let points = line.points.iter().copied();
    chart.draw_series(LineSeries::new(points, line.color.stroke_width(2)))?;
    if let Some(&end) = line.points.last() {
        chart.draw_series([Circle::new(end, 3, line.color.filled())])?;
    }
    Ok(())
}

/// Draws the names of the lines next to short strokes, at the upper right.
fn legend(root: &Area, lines: &[Line]) -> DrawResult {
    let mut x = SIZE.0 as i32 - 24;
    for line in lines.iter().rev() {
        // A letter of this size takes about 8 units.
        x -= 8 * line.name.chars().count() as i32;
        root.draw(&Text::new(
            line.name.to_owned(),
            (x, 0),
            (FONT, LABELS).into_font().color(&INK),
        ))?;
        root.draw(&PathElement::new([(x - 20, 8), (x - 6, 8)], line.color.stroke_width(3)))?;
        x -= 36;
    }
    Ok(())
}

fn percent(y: &f64) -> String {
    format!("{:.0} %", 100.0 * y)
}

/// Returns how often an offer was shown, and how often it was accepted.
pub fn rates(report: &Report) -> anyhow::Result<String> {
    let day = |index: usize| &report.days[index].figures;
    let shown = points(report, |index| day(index).shown_rate);
    let accepted = points(report, |index| day(index).accept.map(|accept| accept.rate));
    let lines = [
        Line { name: "shown of requested", color: SECOND, points: shown },
        Line { name: "accepted of judged", color: ACCENT, points: accepted },
    ];
    over_days(report, "Shown and accept rate by day", &lines, false, 1.0 / 1.08, &percent)
}

/// The characters that the user did not have to type, added up.
pub fn saved(report: &Report) -> anyhow::Result<String> {
    let mut sum = 0;
    let sums: Vec<u64> = report
        .days
        .iter()
        .map(|day| {
            sum += day.figures.saved;
            sum
        })
        .collect();
    let points = points(report, |index| Some(sums[index] as f64));
    let lines = [Line { name: "", color: ACCENT, points }];
    let written = |y: &f64| match *y as u64 {
        whole if whole >= 10_000 => format!("{} k", whole / 1000),
        whole => whole.to_string(),
    };
    over_days(report, "Characters saved, added up", &lines, true, 10.0, &written)
}

pub fn latency(report: &Report) -> anyhow::Result<String> {
    let day = |index: usize| &report.days[index].figures;
    let lines = [
        Line { name: "median", color: ACCENT, points: points(report, |i| day(i).p50_ms) },
        Line { name: "95th percentile", color: SECOND, points: points(report, |i| day(i).p95_ms) },
    ];
    over_days(report, "Latency by day", &lines, false, 10.0, &|y| format!("{y:.0} ms"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::report;

    #[test]
    fn charts_are_drawn_in_the_pages_colours_alone() {
        let report = report();
        for draw in [accept_by_version, rates, saved, latency] {
            let svg = draw(&report).unwrap();
            assert!(svg.starts_with("<svg role=") && svg.trim_end().ends_with("</svg>"));
            let colours = svg.split("=\"#").skip(1).map(|rest| &rest[..6]);
            for colour in colours {
                let named = ["010101", "020202", "030303", "040404", "050505"].contains(&colour);
                assert!(named || colour == "000000" && svg.contains("opacity=\"0\""), "{colour}");
            }
        }
    }

    #[test]
    fn an_empty_report_has_empty_charts() {
        let empty = crate::ReportBuilder::new(jiff::tz::TimeZone::UTC).report("m", None, vec![]);
        for draw in [accept_by_version, rates, saved, latency] {
            assert_eq!(draw(&empty).unwrap(), "");
        }
    }
}
