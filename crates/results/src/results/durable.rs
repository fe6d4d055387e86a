//! Files made and read so that nothing but our own is touched, and written so that a power failure leaves either the
//! old state or the new one.
//!
//! A file is only ever created, and exclusively, so that a link which somebody planted in the folder is never written
//! through. A file is only read if it is a regular one, so that a pipe cannot make us wait.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::content::{self, BYTE_ORDER_MARK, NotText};
use super::error::ReportError;

/// How many names are tried where others are in use.
const MOST_NAMES: u32 = 64;

/// Makes a file that is not there yet. A link of that name, wherever it leads, is an error like a file.
pub fn create_new(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let created = options.write(true).create_new(true).open(path)?;
    #[cfg(test)]
    if tests::is_full(path) {
        return OpenOptions::new().write(true).open("/dev/full");
    }
    Ok(created)
}

/// Makes a new file called `name`, or that and a number if something of that name is there.
pub(crate) fn create_numbered(name: &Path) -> io::Result<(PathBuf, File)> {
    let mut path = name.to_path_buf();
    for number in 1..=MOST_NAMES {
        match create_new(&path) {
            Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists && number < MOST_NAMES => {
                let mut other = name.as_os_str().to_owned();
                other.push(format!(".{number}"));
                path = other.into();
            }
            created => return created.map(|file| (path, file)),
        }
    }
    unreachable!("the last attempt returns")
}

/// The text of a file that a user names: other objects, such as a pipe, are refused.
pub fn read_text(path: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    open_regular(path)?.read_to_end(&mut bytes)?;
    let wrong = match content::recognised(&bytes) {
        None => {
            let text = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&bytes);
            let text = std::str::from_utf8(text).map(str::to_owned);
            return text.map_err(|_| io::Error::other("it is not text in UTF-8"));
        }
        Some(NotText::Compressed(by, unpack)) => {
            format!("it is compressed with {by}; unpack it with {unpack}")
        }
        Some(NotText::Utf16) => "it is text in UTF-16; save it as UTF-8".to_owned(),
    };
    Err(io::Error::other(wrong))
}

/// Opens a file to read, which must be a regular one; a link to one is followed.
pub fn open_regular(path: &Path) -> io::Result<File> {
    open(path, fs::metadata(path)?, OpenOptions::new().read(true), 0)
}

/// Opens a file of ours to go on writing it: a regular one, and no link.
pub(crate) fn open_to_go_on(path: &Path) -> io::Result<File> {
    let (found, mut options) = (fs::symlink_metadata(path)?, OpenOptions::new());
    open(
        path,
        found,
        options.read(true).write(true),
        libc::O_NOFOLLOW,
    )
}

/// Opening a device or a pipe can have an effect, so the kind is asked before; and again of what was opened.
fn open(path: &Path, found: fs::Metadata, how: &mut OpenOptions, flags: i32) -> io::Result<File> {
    check_regular(found.file_type())?;
    let flags = flags | libc::O_NONBLOCK | libc::O_NOCTTY;
    let file = how.custom_flags(flags).open(path)?;
    check_regular(file.metadata()?.file_type())?;
    Ok(file)
}

/// Cuts off the text behind the last whole line, and seeks to the end to go on there. Returns the length.
pub(crate) fn cut_torn_line(file: &mut File) -> io::Result<u64> {
    const PART: u64 = 1 << 16;
    let mut end = file.seek(SeekFrom::End(0))?;
    let whole = loop {
        let begin = end.saturating_sub(PART);
        let mut bytes = vec![0; (end - begin) as usize];
        file.seek(SeekFrom::Start(begin))?;
        file.read_exact(&mut bytes)?;
        match bytes.iter().rposition(|&byte| byte == b'\n') {
            Some(place) => break begin + place as u64 + 1,
            None if begin == 0 => break 0,
            None => end = begin,
        }
    };
    file.set_len(whole)?;
    file.seek(SeekFrom::Start(whole))
}

fn check_regular(kind: fs::FileType) -> io::Result<()> {
    let found = match kind {
        _ if kind.is_file() => return Ok(()),
        _ if kind.is_dir() => "a folder",
        _ if kind.is_symlink() => "a symbolic link",
        _ if kind.is_fifo() => "a pipe",
        _ if kind.is_socket() => "a socket",
        _ => "a device",
    };
    Err(io::Error::other(format!("it is {found}, not a file")))
}

/// Makes the creation, renaming and removal of files in `folder` durable.
pub(crate) fn sync_folder(folder: &Path) -> Result<(), ReportError> {
    match File::open(folder).and_then(|opened| opened.sync_all()) {
        // File systems shared with a virtual machine may not know how to sync a folder; they order such changes
        // themselves.
        Err(cause) if matches!(cause.raw_os_error(), Some(libc::EINVAL | libc::ENOTSUP)) => Ok(()),
        Err(cause) => Err(ReportError::from_io("sync the folder", folder, cause)),
        Ok(()) => Ok(()),
    }
}

/// The folder that `path` lies in.
pub fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// The symbolic link in a path that leads nowhere, and what it leads to.
pub(super) fn dangling_link(path: &Path) -> Option<(&Path, PathBuf)> {
    let mut above = path.ancestors();
    let found = above.find(|it| it.symlink_metadata().is_ok())?;
    let target = fs::read_link(found).ok()?;
    (!found.exists()).then_some((found, target))
}

/// Where [`replace`] prepares the new contents of `path`; a killed process may leave it behind.
pub(crate) fn partial_path(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.partial"))
}

