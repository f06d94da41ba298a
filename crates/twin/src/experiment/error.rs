//! Errors of experiment files.

use fulgurite_units::{ErrorKind, settings};

/// A file cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExperimentError {
    /// The text is not TOML, or a key is unknown, missing or of the wrong type.
    #[error("{file}:{line}: {problem}")]
    Syntax {
        /// The file.
        file: String,
        /// The line, from 1.
        line: usize,
        /// The parser's message; it names the key.
        problem: String,
    },
    /// A value refers to something that does not exist: a run, a point, a metric or a base.
    #[error("{file}:{line}: {field}: {problem}")]
    Meaning {
        /// The file.
        file: String,
        /// The line, from 1.
        line: usize,
        /// The key.
        field: String,
        /// The problem of its value.
        problem: String,
    },
    /// No file contains the requested statement.
    #[error("no file contains statement {id}")]
    NoStatement {
        /// The requested statement.
        id: String,
    },
}

impl ExperimentError {
    /// Returns what the caller can do about this error.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::Syntax { .. } | Self::Meaning { .. } => ErrorKind::Invalid,
            Self::NoStatement { .. } => ErrorKind::NotFound,
        }
    }
}

/// A file and its text, to report the line of an error.
#[derive(Clone, Debug)]
pub(crate) struct SourceLocation<'a> {
    pub(crate) file: &'a str,
    pub(crate) text: &'a str,
}

impl SourceLocation<'_> {
    pub(crate) fn line(&self, offset: usize) -> usize {
        let before = self.text.as_bytes().get(..offset).unwrap_or_default();
        1 + before.iter().filter(|&&byte| byte == b'\n').count()
    }

    pub(crate) fn syntax(&self, error: &settings::Error) -> ExperimentError {
        ExperimentError::Syntax {
            file: self.file.to_owned(),
            line: self.line(error.span().map_or(0, |span| span.start)),
            problem: error.message().replace('\n', " "),
        }
    }

    pub(crate) fn meaning(
        &self,
        offset: usize,
        field: &str,
        problem: impl Into<String>,
    ) -> ExperimentError {
        ExperimentError::Meaning {
            file: self.file.to_owned(),
            line: self.line(offset),
            field: field.to_owned(),
            problem: problem.into(),
        }
    }
}
