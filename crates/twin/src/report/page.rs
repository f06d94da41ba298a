//! The page around the figures: what was simulated, which checks hit or miss, and why.

use std::fmt::Write;

use super::canvas::escape;
use super::draw::figure;
use super::relation::{format_inputs, relation};
use super::scale::number;
use super::style::STYLE;
use crate::experiment::{
    CompanionFigure, Expected, Kind, PointCompanions, Report, Row, StatementReport, Unit, Verdict,
};

/// The subject of the report, from the caller.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// The paper, like `Project Silica (SOSP 2023)`.
    pub paper: String,
    /// The simulated system, in a sentence.
    pub simulated: String,
    /// Where the bands come from, as the end of a sentence.
    pub bands: String,
    /// The commit of the program.
    pub commit: String,
    /// The command that made the report.
    pub command: String,
    /// The machine it ran on, and how long it took.
    pub machine: String,
}

/// Returns the report as one HTML file.
#[must_use]
pub fn html(report: &Report, head: &Head) -> String {
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <title>The twin against the paper</title><style>{STYLE}</style></head>\n<body><main>\n"
    );
    opening(&mut page, report, head);
    constraints(&mut page, report);
    misses(&mut page, report);
    page.push_str(
        "<h2>Statements</h2>\n<p class=\"soft\">Lines and bars are ours: medians, with the range \
         over the seeds. Diamonds are values that the paper states in its text; its curves are \
         images and are not copied.</p>\n",
    );
    for statement in &report.statements {
        section(&mut page, statement);
    }
    assumptions(&mut page, report);
    page.push_str("</main></body></html>\n");
    page
}

fn put(page: &mut String, arguments: std::fmt::Arguments<'_>) {
    let written = page.write_fmt(arguments);
    assert!(written.is_ok(), "writing to a string never fails");
}

fn opening(page: &mut String, report: &Report, head: &Head) {
    page.push_str("<h1>The twin against the paper</h1>\n");
    put(
        page,
        format_args!(
            "<p class=\"soft\">{}, statement by statement. Everything on this page is simulated or \
         computed; nothing was measured on real machines.</p>\n<dl>",
            escape(&head.paper)
        ),
    );
    let runs = format!("{} different runs", report.jobs);
    let rows = [
        ("Simulated", &head.simulated),
        ("Runs", &runs),
        ("Commit", &head.commit),
        ("Command", &head.command),
        ("Machine", &head.machine),
    ];
    for (name, value) in rows {
        put(page, format_args!("<dt>{name}</dt><dd>{}</dd>", escape(value)));
    }
    page.push_str("</dl>\n<div class=\"totals\">");
    for kind in Kind::ALL {
        let ((hits, all), name) = (report.count(kind), kind.name());
        if all > 0 {
            put(
                page,
                format_args!("<div class=\"total\"><b>{hits} of {all}</b>{name} checks hit</div>"),
            );
        }
    }
    put(
        page,
        format_args!(
            "</div>\n<p><b>Fitted</b>: a value the paper does not give was chosen so that this \
             holds; it proves little. <b>Predicted</b>: nothing was chosen for it. <b>Own \
             target</b>: the paper says nothing of it. Bands come from the paper: {}.</p>\n",
            escape(&head.bands)
        ),
    );
}