/// Writes `path` in one piece: whole under its name and durable on return, or untouched.
pub fn replace(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> Result<(), ReportError> {
    replace_with(path, |out| {
        write(out).map_err(ReportError::on("write", path))
    })
}

/// As [`replace`], where more can fail than writing.
pub(crate) fn replace_with(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> Result<(), ReportError>,
) -> Result<(), ReportError> {
    let failed = |operation| ReportError::on(operation, path);
    let usual = partial_path(path);
    // What a killed process left goes; anything else of that name stays, and another name is taken.
    if usual.symlink_metadata().is_ok_and(|found| found.is_file()) {
        fs::remove_file(&usual).map_err(failed("replace"))?;
    }
    let (partial, file) = create_numbered(&usual).map_err(failed("create"))?;
    let mut out = BufWriter::new(file);
    let written = write(&mut out)
        .and_then(|()| out.flush().map_err(failed("write")))
        .and_then(|()| out.get_ref().sync_all().map_err(failed("sync")))
        .and_then(|()| fs::rename(&partial, path).map_err(failed("put in place")));
    if written.is_err() {
        // What failed is reported; a leftover that cannot be removed either changes nothing about it.
        let _ = fs::remove_file(&partial);
    }
    written?;
    sync_folder(folder_of(path))
}

/// Writes a short text over a file of ours: on a full disk the block that it has is there.
pub(crate) fn overwrite(path: &Path, text: &str) -> io::Result<()> {
    let mut file = open_to_go_on(path)?;
    file.write_all(text.as_bytes())?;
    file.set_len(text.len() as u64)?;
    file.sync_all()
}

#[cfg(test)]
pub(super) mod tests {
    use crate::testing::{Refused as _, temporary};
    use std::cell::RefCell;
    use std::os::unix::fs::symlink;

    use super::*;

    thread_local! {
        static FULL: RefCell<Vec<PathBuf>> = const { RefCell::new(Vec::new()) };
    }

    /// From here on, in this thread, a new file of that path (or the partial one of it) is on a device that is always
    /// full.
    pub(crate) fn fill_the_disk_for(path: &Path) {
        FULL.with_borrow_mut(|full| full.extend([path.to_path_buf(), partial_path(path)]));
    }

    /// There is space again.
    pub(crate) fn empty_the_disk() {
        FULL.with_borrow_mut(Vec::clear);
    }

    pub(super) fn is_full(path: &Path) -> bool {
        FULL.with_borrow(|full| full.iter().any(|one| one == path))
    }

    fn put(path: &Path, text: &str) -> Result<(), ReportError> {
        replace(path, |out| out.write_all(text.as_bytes()))
    }

    #[test]
    fn replaces_and_leaves_nothing_beside() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        put(&path, "old").unwrap();
        fs::write(partial_path(&path), "a killed process left this").unwrap();
        put(&path, "new").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_planted_link_is_neither_followed_nor_removed() {
        let folder = tempfile::tempdir().unwrap();
        let (path, victim) = (folder.path().join("a.json"), folder.path().join("victim"));
        fs::write(&victim, "precious").unwrap();
        symlink(&victim, partial_path(&path)).unwrap();
        put(&path, "new").unwrap();
        assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert!(partial_path(&path).is_symlink() && !path.is_symlink());
        symlink(&victim, folder.path().join("b.csv")).unwrap();
        for link in ["a.json", "b.csv"] {
            let error = create_new(&folder.path().join(link)).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        }
        assert!(open_to_go_on(&folder.path().join("b.csv")).is_err());
    }

    #[test]
    fn only_regular_files_are_opened() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let socket = folder.path().join("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        for (path, kind) in [
            (pipe.as_path(), "a pipe"),
            (&socket, "a socket"),
            (Path::new("/dev/zero"), "a device"),
            (folder.path(), "a folder"),
        ] {
            let told = format!("it is {kind}, not a file");
            open_regular(path).refused(&[&told]);
            open_to_go_on(path).refused(&[&told]);
        }
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        fs::write(&file, "x").unwrap();
        symlink(&file, &link).unwrap();
        open_regular(&link).unwrap();
    }

    #[test]
    fn text_of_a_user_may_be_marked_and_is_named_where_it_is_none() {
        let path = temporary("plot.toml");
        fs::write(&path, "\u{feff}bins = 5\n").unwrap();
        assert_eq!(read_text(&path).unwrap(), "bins = 5\n");
        for (bytes, told) in [
            (
                b"\x1f\x8b\x08".as_slice(),
                "compressed with gzip; unpack it with gunzip",
            ),
            (b"\xff\xfeb\0", "UTF-16"),
            (b"bins = \xff", "not text in UTF-8"),
        ] {
            fs::write(&path, bytes).unwrap();
            read_text(&path).refused(&[told]);
        }
    }

    #[test]
    fn a_torn_line_is_cut_off() {
        let path = temporary("a.csv");
        let long = format!("a,b\n{}", "1".repeat(200_000));
        let texts = ["", "a,b", "a,b\n", "a,b\n1,", &long];
        for (text, whole) in texts.into_iter().zip([0, 0, 4, 4, 4]) {
            fs::write(&path, text).unwrap();
            let mut file = open_to_go_on(&path).unwrap();
            assert_eq!(cut_torn_line(&mut file).unwrap(), whole);
            file.write_all(b"x\n").unwrap();
            let expected = text[..whole as usize].to_owned() + "x\n";
            assert_eq!(fs::read_to_string(&path).unwrap(), expected);
        }
    }

    #[test]
    fn a_full_disk_leaves_the_old_contents() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        put(&path, "old").unwrap();
        fill_the_disk_for(&path);
        let error = put(&path, "new").unwrap_err();
        assert!(error.is_full(), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
