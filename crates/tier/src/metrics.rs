//! Metrics of tiers in the Prometheus text format: `fulgurite_tier_NAME{tier=..,kind=..,..}`. The
//! same name means the same for every kind of tier.

use std::collections::BTreeMap;
use std::fmt::{Display, Write as _};

/// The metrics of several tiers, by name, so that the lines of each are together.
#[derive(Debug, Default)]
pub struct MetricFamilies(BTreeMap<String, Family>);

#[derive(Debug, Default)]
struct Family {
    head: String,
    lines: String,
}

impl MetricFamilies {
    /// Returns where the tier `name` of this kind adds its metrics.
    pub fn of_tier(&mut self, name: &str, kind: &str) -> TierMetrics<'_> {
        TierMetrics { families: self, labels: format!("tier=\"{name}\",kind=\"{kind}\"") }
    }

    /// Returns the text of all.
    #[must_use]
    pub fn text(self) -> String {
        self.0.into_values().map(|family| family.head + &family.lines).collect()
    }
}

/// The metrics of one tier.
#[derive(Debug)]
pub struct TierMetrics<'a> {
    families: &'a mut MetricFamilies,
    labels: String,
}

impl TierMetrics<'_> {
    /// Adds a value that goes up and down. `labels` are names with values.
    pub fn gauge(
        &mut self,
        name: &str,
        help: &str,
        labels: &[(&str, &dyn Display)],
        value: impl Display,
    ) {
        self.add((name, "gauge", help), labels, &value);
    }

    /// Adds a value that only grows. Its name ends in `_total`.
    pub fn counter(
        &mut self,
        name: &str,
        help: &str,
        labels: &[(&str, &dyn Display)],
        value: impl Display,
    ) {
        self.add((name, "counter", help), labels, &value);
    }

    fn add(
        &mut self,
        (name, kind, help): (&str, &str, &str),
        labels: &[(&str, &dyn Display)],
        value: &dyn Display,
    ) {
        let name = format!("fulgurite_tier_{name}");
        let head = || format!("# HELP {name} {help}\n# TYPE {name} {kind}\n");
        let new = || Family { head: head(), lines: String::new() };
        let lines = &mut self.families.0.entry(name.clone()).or_insert_with(new).lines;
        // Writing to a string cannot fail.
        let _ = write!(lines, "{name}{{{}", self.labels);
        for (label, text) in labels {
            let _ = write!(lines, ",{label}=\"{}\"", escape(&text.to_string()));
        }
        let _ = writeln!(lines, "}} {value}");
    }
}

/// Escapes the value of a label: an operator may have written anything.
fn escape(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_of_several_tiers_are_grouped_by_name() {
        let mut families = MetricFamilies::default();
        for (tier, kind, value) in [("a", "rack", 1), ("b", "geo", 2)] {
            let mut metrics = families.of_tier(tier, kind);
            metrics.gauge("y", "Y.", &[("g", &"a\"b\\c\nd")], value);
            metrics.counter("x_total", "X.", &[], value);
        }
        assert_eq!(
            families.text(),
            "# HELP fulgurite_tier_x_total X.\n# TYPE fulgurite_tier_x_total counter\n\
             fulgurite_tier_x_total{tier=\"a\",kind=\"rack\"} 1\n\
             fulgurite_tier_x_total{tier=\"b\",kind=\"geo\"} 2\n\
             # HELP fulgurite_tier_y Y.\n# TYPE fulgurite_tier_y gauge\n\
             fulgurite_tier_y{tier=\"a\",kind=\"rack\",g=\"a\\\"b\\\\c\\nd\"} 1\n\
             fulgurite_tier_y{tier=\"b\",kind=\"geo\",g=\"a\\\"b\\\\c\\nd\"} 2\n"
        );
        assert_eq!(MetricFamilies::default().text(), "");
    }
}
