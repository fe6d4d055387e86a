//! The secret that processes of one measurement share: where it comes from, and the key that is made of it.
//!
//! A recorded handshake allows words to be tried on it without end, so the secret should be drawn, not thought of. Neither it nor the key is ever written or shown.

use std::fmt;
use std::io::Read as _;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};
use snow::params::HashChoice;
use snow::resolvers::{CryptoResolver as _, DefaultResolver};

use crate::results::durable::open_regular;

/// The environment variable with the secret.
pub const VARIABLE: &str = "HCABENCH_SECRET";

/// The least and the greatest length of a secret, in bytes.
const LENGTHS: std::ops::RangeInclusive<usize> = 16..=4096;
/// Hashed before the secret, so that its key is one of hcabench alone.
const DOMAIN: &[u8] = b"hcabench control connection, key of the secret\0";

/// Why there is no secret where there is to be one.
#[derive(Debug, thiserror::Error)]
#[error("{place}: {reason}")]
pub struct SecretError {
    place: String,
    reason: String,
}

/// The secret, as a key.
#[derive(Clone)]
pub struct Secret([u8; 32]);

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Secret")
    }
}

impl Secret {
    /// Makes the key of a secret; ends of lines after it are not part of it.
    ///
    /// # Errors
    /// When it is too short or too long.
    pub fn of(secret: &[u8]) -> Result<Self, String> {
        let is_end = |byte: &u8| matches!(byte, b'\n' | b'\r');
        let length = secret.iter().rposition(|byte| !is_end(byte));
        let secret = &secret[..length.map_or(0, |last| last + 1)];
        if !LENGTHS.contains(&secret.len()) {
            // Of a file no more is read.
            let length = match secret.len() {
                length if length > *LENGTHS.end() => format!("more than {}", LENGTHS.end()),
                length => length.to_string(),
            };
            return Err(format!(
                "the secret has {length} bytes: allowed are {} to {}: draw one with `head -c32 /dev/urandom | base64`",
                LENGTHS.start(),
                LENGTHS.end()
            ));
        }
        let mut hash = DefaultResolver
            .resolve_hash(&HashChoice::Blake2s)
            .expect("snow is built with BLAKE2");
        hash.reset();
        hash.input(DOMAIN);
        hash.input(secret);
        let mut key = [0; 32];
        hash.result(&mut key);
        Ok(Secret(key))
    }

    pub(super) fn key(&self) -> &[u8; 32] {
        &self.0
    }
}

/// Where the secret comes from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
enum Place {
    /// From nowhere: there is none.
    #[default]
    Nowhere,
    Environment,
    File(PathBuf),
}

/// The choice of a secret: what a process of a round is given in its place, and reads again.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct SecretSource {
    place: Place,
    #[serde(skip)]
    loaded: OnceLock<Secret>,
}

impl SecretSource {
    /// A file that is named, else the environment, unless no secret is wanted.
    pub fn chosen(file: Option<&Path>, without: bool) -> Self {
        let place = match file {
            _ if without => Place::Nowhere,
            Some(file) => Place::File(file.to_owned()),
            None if std::env::var_os(VARIABLE).is_some() => Place::Environment,
            None => Place::Nowhere,
        };
        SecretSource {
            place,
            loaded: OnceLock::new(),
        }
    }

    /// Whether there is to be one.
    pub fn is_some(&self) -> bool {
        self.place != Place::Nowhere
    }

    /// The secret, if there is to be one; it is read once.
    ///
    /// # Errors
    /// When it cannot be read, others can read its file, or it is too short or too long.
    pub fn load(&self) -> Result<Option<&Secret>, SecretError> {
        let (place, found) = match &self.place {
            Place::Nowhere => return Ok(None),
            _ if self.loaded.get().is_some() => return Ok(self.loaded.get()),
            Place::Environment => {
                let words = std::env::var_os(VARIABLE).unwrap_or_default();
                (VARIABLE.to_owned(), Secret::of(&words.into_vec()))
            }
            Place::File(file) => (
                format!("--secret-file {}", file.display()),
                read(file).and_then(|words| Secret::of(&words)),
            ),
        };
        let secret = found.map_err(|reason| SecretError { place, reason })?;
        Ok(Some(self.loaded.get_or_init(|| secret)))
    }
}

