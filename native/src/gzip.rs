//! Gzip members by ISA-L, as `isal_zlib.compress(record, level, 31)` makes them, byte for byte.
//!
//! ISA-L is not linked in: the functions are those of the library that the Python package `isal` has loaded already.
//! So both sides of the door always give the same bytes (a packed archive is unpacked to the file it was), and a build
//! needs neither an assembler nor autotools. There is `unsafe` code here because it calls C.
#![allow(unsafe_code)]

use libloading::Library;
use std::cell::RefCell;

// For large records, and for small ones, where getting ready for a better level takes longer than compressing.
const LEVEL: u32 = 2;
const SMALL_LEVEL: u32 = 0;
pub const SMALL_BYTES: usize = 1024;
// The size of the work space decides where a block ends: this is what `isal` gives to level 2.
const WORK_BYTES: usize = 4 * 1024 + 2 * 32 * 1024 + 4 * 64 * 1024;
// What `isal` begins with; doubled whenever it is full.
const OUTPUT_BYTES: usize = 16 * 1024;
const KEPT_BYTES: usize = 512 << 10; // by each thread
const INNER_BYTES: usize = 256 * 1024;
const FULL_FLUSH: u16 = 2;
const GZIP: u16 = 1;
const HISTORY_BITS: u16 = 15;

/// Releases of ISA-L with this major version have the structure and the functions that are called here.
pub const MAJOR_VERSION: u32 = 2;

/// `struct isal_zstream`; its inner state takes 82 KB in version 2.31.
#[repr(C, align(64))]
struct Stream {
    next_in: *const u8,
    avail_in: u32,
    total_in: u32,
    next_out: *mut u8,
    avail_out: u32,
    total_out: u32,
    hufftables: *mut u8,
    level: u32,
    level_buf_size: u32,
    level_buf: *mut u8,
    end_of_stream: u16,
    flush: u16,
    gzip_flag: u16,
    hist_bits: u16,
    inner: [u8; INNER_BYTES],
}

struct Space {
    stream: Box<Stream>,
    work: Vec<u8>,
    output: Vec<u8>,
}

impl Space {
    fn new() -> Space {
        // SAFETY: zeros are a value of all of its fields, numbers and raw pointers.
        let stream = Box::new(unsafe { std::mem::zeroed::<Stream>() });
        Space { stream, work: vec![0; WORK_BYTES], output: Vec::new() }
    }
}

thread_local! {
    static SPACE: RefCell<Option<Space>> = const { RefCell::new(None) };
}

type Init = unsafe extern "C" fn(*mut Stream);
type Deflate = unsafe extern "C" fn(*mut Stream) -> i32;

/// The two functions of ISA-L that make a member.
pub struct Isal {
    init: Init,
    deflate: Deflate,
    _library: Library, // keeps both where they are
}

impl Isal {
    /// Takes the functions of the library at `path`; its ISA-L must be of the major version above.
    pub fn open(path: &str) -> Result<Isal, libloading::Error> {
        // SAFETY: the caller has imported this extension module, so nothing of it runs for the first time; the
        // signatures are those of `igzip_lib.h`, the same in all releases of ISA-L 2.
        unsafe {
            let library = Library::new(path)?;
            let init = *library.get::<Init>(b"isal_deflate_init\0")?;
            let deflate = *library.get::<Deflate>(b"isal_deflate\0")?;
            Ok(Isal { init, deflate, _library: library })
        }
    }

    /// The gzip member of a record whose block has `block_bytes` bytes; None if ISA-L refuses it.
    pub fn member(&self, record: &[u8], block_bytes: usize) -> Option<Vec<u8>> {
        let level = if block_bytes > SMALL_BYTES { LEVEL } else { SMALL_LEVEL };
        let size = u32::try_from(record.len()).ok()?;
        SPACE.with_borrow_mut(|space| {
            let space = space.get_or_insert_with(Space::new);
            self.deflate(space, record.as_ptr(), size, level)?;
            if space.output.capacity() <= KEPT_BYTES {
                return Some(space.output.clone());
            }
            let mut made = std::mem::take(&mut space.output); // a copy of a large one would take its size once more
            made.shrink_to_fit();
            Some(made)
        })
    }

    /// Leaves the member in the output of the space.
    fn deflate(&self, space: &mut Space, input: *const u8, size: u32, level: u32) -> Option<()> {
        let Space { stream, work, output } = space;
        // SAFETY: `stream` is at least as large as ISA-L's own structure. All pointers are set before each call, with
        // the sizes of what they point to, and ISA-L keeps within these; nothing is moved during a call.
        unsafe { (self.init)(&mut **stream) };
        stream.level = level;
        (stream.level_buf, stream.level_buf_size) =
            (work.as_mut_ptr(), if level == LEVEL { WORK_BYTES as u32 } else { 0 });
        (stream.gzip_flag, stream.hist_bits) = (GZIP, HISTORY_BITS);
        (stream.next_in, stream.avail_in) = (input, size);
        (stream.flush, stream.end_of_stream) = (FULL_FLUSH, 1);
        let mut limit = OUTPUT_BYTES;
        output.clear();
        loop {
            let written = output.len();
            let free = limit - written;
            output.reserve_exact(free);
            stream.next_out = output.spare_capacity_mut().as_mut_ptr().cast();
            stream.avail_out = u32::try_from(free).ok()?;
            if unsafe { (self.deflate)(&mut **stream) } != 0 {
                return None;
            }
            // SAFETY: ISA-L has written all that is not available any more.
            unsafe { output.set_len(limit - stream.avail_out as usize) };
            if stream.avail_out > 0 {
                return Some(());
            }
            limit *= 2;
        }
    }
}
