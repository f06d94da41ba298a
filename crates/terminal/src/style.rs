//! Color on terminals: `--color`, `NO_COLOR`, and none in a pipe.
//!
//! Color never carries meaning alone: the text says it as well. Columns are padded before they are
//! colored.

use std::fmt;
use std::io::IsTerminal as _;
use std::sync::OnceLock;

/// When to color.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum ColorChoice {
    /// On a terminal, unless NO_COLOR is set.
    Auto,
    /// Always, also in a pipe.
    Always,
    /// Never.
    Never,
}

/// Meaning of a colored text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// Success.
    Good,
    /// Worth knowing.
    Notice,
    /// A failure.
    Bad,
    /// A heading.
    Strong,
    /// A minor detail.
    Faint,
}

impl Tone {
    const fn code(self) -> &'static str {
        match self {
            Self::Good => "32",
            Self::Notice => "33",
            Self::Bad => "1;31",
            Self::Strong => "1",
            Self::Faint => "2",
        }
    }
}

/// Which of the two streams are colored: decided once, before anything is printed.
#[derive(Clone, Copy, Debug, Default)]
struct Streams {
    out: bool,
    error: bool,
}

static STREAMS: OnceLock<Streams> = OnceLock::new();

/// Decides which streams are colored. Later calls change nothing.
pub fn choose(choice: ColorChoice) {
    let should_color =
        |is_terminal| is_colored(choice, is_terminal, &|name| std::env::var_os(name));
    let (out, error) = (
        should_color(std::io::stdout().is_terminal()),
        should_color(std::io::stderr().is_terminal()),
    );
    STREAMS.get_or_init(|| Streams { out, error });
}

/// Whether to color a stream, given `choice`, whether it is a terminal, and the environment.
fn is_colored(
    choice: ColorChoice,
    is_terminal: bool,
    variable: &dyn Fn(&str) -> Option<std::ffi::OsString>,
) -> bool {
    match choice {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        ColorChoice::Auto => {
            let is_set = |name| variable(name).is_some_and(|value| !value.is_empty());
            let is_dumb = variable("TERM").is_some_and(|term| term == "dumb");
            is_terminal && !is_set("NO_COLOR") && !is_dumb
        }
    }
}

/// Colors `text` for standard output.
pub fn out<T: fmt::Display>(tone: Tone, text: T) -> StyledText<T> {
    let is_colored = STREAMS.get().is_some_and(|streams| streams.out);
    StyledText { tone: is_colored.then_some(tone), text }
}

/// Colors `text` for standard error.
pub fn error<T: fmt::Display>(tone: Tone, text: T) -> StyledText<T> {
    StyledText { tone: is_error_colored().then_some(tone), text }
}

/// Whether standard error is colored.
pub fn is_error_colored() -> bool {
    STREAMS.get().is_some_and(|streams| streams.error)
}

/// Text that may be colored.
#[derive(Clone, Copy, Debug)]
pub struct StyledText<T> {
    tone: Option<Tone>,
    text: T,
}

impl<T: fmt::Display> fmt::Display for StyledText<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.tone {
            None => self.text.fmt(f),
            Some(tone) => {
                write!(f, "\x1b[{}m", tone.code())?;
                self.text.fmt(f)?;
                f.write_str("\x1b[0m")
            }
        }
    }
}

#[cfg(test)]
mod tests;
