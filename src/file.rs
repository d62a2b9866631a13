//! Reading files that somebody else names, so that no such name can hold the process up or fill its memory.

use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Most bytes of a file: far more than any configuration or chain of certificates has.
pub const MOST_BYTES: u64 = 1024 * 1024;

/// What a regular file holds; links to one are followed.
///
/// # Errors
/// It cannot be read, is no regular file (a pipe, a device, a folder), or holds more than [`MOST_BYTES`].
pub fn read_regular(path: &Path) -> io::Result<Vec<u8>> {
    // Else the opening of a pipe waits for somebody who writes; reading regular files is the same with it.
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    let mut bytes = Vec::new();
    file.take(MOST_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MOST_BYTES {
        let message = format!("it holds more than {} KiB", MOST_BYTES / 1024);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn only_regular_files_of_bounded_size_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let told = |path: &Path| read_regular(path).unwrap_err().to_string();
        std::fs::write(path("file"), "text").unwrap();
        std::os::unix::fs::symlink(path("file"), path("link")).unwrap();
        assert_eq!(read_regular(&path("link")).unwrap(), b"text");
        assert!(Command::new("mkfifo").arg(path("pipe")).status().unwrap().success());
        for odd in [&path("pipe"), folder.path(), Path::new("/dev/zero")] {
            assert_eq!(told(odd), "it is not a regular file", "{}", odd.display());
        }
        std::fs::write(path("file"), vec![b' '; 1024 * 1024]).unwrap();
        assert_eq!(read_regular(&path("file")).unwrap().len(), 1024 * 1024);
        std::fs::write(path("file"), vec![b' '; 1024 * 1024 + 1]).unwrap();
        assert_eq!(told(&path("file")), "it holds more than 1024 KiB");
        assert!(told(&path("none")).contains("No such file"));
    }
}
