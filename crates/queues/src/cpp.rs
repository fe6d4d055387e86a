//! Queues written in C++, behind the same two ends: what `benches/cpp_queues` calls.

use std::ffi::c_void;
use std::marker::PhantomData;

use cpp_queues::Functions;

use super::crates::touched;
use super::element::Words;
use super::interface::{
    NewEnds, Queue, QueueError, ReceiveOnly, Receiver, SendOnly, Sender, SharedEnds, alone,
};
use super::parameters::Parameters;
use super::slots::check_capacity;
use super::sync::Arc;

/// Which of them.
pub trait CppQueueKind: std::fmt::Debug + 'static {
    /// Its functions for elements of 1, 8 and 32 words.
    const FUNCTIONS: [Functions; 3];
}

macro_rules! kinds {
    ($($kind:ident: $functions:ident;)+) => {$(
        #[derive(Debug)]
        pub struct $kind;

        impl CppQueueKind for $kind {
            const FUNCTIONS: [Functions; 3] = cpp_queues::$functions;
        }
    )+};
}

kinds! {
    BoostSpsc: BOOST_SPSC;
    ReaderWriterQueue: READER_WRITER_QUEUE;
    ConcurrentQueue: CONCURRENT_QUEUE;
}

/// A queue of C++.
#[derive(Debug)]
pub struct Cpp<K>(PhantomData<K>);

/// The functions for elements of `N` words, which the compiler knows.
const fn functions<K: CppQueueKind, const N: usize>() -> Functions {
    match N {
        1 => K::FUNCTIONS[0],
        8 => K::FUNCTIONS[1],
        32 => K::FUNCTIONS[2],
        _ => panic!("the bridge has elements of 1, 8 and 32 words"),
    }
}

/// The queue, which goes with the last of its ends.
#[derive(Debug)]
struct Owner {
    queue: *mut c_void,
    free: unsafe extern "C" fn(*mut c_void),
}

// SAFETY: it is used to free the queue only, by whichever end goes last.
unsafe impl Send for Owner {}
// SAFETY: as above.
unsafe impl Sync for Owner {}

impl Drop for Owner {
    fn drop(&mut self) {
        // SAFETY: made by the function that belongs to this one, and all ends are gone.
        unsafe { (self.free)(self.queue) };
    }
}

/// An end of a queue.
#[derive(Debug)]
pub struct CppEnd<K, const N: usize> {
    at: *mut c_void,
    _owner: Arc<Owner>,
    kind: PhantomData<K>,
}

// SAFETY: an end may be used by any thread, by one at a time; who has it mutably is the only one.
unsafe impl<K: CppQueueKind, const N: usize> Send for CppEnd<K, N> {}

impl<K: CppQueueKind, const N: usize> Sender<Words<N>> for SendOnly<CppEnd<K, N>> {
    #[inline(always)]
    fn enqueue(&mut self, element: Words<N>) -> bool {
        let functions = const { functions::<K, N>() };
        // SAFETY: the end of a sender, alive as its owner is, used by this thread alone; and as many words as it reads.
        unsafe { (functions.enqueue)(self.0.at, element.words().as_ptr()) }
    }
}

impl<K: CppQueueKind, const N: usize> Receiver<Words<N>> for ReceiveOnly<CppEnd<K, N>> {
    #[inline(always)]
    fn dequeue(&mut self) -> Option<Words<N>> {
        let functions = const { functions::<K, N>() };
        let mut words = [0; N];
        // SAFETY: the end of a receiver, alive as its owner is, used by this thread alone; and room for what it writes.
        let is_there = unsafe { (functions.dequeue)(self.0.at, words.as_mut_ptr()) };
        is_there.then(|| Words::from_words(words))
    }
}

impl<K: CppQueueKind, const N: usize> Queue<Words<N>> for Cpp<K> {
    type Sender = SendOnly<CppEnd<K, N>>;
    type Receiver = ReceiveOnly<CppEnd<K, N>>;