/// Writes a statement: its checks, the figure next to them, and remarks on both.
fn section(page: &mut String, statement: &StatementReport) {
    let (id, title) = (escape(&statement.id), escape(&statement.title));
    let section = if statement.own {
        "No statement of the paper".to_owned()
    } else {
        format!("Section {}", statement.section)
    };
    put(
        page,
        format_args!(
            "<section id=\"{id}\"><h3>{id} {title}</h3>\n<p class=\"soft\">{}: {}</p>\n\
             <div class=\"beside\"><div>\n",
            escape(&section),
            escape(&statement.setting),
        ),
    );
    checks(page, statement);
    if statement.misses() {
        let explanation = statement.explanation.as_deref().unwrap_or("Not explained.");
        put(
            page,
            format_args!(
                "<p class=\"soft\">Paper: {}</p>\n<p><b>Why it misses:</b> {}</p>\n",
                escape(&statement.paper),
                escape(explanation)
            ),
        );
    }
    if let Some(text) = &statement.contradiction {
        put(page, format_args!("<p><b>The paper contradicts itself:</b> {}</p>\n", escape(text)));
    }
    page.push_str("</div>\n");
    picture(page, statement);
    page.push_str("</div></section>\n");
}

fn checks(page: &mut String, statement: &StatementReport) {
    page.push_str(
        "<div class=\"scroll\"><table><thead><tr><th>Verdict<th>Check<th>Paper\
         <th>Ours, median (range over seeds)<th>Band</tr></thead><tbody>\n",
    );
    for row in &statement.rows {
        check(page, row);
    }
    page.push_str("</tbody></table></div>\n");
}

fn check(page: &mut String, row: &Row) {
    let (class, verdict) = match row.verdict {
        Verdict::Hit => ("hit", "hit"),
        Verdict::Miss => ("miss", "miss"),
    };
    let expected = match &row.expected {
        Expected::Value(value) => with_unit(*value, row.details.unit),
        Expected::Words(_) => "a relation".to_owned(),
    };
    put(
        page,
        format_args!(
            "<tr><td class=\"number\"><span class=\"{class}\">{verdict}</span><br>\
             <span class=\"soft\">{}</span><td><b>{}</b><br>{}<td class=\"number\">{expected}\
             <td class=\"number\">{}<td class=\"number\">{}</tr>\n",
            row.kind().name(),
            escape(&row.id),
            escape(&row.details.title),
            ours(row),
            band(row),
        ),
    );
}

fn picture(page: &mut String, statement: &StatementReport) {
    if let Some(problem) = &statement.figure_problem {
        put(page, format_args!("<p>No figure, because {}.</p>\n", escape(problem)));
    }
    let Some(data) = &statement.figure else { return };
    put(
        page,
        format_args!(
            "<figure><figcaption><b>Figure {}</b> {}</figcaption>{}</figure>\n",
            escape(&data.id),
            escape(&data.title),
            figure(data),
        ),
    );
}

/// Formats our value with its range, or why there is none; for a relation, the relation in numbers.
fn ours(row: &Row) -> String {
    let mut text = value(row);
    if let Some(relation) = relation(row) {
        text = escape(&relation);
        if let (Some(min), Some(max)) = (row.details.min, row.details.max)
            && max > min
        {
            text.push_str(&format!(" ({} to {})", number(min), number(max)));
        }
    }
    if let Some(working) = &row.details.working {
        text.push_str(&format!(
            "<br><span class=\"soft\">{}</span>",
            escape(&format_inputs(working))
        ));
    }
    text
}

fn value(row: &Row) -> String {
    let unit = row.details.unit;
    match (row.ours, row.details.min, row.details.max) {
        (Some(median), Some(min), Some(max)) if max > min => {
            format!("{} ({} to {})", with_unit(median, unit), number(min), number(max))
        }
        (Some(median), ..) => with_unit(median, unit),
        (None, ..) => escape(row.details.problem.as_deref().unwrap_or("not a number")),
    }
}

fn band(row: &Row) -> String {
    let suffix = row.details.unit.suffix();
    match row.band {
        [Some(low), Some(high)] => format!("{} to {}{suffix}", number(low), number(high)),
        [None, Some(high)] => format!("up to {}{suffix}", number(high)),
        [Some(low), None] => format!("from {}{suffix}", number(low)),
        [None, None] => "any".to_owned(),
    }
}

fn with_unit(value: f64, unit: Unit) -> String {
    format!("{}{}", number(value), unit.suffix())
}

