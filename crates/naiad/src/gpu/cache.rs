//! Machine code kept on disk, so that the driver's compiler runs once for each text.
//!
//! An entry is a file that is named by a hash of all that the code depends on, and which begins with just
//! that: a hash that two share is a miss and nothing worse. Writers write beside it and rename, so that
//! readers in other processes meet a whole entry or none. What cannot be read for whatever reason is a
//! miss, and is written anew; what cannot be written is not kept. The entries that were used least
//! recently go when all of them together take too much.

use naiad_cuda::JitOptions;
use rustc_hash::FxHasher;
use std::ffi::OsString;
use std::fs::{self, File};
use std::hash::Hasher;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::SystemTime;

/// What machine code depends on.
#[derive(Clone, Debug)]
pub struct Key<'a> {
    pub ptx: &'a str,
    pub capability: u32,
    pub driver: u32,
    pub options: JitOptions,
}

const MAGIC: &[u8; 16] = b"naiad cubin  1\r\n";
/// Bytes that all entries may take; a quarter of them is freed when they are more.
const MOST: u64 = 512 << 20;

impl Key<'_> {
    fn bytes(&self) -> Vec<u8> {
        let Key { ptx, capability, driver, options } = self;
        format!("{capability} {driver} {options:?}\n{ptx}").into_bytes()
    }
}

/// The code of an earlier compilation.
pub fn load(key: &Key<'_>) -> Option<Vec<u8>> {
    load_from(&folder()?, key)
}

/// Keeps code for later.
pub fn store(key: &Key<'_>, code: &[u8]) {
    if let Some(folder) = folder() {
        // Without a cache the next process compiles again.
        let _ = store_in(&folder, key, code, MOST);
    }
}

/// `NAIAD_CACHE_DIR`, else Triton's variable, else the user's folder for caches.
fn folder() -> Option<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|v: &OsString| !v.is_empty());
    let chosen = variable("NAIAD_CACHE_DIR").or_else(|| variable("TRITON_CACHE_DIR"));
    let base = match chosen {
        Some(chosen) => PathBuf::from(chosen),
        None if cfg!(windows) => PathBuf::from(variable("LOCALAPPDATA")?).join("naiad"),
        None if cfg!(target_os = "macos") => {
            PathBuf::from(variable("HOME")?).join("Library/Caches/naiad")
        }
        None => match variable("XDG_CACHE_HOME") {
            Some(caches) => PathBuf::from(caches).join("naiad"),
            None => PathBuf::from(variable("HOME")?).join(".cache/naiad"),
        },
    };
    Some(base.join("cubin"))
}

fn path_of(folder: &Path, key: &[u8]) -> PathBuf {
    folder.join(format!("{:016x}", hash(key)))
}

fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(bytes);
    hasher.finish()
}

fn load_from(folder: &Path, key: &Key<'_>) -> Option<Vec<u8>> {
    let key = key.bytes();
    let mut file = File::open(path_of(folder, &key)).ok()?;
    let mut entry = Vec::new();
    file.read_to_end(&mut entry).ok()?;
    let rest = entry.strip_prefix(MAGIC)?;
    let (size, rest) = rest.split_first_chunk::<8>()?;
    let (check, rest) = rest.split_first_chunk::<8>()?;
    let code = rest.strip_prefix(key.as_slice())?;
    let whole =
        u64::from_le_bytes(*size) == code.len() as u64 && u64::from_le_bytes(*check) == hash(code);
    // It is used, so it stays; where that cannot be noted it goes a little earlier.
    let _ = file.set_modified(SystemTime::now());
    whole.then(|| code.to_vec())
}

fn store_in(folder: &Path, key: &Key<'_>, code: &[u8], most: u64) -> std::io::Result<()> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    fs::create_dir_all(folder)?;
    let key = key.bytes();
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let beside = folder.join(format!(".{}-{number}", std::process::id()));
    let written = (|| {
        let mut file = File::create(&beside)?;
        file.write_all(MAGIC)?;
        file.write_all(&(code.len() as u64).to_le_bytes())?;
        file.write_all(&hash(code).to_le_bytes())?;
        file.write_all(&key)?;
        file.write_all(code)?;
        drop(file);
        fs::rename(&beside, path_of(folder, &key))
    })();
    if written.is_err() {
        let _ = fs::remove_file(&beside);
    }
    prune(folder, most);
    written
}