/// The bytes of a file that only its owner and its group can read.
fn read(file: &Path) -> Result<Vec<u8>, String> {
    let opened = open_regular(file).map_err(|error| error.to_string())?;
    let mode = opened.metadata().map_err(|error| error.to_string())?.mode();
    if mode & 0o027 != 0 {
        return Err(format!(
            "its mode is {:03o}: only its owner may write it, and users outside its group must have no access: set it \
             with `chmod 600 {}`",
            mode & 0o777,
            file.display()
        ));
    }
    let mut words = Vec::new();
    let limit = *LENGTHS.end() as u64 + 3;
    let read = opened.take(limit).read_to_end(&mut words);
    read.map(|_| words).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::testing::{Refused as _, temporary};

    fn of(text: &str) -> [u8; 32] {
        *Secret::of(text.as_bytes()).unwrap().key()
    }

    #[test]
    fn a_secret_is_its_bytes_without_ends_of_lines() {
        assert_eq!(of("0123456789abcdef"), of("0123456789abcdef\r\n"));
        assert_ne!(of("0123456789abcdef"), of("0123456789abcdef "));
        assert_ne!(of("0123456789abcdef"), of("\n0123456789abcdef"));
        for wrong in ["", "\n", "0123456789abcde\n\n"] {
            Secret::of(wrong.as_bytes())
                .map(drop)
                .refused(&["16 to 4096", "/dev/urandom"]);
        }
        let longest = "x".repeat(4096);
        of(&longest);
        Secret::of(format!("{longest}x").as_bytes())
            .map(drop)
            .refused(&["more than 4096 bytes"]);
    }

    /// The key is part of what two hosts agree on: it may not change from version to version without a word.
    #[test]
    fn the_key_is_blake2s_of_domain_and_secret() {
        let hexadecimal: String = of("0123456789abcdef")
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        assert_eq!(
            hexadecimal,
            "7796bbffc1d1a6b9ba01581e130c8d2b7a866b1d4bac03c55f776fb5106b0ddd"
        );
    }

    #[test]
    fn nothing_shows_the_secret() {
        let secret = Secret::of(b"0123456789abcdef").unwrap();
        assert_eq!(format!("{secret:?}"), "Secret");
        let folder = temporary("");
        let file = folder.join("secret");
        std::fs::write(&file, "0123456789abcdef\n").unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        let source = SecretSource::chosen(Some(&file), false);
        assert_eq!(source.load().unwrap().unwrap().key(), secret.key());
        let written = serde_json::to_string(&source).unwrap();
        assert!(!written.contains("0123456789") && written.contains("secret"));
        // What a process of a round gets leads to the same.
        let again: SecretSource = serde_json::from_str(&written).unwrap();
        assert_eq!(again.load().unwrap().unwrap().key(), secret.key());
        // It is read once: the file may be gone when the next connection is made.
        std::fs::remove_file(&file).unwrap();
        assert_eq!(source.load().unwrap().unwrap().key(), secret.key());
    }

    #[test]
    fn a_file_that_others_can_read_or_that_is_none_is_refused() {
        let folder = temporary("");
        let file = folder.join("secret");
        let load = || {
            let source = SecretSource::chosen(Some(&file), false);
            source.load().map(drop)
        };
        let place = format!("--secret-file {}", file.display());
        load().refused(&[&place, "No such file"]);
        std::fs::write(&file, "0123456789abcdef\n").unwrap();
        let set = |mode| {
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        for mode in [0o604, 0o644, 0o602, 0o660] {
            set(mode);
            load().refused(&[&place, &format!("mode is {mode:03o}"), "chmod 600"]);
        }
        for mode in [0o600, 0o640, 0o400] {
            set(mode);
            load().unwrap();
        }
        std::fs::write(&file, "short\n").unwrap();
        load().refused(&[&place, "has 5 bytes"]);
        std::fs::remove_file(&file).unwrap();
        std::fs::create_dir(&file).unwrap();
        load().refused(&[&place]);
    }

    #[test]
    fn without_goes_before_all() {
        let source = SecretSource::chosen(Some(Path::new("/nowhere")), true);
        assert!(source.load().unwrap().is_none());
    }
}