    fn starting_at(capacity: usize, _start: usize) -> NewEnds<Self, Words<N>> {
        Self::shared(capacity, &Parameters::default(), 1, 1).map(alone)
    }

    fn shared(
        capacity: usize,
        _given: &Parameters,
        senders: usize,
        receivers: usize,
    ) -> SharedEnds<Self, Words<N>> {
        let capacity = check_capacity(capacity)?;
        if capacity < senders {
            return Err(QueueError {
                asked: capacity,
                allowed: "each sender has a place at least",
            });
        }
        let functions = const { functions::<K, N>() };
        let mut ends = vec![std::ptr::null_mut(); senders + receivers];
        // SAFETY: there is room for the pointers to all ends.
        let queue = unsafe { (functions.make)(capacity, senders, receivers, ends.as_mut_ptr()) };
        let owner = Arc::new(Owner {
            queue,
            free: functions.free,
        });
        let mut ends = ends.into_iter().map(|at| CppEnd {
            at,
            _owner: owner.clone(),
            kind: PhantomData,
        });
        let mut to: Vec<_> = ends.by_ref().take(senders).map(SendOnly).collect();
        let mut from: Vec<_> = ends.map(ReceiveOnly).collect();
        // What several share touches its memory itself.
        if (senders, receivers) == (1, 1) {
            let (sender, receiver) = touched(capacity, (to.remove(0), from.remove(0)))?;
            (to, from) = (vec![sender], vec![receiver]);
        }
        Ok((to, from))
    }
}

/// Our own queue behind calls of the same kind: what it loses by them is what the bridge costs.
#[derive(Debug)]
pub struct BatonByCall<Q>(PhantomData<Q>);

/// An end of it, elsewhere, as those of C++ are.
#[derive(Debug)]
pub struct BoxedEnd<E>(Box<E>);

/// # Safety
/// The end is there, and no other thread uses it; the element is there.
#[inline(never)]
unsafe extern "C" fn call_enqueue<S: Sender<Words<N>>, const N: usize>(
    end: *mut S,
    element: *const [u64; N],
) -> bool {
    // SAFETY: by the caller's word.
    unsafe { (*end).enqueue(Words::from_words(*element)) }
}

/// # Safety
/// The end is there, and no other thread uses it; there is room for an element.
#[inline(never)]
unsafe extern "C" fn call_dequeue<R: Receiver<Words<N>>, const N: usize>(
    end: *mut R,
    element: *mut [u64; N],
) -> bool {
    // SAFETY: by the caller's word.
    match unsafe { (*end).dequeue() } {
        // SAFETY: as above.
        Some(found) => unsafe {
            *element = *found.words();
            true
        },
        None => false,
    }
}

impl<S: Sender<Words<N>>, const N: usize> Sender<Words<N>> for BoxedEnd<S> {
    #[inline(always)]
    fn enqueue(&mut self, element: Words<N>) -> bool {
        // SAFETY: both are borrowed here, the end mutably.
        unsafe { call_enqueue(&raw mut *self.0, element.words()) }
    }
}

impl<R: Receiver<Words<N>>, const N: usize> Receiver<Words<N>> for BoxedEnd<R> {
    #[inline(always)]
    fn dequeue(&mut self) -> Option<Words<N>> {
        let mut words = [0; N];
        // SAFETY: both are borrowed here mutably.
        let is_there = unsafe { call_dequeue(&raw mut *self.0, &raw mut words) };
        is_there.then(|| Words::from_words(words))
    }
}

impl<Q: Queue<Words<N>>, const N: usize> Queue<Words<N>> for BatonByCall<Q> {
    type Sender = BoxedEnd<Q::Sender>;
    type Receiver = BoxedEnd<Q::Receiver>;

    fn starting_at(capacity: usize, start: usize) -> NewEnds<Self, Words<N>> {
        let (sender, receiver) = Q::starting_at(capacity, start)?;
        Ok((BoxedEnd(Box::new(sender)), BoxedEnd(Box::new(receiver))))
    }
}