/// Frees room where entries take more than `most` bytes.
fn prune(folder: &Path, most: u64) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let file = |entry: std::io::Result<fs::DirEntry>| {
        let entry = entry.ok()?;
        let facts = entry.metadata().ok()?;
        Some((facts.modified().ok()?, facts.len(), entry.path()))
    };
    let mut files: Vec<_> = entries.filter_map(file).collect();
    let mut total: u64 = files.iter().map(|f| f.1).sum();
    if total <= most {
        return;
    }
    files.sort();
    for (_, bytes, path) in files {
        if total <= most / 4 * 3 {
            break;
        }
        // Another process may have been first.
        let _ = fs::remove_file(path);
        total -= bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Folder {
            let path = std::env::temp_dir().join(format!("naiad-{name}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&path);
            Folder(path)
        }

        fn files(&self) -> Vec<PathBuf> {
            let mut all: Vec<_> =
                fs::read_dir(&self.0).unwrap().map(|e| e.unwrap().path()).collect();
            all.sort();
            all
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    const KEY: Key<'_> = Key {
        ptx: ".version 8.7",
        capability: 90,
        driver: 13000,
        options: JitOptions { max_registers: None, optimization: None, line_info: false },
    };

    fn store(folder: &Folder, key: &Key<'_>, code: &[u8]) {
        store_in(&folder.0, key, code, MOST).unwrap();
    }

    #[test]
    fn code_is_found_by_all_that_it_depends_on() {
        let folder = Folder::new("cache-key");
        assert_eq!(load_from(&folder.0, &KEY), None);
        store(&folder, &KEY, b"code");
        assert_eq!(load_from(&folder.0, &KEY).as_deref(), Some(&b"code"[..]));
        store(&folder, &KEY, b"newer");
        assert_eq!(load_from(&folder.0, &KEY).as_deref(), Some(&b"newer"[..]));
        let options = JitOptions { max_registers: Some(64), ..KEY.options };
        for other in [
            Key { ptx: ".version 8.6", ..KEY },
            Key { capability: 89, ..KEY },
            Key { driver: 12080, ..KEY },
            Key { options, ..KEY },
        ] {
            assert_eq!(load_from(&folder.0, &other), None, "{other:?}");
        }
        assert_eq!(folder.files().len(), 1);
    }

    #[test]
    fn damaged_entries_are_misses_and_are_written_anew() {
        let folder = Folder::new("cache-damage");
        store(&folder, &KEY, b"some code");
        let path = folder.files().remove(0);
        let whole = fs::read(&path).unwrap();
        for i in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[i] ^= 0x20;
            fs::write(&path, &damaged).unwrap();
            assert_eq!(load_from(&folder.0, &KEY), None, "byte {i}");
            fs::write(&path, &whole[..i]).unwrap();
            assert_eq!(load_from(&folder.0, &KEY), None, "{i} bytes");
        }
        store(&folder, &KEY, b"some code");
        assert_eq!(load_from(&folder.0, &KEY).as_deref(), Some(&b"some code"[..]));
    }

    #[test]
    fn what_was_not_used_for_longest_goes_first() {
        let folder = Folder::new("cache-bound");
        let texts: Vec<String> = (0..8).map(|i| format!("kernel {i}")).collect();
        let key = |i: usize| Key { ptx: &texts[i], ..KEY };
        let start = SystemTime::now() - Duration::from_secs(1000);
        for i in 0..8 {
            store(&folder, &key(i), &[i as u8; 1000]);
            let path = path_of(&folder.0, &key(i).bytes());
            let at = start + Duration::from_secs(i as u64);
            File::options().write(true).open(path).unwrap().set_modified(at).unwrap();
        }
        // The oldest is used once more.
        assert!(load_from(&folder.0, &key(0)).is_some());
        prune(&folder.0, 8000);
        let left: Vec<usize> =
            (0..8).filter(|&i| load_from(&folder.0, &key(i)).is_some()).collect();
        assert_eq!(left, [0, 4, 5, 6, 7]);
    }

    #[test]
    fn writers_and_readers_at_once_meet_whole_entries() {
        let folder = Folder::new("cache-race");
        std::thread::scope(|s| {
            for byte in 0..4u8 {
                let folder = &folder;
                s.spawn(move || {
                    for _ in 0..50 {
                        store(folder, &KEY, &[byte; 5000]);
                        let found = load_from(&folder.0, &KEY).unwrap();
                        assert!(found.len() == 5000 && found.iter().all(|b| *b == found[0]));
                    }
                });
            }
        });
        assert_eq!(folder.files().len(), 1, "nothing is left beside");
    }
}
