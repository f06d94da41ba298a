//! The table of a plan, for any system: the cheapest trial and the runner-up side by side, or the
//! nearest miss.

use fulgurite_terminal::output::Output;

/// Columns of a table.
pub(super) struct Columns<'a, T> {
    trials: Vec<(&'static str, &'a T)>,
    wide: usize,
    out: &'a Output,
}

impl<'a, T> Columns<'a, T> {
    /// Creates columns of width `wide` and prints their heads.
    pub(super) fn print(
        (best, runner_up): (Option<&'a T>, Option<&'a T>),
        nearest: impl FnOnce() -> Option<&'a T>,
        wide: usize,
        out: &'a Output,
    ) -> anyhow::Result<Self> {
        let trials: Vec<(&'static str, &T)> = match (best, runner_up) {
            (Some(best), Some(other)) => vec![("least cost", best), ("runner-up", other)],
            (Some(best), None) => vec![("least cost", best)],
            (None, _) => nearest().map(|trial| ("not enough", trial)).into_iter().collect(),
        };
        let heads: Vec<String> = trials.iter().map(|(head, _)| format!("{head:>wide$}")).collect();
        out.text(format_args!("{:<34}{}", "", heads.concat()))?;
        Ok(Self { trials, wide, out })
    }

    /// Prints a line with the value of each trial.
    pub(super) fn line(&self, name: &str, value: &dyn Fn(&T) -> String) -> anyhow::Result<()> {
        let wide = self.wide;
        let values: Vec<String> =
            self.trials.iter().map(|(_, trial)| format!("{:>wide$}", value(trial))).collect();
        self.out.text(format_args!("{name:<34}{}", values.concat()))
    }

    /// Trials with their column heads.
    pub(super) fn trials(&self) -> &[(&'static str, &'a T)] {
        &self.trials
    }
}
