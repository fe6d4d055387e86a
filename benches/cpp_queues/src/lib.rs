//! Queues that others have written in C++, behind functions of C: references from outside for `hcabench queue`.
//!
//! They are boost::lockfree::spsc_queue (Boost Software License 1.0), and moodycamel::ReaderWriterQueue and
//! moodycamel::ConcurrentQueue (both under the two-clause BSD licence), each as its header is installed where this is
//! compiled. Nothing of them is part of this repository. Their licences ask that a program that is given away with them
//! comes with their texts: hcabench's packages are built without them.
//!
//! Whoever calls these functions enters C++ by a call that is not inlined: for that clang has to be of the LLVM that rustc
//! has. (With the clang 14 of Debian 12 and rustc 1.95, -flto=thin and -Clinker-plugin-lto link, and inline nothing.)

use std::alloc::Layout;
use std::ffi::c_void;

/// For elements of one size. None unwinds: what C++ would throw ends the program.
#[derive(Debug, Clone, Copy)]
pub struct Functions {
    /// For a capacity, and numbers of senders and receivers; writes pointers to its ends, senders first.
    pub make: unsafe extern "C" fn(usize, usize, usize, *mut *mut c_void) -> *mut c_void,
    /// Frees what [`make`](Self::make) has returned, with all ends.
    pub free: unsafe extern "C" fn(*mut c_void),
    /// Puts an element in at a sender, by one thread at a time; `false` if it is full.
    pub enqueue: unsafe extern "C" fn(*mut c_void, *const u64) -> bool,
    /// Takes an element out at a receiver, by one thread at a time; `false` if there is none.
    pub dequeue: unsafe extern "C" fn(*mut c_void, *mut u64) -> bool,
}

macro_rules! kinds {
    ($($(#[$what:meta])* $kind:ident: $($make:ident $free:ident $enqueue:ident $dequeue:ident)+;)+) => {
        unsafe extern "C" {
            $($(
                fn $make(capacity: usize, senders: usize, receivers: usize, ends: *mut *mut c_void) -> *mut c_void;
                fn $free(queue: *mut c_void);
                fn $enqueue(end: *mut c_void, element: *const u64) -> bool;
                fn $dequeue(end: *mut c_void, element: *mut u64) -> bool;
            )+)+
        }

        $($(#[$what])*
        /// For elements of 1, 8 and 32 words.
        pub const $kind: [Functions; 3] = [$(Functions {
            make: $make,
            free: $free,
            enqueue: $enqueue,
            dequeue: $dequeue,
        }),+];)+
    };
}

kinds! {
    /// boost::lockfree::spsc_queue: one sender, one receiver.
    BOOST_SPSC:
        boost_spsc_make_1 boost_spsc_free_1 boost_spsc_enqueue_1 boost_spsc_dequeue_1
        boost_spsc_make_8 boost_spsc_free_8 boost_spsc_enqueue_8 boost_spsc_dequeue_8
        boost_spsc_make_32 boost_spsc_free_32 boost_spsc_enqueue_32 boost_spsc_dequeue_32;
    /// moodycamel::ReaderWriterQueue: one sender, one receiver.
    READER_WRITER_QUEUE:
        reader_writer_make_1 reader_writer_free_1 reader_writer_enqueue_1 reader_writer_dequeue_1
        reader_writer_make_8 reader_writer_free_8 reader_writer_enqueue_8 reader_writer_dequeue_8
        reader_writer_make_32 reader_writer_free_32 reader_writer_enqueue_32 reader_writer_dequeue_32;
    /// moodycamel::ConcurrentQueue with a token for each end: any numbers of both, no more senders than its capacity.
    CONCURRENT_QUEUE:
        concurrent_make_1 concurrent_free_1 concurrent_enqueue_1 concurrent_dequeue_1
        concurrent_make_8 concurrent_free_8 concurrent_enqueue_8 concurrent_dequeue_8
        concurrent_make_32 concurrent_free_32 concurrent_enqueue_32 concurrent_dequeue_32;
}

/// What stands before each allocation: its size. As long as the alignment.
const BEFORE: usize = 128;

fn layout(size: usize) -> Option<Layout> {
    Layout::from_size_align(size.checked_add(BEFORE)?, BEFORE).ok()
}

/// Memory for C++, by the allocator of the program: the queue benchmark gives queues memory of their own by it.
#[unsafe(no_mangle)]
extern "C" fn cpp_queues_allocate(size: usize) -> *mut c_void {
    let Some(layout) = layout(size) else {
        std::process::abort();
    };
    // SAFETY: the layout is not empty.
    let start = unsafe { std::alloc::alloc(layout) };
    if start.is_null() {
        std::alloc::handle_alloc_error(layout);
    }
    // SAFETY: there is room for it before what is given out, and it is aligned.
    unsafe {
        start.cast::<usize>().write(size);
        start.add(BEFORE).cast()
    }
}

/// Frees memory that [`cpp_queues_allocate`] gave.
///
/// # Safety
/// It gave it, and it was not freed; or it is null.
#[unsafe(no_mangle)]
unsafe extern "C" fn cpp_queues_free(memory: *mut c_void) {
    if memory.is_null() {
        return;
    }
    // SAFETY: by the caller's word the size stands there, and the layout was that of the allocation.
    unsafe {
        let start = memory.cast::<u8>().sub(BEFORE);
        if let Some(layout) = layout(start.cast::<usize>().read()) {
            std::alloc::dealloc(start, layout);
        }
    }
}
