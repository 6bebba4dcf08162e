//! Threads that read documents beside the event loop, without Python and so without its lock: digests, the analysis of
//! HTML, and WARC records. Python hands documents over and takes what was made of them, both on the event loop.

use crate::digest::{digests, in_python, Digests};
use crate::warc::{MemberWriter, Parts};
use crate::{guarded, read, Html, Read};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::IntoPyObjectExt;
use std::collections::HashSet;
use std::io::{Read as _, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{channel, Receiver, Sender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};

/// Fingerprints of documents that were read lately: some 2 MB.
const READ_LATELY: usize = 50_000;

struct Job {
    number: u64,
    payload: PyBackedBytes,
    body: PyBackedBytes,
    html: Option<Html>,
    parts: Option<Parts>,
    is_large: bool,
}

/// What was made of a document. The job comes along: its strings belong to Python, and are let go with its lock held.
struct Done {
    job: Job,
    digests: Digests,
    is_read: bool,
    page: Option<Read>,
    members: Option<Vec<Vec<u8>>>,
}

struct Shared {
    done: Mutex<Vec<Option<Done>>>, // None where a panic came between
    has_done: Condvar,
    lately: Mutex<HashSet<u64>>,
    bell: UnixStream,
    writer: Option<Py<MemberWriter>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    fn is_news(&self, fingerprint: u64) -> bool {
        let mut lately = locked(&self.lately);
        if lately.len() >= READ_LATELY {
            lately.clear();
        }
        lately.insert(fingerprint)
    }

    fn made_of(&self, job: Job) -> Done {
        let digests = digests((&job.payload, &job.body));
        let is_news = self.is_news(digests.0);
        let html = job.html.as_ref().filter(|_| is_news || job.is_large);
        let page = html.and_then(|html| read(&job.body, html));
        let parts = job.parts.as_ref().filter(|_| is_news);
        let members = parts
            .zip(self.writer.as_ref())
            .and_then(|(parts, writer)| guarded(|| writer.get().members(parts, &digests.1)));
        Done { is_read: html.is_some(), job, digests, page, members }
    }

    fn run(&self, work: &Mutex<Receiver<Job>>) {
        loop {
            let next = locked(work).recv();
            let Ok(job) = next else { return };
            let made = guarded(|| Some(self.made_of(job)));
            let mut done = locked(&self.done);
            let is_first = done.is_empty();
            done.push(made);
            drop(done);
            self.has_done.notify_one();
            if is_first {
                let _ = (&self.bell).write(&[0]); // it can only be full, and then it rings already
            }
        }
    }
}

/// Reads documents on threads. `fileno` can be read from when `take` has something to give.
#[pyclass(frozen)]
pub struct Readers {
    work: Mutex<Option<Sender<Job>>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    shared: Arc<Shared>,
    rung: UnixStream,
}

#[pymethods]
impl Readers {
    #[new]
    fn new(threads: usize, writer: Option<Py<MemberWriter>>) -> PyResult<Self> {
        let ((work, jobs), (bell, rung)) = (channel(), UnixStream::pair()?);
        bell.set_nonblocking(true)?;
        rung.set_nonblocking(true)?;
        let (done, lately) = (Mutex::default(), Mutex::default());
        let shared = Arc::new(Shared { done, has_done: Condvar::new(), lately, bell, writer });
        let jobs = Arc::new(Mutex::new(jobs));
        let start = |number| {
            let (shared, jobs) = (shared.clone(), jobs.clone());
            Builder::new().name(format!("reader {number}")).spawn(move || shared.run(&jobs))
        };
        let threads = (0..threads).map(start).collect::<Result<_, _>>()?;
        Ok(Readers { work: Mutex::new(Some(work)), threads: Mutex::new(threads), shared, rung })
    }

    fn fileno(&self) -> i32 {
        self.rung.as_raw_fd()
    }

    /// Hands a document over; its number comes back with what was made of it. One whose fingerprint was seen lately is
    /// not read, unless it is large, and has no records made.
    #[pyo3(signature = (number, payload, body, html, parts, is_large))]
    fn submit(
        &self,
        number: u64,
        payload: PyBackedBytes,
        body: PyBackedBytes,
        html: Option<Html>,
        parts: Option<&Bound<'_, PyAny>>,
        is_large: bool,
    ) -> PyResult<()> {
        let parts = parts.map(crate::warc::extracted).transpose()?.flatten();
        if let Some(work) = locked(&self.work).as_ref() {
            let _ = work.send(Job { number, payload, body, html, parts, is_large });
            // it fails if all threads are gone
        }
        Ok(())
    }

    /// What was made since: number, digests, whether the document was read, what it says (None: it needs a tree), and
    /// its records. With `waits` it is at least one.
    fn take<'py>(&self, py: Python<'py>, waits: bool) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let mut rings = [0; 64];
        while matches!((&self.rung).read(&mut rings), Ok(read) if read == rings.len()) {}
        let all = py.detach(|| {
            let mut done = locked(&self.shared.done);
            while waits && done.is_empty() {
                done = self.shared.has_done.wait(done).unwrap_or_else(PoisonError::into_inner);
            }
            std::mem::take(&mut *done)
        });
        let to_python = |made: Option<Done>| {
            let Some(made) = made else { panic!("a thread that reads documents has a fault") };
            let page = made.page.map(|page| page.into_python(py)).transpose()?;
            (made.job.number, in_python(py, &made.digests), made.is_read, page, made.members).into_bound_py_any(py)
        };
        all.into_iter().map(to_python).collect()
    }

    /// Ends the threads after what they are reading.
    fn close(&self, py: Python<'_>) {
        drop(locked(&self.work).take());
        let threads = std::mem::take(&mut *locked(&self.threads));
        py.detach(|| threads.into_iter().for_each(|thread| drop(thread.join())));
    }
}
