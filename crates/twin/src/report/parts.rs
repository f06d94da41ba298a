//! Parts common to the pages of a run and of a sweep: header and footer. No scripts, no external
//! resources, and the word "simulated" in every title.

use std::fmt::Write;

use super::canvas::escape;
use super::style::STYLE;

/// The subject of a page, from the caller.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// The file name of the scenario.
    pub scenario: String,
    /// Names and values to list: changes, seeds, version, command.
    pub list: Vec<(String, String)>,
    /// The complete scenario as it was run, including changes (TOML).
    pub text: String,
}

pub(super) fn put(page: &mut String, arguments: std::fmt::Arguments<'_>) {
    let written = page.write_fmt(arguments);
    assert!(written.is_ok(), "writing to a string never fails");
}

pub(super) fn open(title: &str, facts: &Facts) -> String {
    let title = escape(title);
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <title>{title}</title><style>{STYLE}</style></head>\n<body><main>\n<h1>{title}</h1>\n\
         <p class=\"soft\">Everything on this page is simulated; nothing was measured on real \
         machines.</p>\n<dl>"
    );
    let scenario = [("Scenario".to_owned(), facts.scenario.clone())];
    for (name, value) in scenario.iter().chain(&facts.list) {
        put(&mut page, format_args!("<dt>{}</dt><dd>{}</dd>", escape(name), escape(value)));
    }
    page.push_str("</dl>\n");
    page
}

pub(super) fn close(mut page: String, facts: &Facts) -> String {
    put(
        &mut page,
        format_args!(
            "<details><summary>The whole scenario</summary><pre>{}</pre></details>\n\
             </main></body></html>\n",
            escape(facts.text.trim_end())
        ),
    );
    page
}

/// Writes a figure with its caption.
pub(super) fn framed(page: &mut String, title: &str, note: &str, svg: &str) {
    put(
        page,
        format_args!(
            "<figure><figcaption><b>{}</b> <span class=\"soft\">{}</span></figcaption>{svg}\
             </figure>\n",
            escape(title),
            escape(note)
        ),
    );
}
