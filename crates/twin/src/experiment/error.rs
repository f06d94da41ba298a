//! What is wrong with an experiment file.

use fulgurite_units::{ErrorKind, settings};

/// A file cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExperimentError {
    /// The text is no TOML, or a key is unknown, missing or of another type.
    #[error("{file}:{line}: {problem}")]
    Syntax {
        /// The file.
        file: String,
        /// The line, from 1.
        line: usize,
        /// What the parser says; it names the key.
        problem: String,
    },
    /// A value means nothing here: a run, a point, a metric or a base that does not exist.
    #[error("{file}:{line}: {field}: {problem}")]
    Meaning {
        /// The file.
        file: String,
        /// The line, from 1.
        line: usize,
        /// The key.
        field: String,
        /// What is wrong with its value.
        problem: String,
    },
    /// A statement was asked for that no file makes.
    #[error("no file makes statement {id}")]
    NoStatement {
        /// What was asked for.
        id: String,
    },
}

impl ExperimentError {
    /// What a caller can do about this error.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::Syntax { .. } | Self::Meaning { .. } => ErrorKind::Invalid,
            Self::NoStatement { .. } => ErrorKind::NotFound,
        }
    }
}

/// Where something stands in a file, to say so when it turns out wrong.
#[derive(Clone, Debug)]
pub(crate) struct Whereabouts<'a> {
    pub(crate) file: &'a str,
    pub(crate) text: &'a str,
}

impl Whereabouts<'_> {
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