/// Writes the constraints of the runs next to the tails, for this project's own targets.
fn constraints(page: &mut String, report: &Report) {
    let own: Vec<&StatementReport> =
        report.statements.iter().filter(|statement| !statement.beside.is_empty()).collect();
    if own.is_empty() {
        return;
    }
    page.push_str(
        "<h2>Constraints beside the tails</h2>\n<p class=\"soft\">A tail can be bought with \
         work that is put off or dropped. Medians over the seeds; the oldest platter is that of \
         all of them.\
         </p>\n<div class=\"scroll\"><table><thead><tr><th>Statement<th>Run",
    );
    for number in own.iter().flat_map(|statement| &statement.beside).take(1).flat_map(numbers) {
        put(page, format_args!("<th>{}", escape(number.title)));
    }
    page.push_str("<th>Constraints</tr></thead><tbody>\n");
    for statement in own {
        for of in &statement.beside {
            let class = if of.companions.constraints.is_met() { "hit" } else { "miss" };
            let (id, run) = (escape(&statement.id), escape(&of.run));
            put(page, format_args!("<tr><td>{id}<td>{run}"));
            for number in numbers(of) {
                let shown = with_unit(number.unit.convert(number.value), number.unit);
                put(page, format_args!("<td class=\"number\">{shown}"));
            }
            let line = escape(&of.companions.constraints.line());
            put(page, format_args!("<td class=\"{class}\">{line}</tr>\n"));
        }
    }
    page.push_str("</tbody></table></div>\n");
}

fn numbers(companions: &PointCompanions) -> &[CompanionFigure] {
    &companions.companions.numbers
}

fn misses(page: &mut String, report: &Report) {
    page.push_str("<h2>Misses</h2>\n");
    if !report.statements.iter().any(StatementReport::misses) {
        page.push_str("<p>Every check hits.</p>\n");
        return;
    }
    page.push_str("<ul>\n");
    for row in report.rows().filter(|row| row.verdict == Verdict::Miss) {
        put(
            page,
            format_args!(
                "<li><a class=\"miss\" href=\"#{}\">{}</a> {}: {}, band {}</li>\n",
                escape(&row.details.statement),
                escape(&row.id),
                escape(&row.details.title),
                value(row),
                band(row),
            ),
        );
    }
    page.push_str("</ul>\n");
}

fn assumptions(page: &mut String, report: &Report) {
    page.push_str("<h2>Values the paper does not give</h2>\n");
    for base in &report.bases {
        put(
            page,
            format_args!(
                "<h3>Base scenario <code>{}</code></h3>\n<p>{}</p>\n",
                escape(&base.name),
                escape(&base.summary)
            ),
        );
        if base.unknowns.is_empty() {
            continue;
        }
        page.push_str(
            "<div class=\"scroll\"><table><thead><tr><th>Field<th>Value<th>Why</tr></thead><tbody>",
        );
        for unknown in &base.unknowns {
            put(
                page,
                format_args!(
                    "<tr><td><code>{}</code><td>{}<td>{}</tr>\n",
                    escape(&unknown.field),
                    escape(&unknown.value),
                    escape(&unknown.source)
                ),
            );
        }
        page.push_str("</tbody></table></div>\n");
    }
    let fitted = report.statements.iter().filter(|statement| !statement.fitted.is_empty());
    page.push_str(
        "<h3>Fitted parameters</h3>\n<div class=\"scroll\"><table><thead><tr><th>Statement\
         <th>Parameter<th>Chosen for</tr></thead><tbody>",
    );
    for statement in fitted {
        for fitted in &statement.fitted {
            put(
                page,
                format_args!(
                    "<tr><td>{}<td>{}<td>{}</tr>\n",
                    escape(&statement.id),
                    escape(&fitted.parameter),
                    escape(&fitted.to)
                ),
            );
        }
    }
    page.push_str("</tbody></table></div>\n");
}
