//! Metrics of all tiers: the pages of their kinds, with the name of the tier as a label.

use std::collections::BTreeMap;

use fulgurite_archive::config::TierName;

/// Joins the pages of tiers, so that the lines of each metric are together.
pub(super) fn join(pages: &[(&TierName, String)]) -> String {
    let mut metrics: BTreeMap<&str, (String, String)> = BTreeMap::new();
    for (tier, page) in pages {
        for line in page.lines() {
            let comment = line.strip_prefix("# ").and_then(|text| text.split(' ').nth(1));
            let end = line.find(['{', ' ']).unwrap_or(line.len());
            let (head, lines) = metrics.entry(comment.unwrap_or(&line[..end])).or_default();
            if comment.is_none() {
                lines.push_str(&with_label(line, end, tier));
            } else if lines.is_empty() {
                head.push_str(line);
                head.push('\n');
            }
        }
    }
    metrics.into_values().map(|(head, lines)| head + &lines).collect()
}

/// Adds the label of the tier to a line whose name ends at `end`.
fn with_label(line: &str, end: usize, tier: &TierName) -> String {
    let (name, rest) = line.split_at(end);
    match rest.strip_prefix('{') {
        Some(labels) => format!("{name}{{tier=\"{tier}\",{labels}\n"),
        None => format!("{name}{{tier=\"{tier}\"}}{rest}\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_of_several_tiers_are_grouped_by_name() {
        let [a, b] = ["a", "b"].map(|name| TierName::new(name).unwrap());
        let page = |n: u8| {
            format!(
                "# HELP x X.\n# TYPE x gauge\nx {n}\n\
                 # HELP y Y.\n# TYPE y gauge\ny{{g=\"{{\"}} {n}\n"
            )
        };
        assert_eq!(
            join(&[(&a, page(1)), (&b, page(2))]),
            "# HELP x X.\n# TYPE x gauge\nx{tier=\"a\"} 1\nx{tier=\"b\"} 2\n\
             # HELP y Y.\n# TYPE y gauge\ny{tier=\"a\",g=\"{\"} 1\ny{tier=\"b\",g=\"{\"} 2\n"
        );
        assert_eq!(join(&[]), "");
    }
}
