//! The options of the secret that the ends of a control connection share.

use std::path::PathBuf;

use crate::arguments::UsageError;
use crate::launch::secret::{Secret, SecretSource};

/// The secret.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct SecretArguments {
    /// Read the secret that all ends share from this file, to which users outside its group must have no access
    /// [default: the environment variable HCABENCH_SECRET, if it is set]
    #[arg(long, value_name = "FILE", help_heading = "Secret")]
    pub secret_file: Option<PathBuf>,

    /// Use no secret, also if HCABENCH_SECRET is set: any process that reaches the port can take part, read and change
    /// what is sent
    #[arg(long, conflicts_with = "secret_file", help_heading = "Secret")]
    pub without_secret: bool,
}

impl SecretArguments {
    /// Where the secret comes from.
    pub(crate) fn source(&self) -> SecretSource {
        SecretSource::chosen(self.secret_file.as_deref(), self.without_secret)
    }

    /// The secret, if there is one.
    pub(crate) fn load(&self) -> Result<Option<Secret>, UsageError> {
        let source = self.source();
        let loaded = source.load();
        loaded
            .map(|secret| secret.cloned())
            .map_err(|error| UsageError(error.to_string()))
    }
}
