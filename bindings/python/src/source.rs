//! What captures are read from: paths, and objects with `read`. What is *not* here: what they hold.

use std::{
    fs,
    io::{self, Read},
    ops::ControlFlow,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant, SystemTime},
};

use fullpipe_cli::library::{Refusal, Watcher};
use fullpipe_ingest::{Captures, Options, Source, read_each};
use pyo3::{exceptions::PyTypeError, prelude::*};

/// How often it is asked whether Ctrl-C was pressed: not felt by who presses it, nor by the other threads of the interpreter.
pub(crate) const ASKED: Duration = Duration::from_millis(100);

/// What to do where a file is another one by now.
const AGAIN: &str = "call fullpipe.read again, or give it an open file and timelines=True, which reads all at once";

/// What captures are read from, oldest first.
pub(crate) struct Given(Vec<One>);

/// One of them.
enum One {
    /// With what its file was then; `None` where there was none, or what can be read once only, as a pipe.
    Path(PathBuf, Option<Stamp>),
    /// An object with `read`, which can be read once only.
    Object(Py<PyAny>),
}

/// What tells a file from another of the same name.
#[derive(PartialEq, Eq)]
struct Stamp {
    bytes: u64,
    modified: Option<SystemTime>,
    /// Device and inode, where the system has such.
    number: (u64, u64),
}

impl Stamp {
    fn of(path: &Path) -> Option<Self> {
        let found = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
        #[cfg(unix)]
        let number = {
            use std::os::unix::fs::MetadataExt;
            (found.dev(), found.ino())
        };
        #[cfg(not(unix))]
        let number = (0, 0);
        Some(Self { bytes: found.len(), modified: found.modified().ok(), number })
    }
}

/// The first exception of reading, which is raised instead of what came of it.
#[derive(Clone, Default)]
pub(crate) struct Trouble(Arc<Mutex<Option<PyErr>>>);

impl Trouble {
    /// What it was, where there was one.
    pub(crate) fn take(&self) -> Option<PyErr> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn is_set(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    fn set(&self, error: PyErr) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }
}

impl Given {
    /// A path, an object with `read`, or a sequence of such.
    pub(crate) fn from_object(source: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Some(one) = One::from_object(source)? {
            return Ok(Self(vec![one]));
        }
        let wrong = || PyTypeError::new_err("give a path, a binary file object, or a sequence of such");
        let given = source.extract::<Vec<Bound<'_, PyAny>>>().map_err(|_| wrong())?;
        let all: Vec<One> =
            given.iter().filter_map(|one| One::from_object(one).transpose()).collect::<PyResult<_>>()?;
        if all.is_empty() || all.len() < given.len() { Err(wrong()) } else { Ok(Self(all)) }
    }

    /// Whether all of it can be read a second time.
    pub(crate) fn can_be_read_twice(&self) -> bool {
        self.0.iter().all(|one| matches!(one, One::Path(_, Some(_))))
    }

    /// Refuses files that are not what they were.
    pub(crate) fn unchanged(&self) -> Result<(), Refusal> {
        let other = |one: &&One| matches!(one, One::Path(path, stamp) if Stamp::of(path) != *stamp);
        self.0.iter().find(other).map_or(Ok(()), |one| Err(one.changed()))
    }

    /// Why nothing more is told of them, where something else is read now.
    pub(crate) fn changed(&self) -> Refusal {
        match self.0.as_slice() {
            [one] => one.changed(),
            _ => Refusal::input("one of the captures has changed since it was read", AGAIN),
        }
    }

    /// Reads it all into `watcher`, without the interpreter's lock.
    pub(crate) fn read(&self, options: Options, watcher: &mut Watcher, trouble: &Trouble) -> Captures {
        let mut asked = Instant::now();
        let mut go_on = || {
            if asked.elapsed() < ASKED {
                return ControlFlow::Continue(());
            }
            asked = Instant::now();
            match Python::attach(|py| py.check_signals()) {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => {
                    trouble.set(error);
                    ControlFlow::Break(())
                }
            }
        };
        // An exception of one ends it all: there is nobody to tell of it but who called.
        let sources = self.0.iter().map_while(|one| (!trouble.is_set()).then(|| one.open(trouble)));
        read_each(sources, options, watcher, |_| go_on())
    }
}

impl One {
    fn from_object(source: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        if let Ok(path) = source.extract::<PathBuf>() {
            let path = named(path);
            let stamp = Stamp::of(&path);
            return Ok(Some(Self::Path(path, stamp)));
        }
        Ok(source.hasattr("read")?.then(|| Self::Object(source.clone().unbind())))
    }

    fn changed(&self) -> Refusal {
        match self {
            Self::Path(path, _) => Refusal::input(&format!("{} has changed since it was read", path.display()), AGAIN),
            Self::Object(_) => Refusal::input("the captures have changed since they were read", AGAIN),
        }
    }

    fn open(&self, trouble: &Trouble) -> Result<Source, fullpipe_ingest::Error> {
        match self {
            Self::Path(path, _) => Source::open(path),
            Self::Object(object) => {
                let (object, name) = Python::attach(|py| (object.clone_ref(py), name(object.bind(py))));
                Source::new(name, Box::new(Stream { object, trouble: trouble.clone() }), None)
            }
        }
    }
}

/// `-` is a file here; standard input is `sys.stdin.buffer`.
fn named(path: PathBuf) -> PathBuf {
    if path.as_os_str() == "-" { Path::new(".").join(path) } else { path }
}

/// What reports call the object.
fn name(object: &Bound<'_, PyAny>) -> String {
    let name = object.getattr("name").and_then(|name| name.extract::<String>());
    name.unwrap_or_else(|_| "file object".to_owned())
}

/// A binary file object of Python.
struct Stream {
    object: Py<PyAny>,
    trouble: Trouble,
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = Python::attach(|py| {
            let read = self.object.call_method1(py, "read", (buffer.len(),))?;
            let bytes = read.bind(py).extract::<&[u8]>().map_err(|_| {
                PyTypeError::new_err(
                    "the file object's read() gave no bytes: open it with mode \"rb\", and not non-blocking",
                )
            })?;
            let into = buffer.get_mut(..bytes.len()).ok_or_else(|| {
                PyTypeError::new_err("the file object's read() gave more bytes than it was asked for")
            })?;
            into.copy_from_slice(bytes);
            Ok(bytes.len())
        });
        read.map_err(|error: PyErr| {
            let copy = io::Error::other(error.to_string());
            self.trouble.set(error);
            copy
        })
    }
}
