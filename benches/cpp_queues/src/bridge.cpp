// The C++ side of the bridge: what lib.rs declares, made by templates. Each queue is used as its author documents it for
// a fixed capacity: all memory is there before the first element, and nothing is allocated behind it.

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <utility>
#include <vector>

extern "C" void *cpp_queues_allocate(std::size_t size);
extern "C" void cpp_queues_free(void *memory);

#include <boost/lockfree/spsc_queue.hpp>
#include <concurrentqueue/concurrentqueue.h>

// ReaderWriterQueue knows no other memory than that of std::malloc. What its header calls so is ours.
namespace std {
inline void *cpp_queues_malloc(std::size_t size) { return cpp_queues_allocate(size); }
inline void cpp_queues_std_free(void *memory) { cpp_queues_free(memory); }
} // namespace std
#define malloc cpp_queues_malloc
#define free cpp_queues_std_free
#include <readerwriterqueue/readerwriterqueue.h>
#undef malloc
#undef free

namespace {

template <std::size_t N> struct Element {
    std::uint64_t words[N];
};

template <typename T> struct Allocator {
    using value_type = T;
    Allocator() = default;
    template <typename U> Allocator(const Allocator<U> &) {}
    T *allocate(std::size_t count) { return static_cast<T *>(cpp_queues_allocate(count * sizeof(T))); }
    void deallocate(T *memory, std::size_t) { cpp_queues_free(memory); }
    template <typename U> bool operator==(const Allocator<U> &) const { return true; }
    template <typename U> bool operator!=(const Allocator<U> &) const { return false; }
};

template <typename T, typename... Arguments> T *made(Arguments &&...arguments) {
    static_assert(alignof(T) <= 128);
    return new (cpp_queues_allocate(sizeof(T))) T(std::forward<Arguments>(arguments)...);
}

template <typename T> void gone(T *object) {
    object->~T();
    cpp_queues_free(object);
}

// Holds exactly as many as asked for.
template <std::size_t N> struct BoostSpsc {
    using Queue = boost::lockfree::spsc_queue<Element<N>, boost::lockfree::allocator<Allocator<Element<N>>>>;
    using Sender = BoostSpsc;
    using Receiver = BoostSpsc;
    Queue queue;

    BoostSpsc(std::size_t capacity, std::size_t, std::size_t, void **ends) : queue(capacity) {
        ends[0] = ends[1] = this;
    }
    bool enqueue(const Element<N> &element) { return queue.push(element); }
    bool dequeue(Element<N> &element) { return queue.pop(element); }
};

// Its size_approx walks all blocks, so the bound is counted here: the receiver tells how many it took, and the sender
// looks only when it has used up the room that it knew of.
template <std::size_t N> struct ReaderWriter {
    using Queue = moodycamel::ReaderWriterQueue<Element<N>>;
    struct alignas(128) Receiver {
        Queue &queue;
        std::size_t count = 0;
        alignas(128) std::atomic<std::size_t> taken{0};

        explicit Receiver(Queue &queue) : queue(queue) {}
        bool dequeue(Element<N> &element) {
            if (!queue.try_dequeue(element))
                return false;
            // Release: what try_dequeue did stands before it, so a sender that acquires the count finds the place free
            // as well. Nobody else writes the count.
            taken.store(++count, std::memory_order_release);
            return true;
        }
    };
    struct alignas(128) Sender {
        Queue &queue;
        const std::atomic<std::size_t> &taken;
        const std::size_t capacity;
        std::size_t put = 0;
        std::size_t most = 0;

        Sender(Queue &queue, const Receiver &receiver, std::size_t capacity)
            : queue(queue), taken(receiver.taken), capacity(capacity) {}
        bool enqueue(const Element<N> &element) {
            if (put == most) {
                // Acquire: see the receiver. A count that is old lets fewer in, never too many.
                most = taken.load(std::memory_order_acquire) + capacity;
                if (put == most)
                    return false;
            }
            if (!queue.try_enqueue(element))
                return false;
            ++put;
            return true;
        }
    };
    Queue queue;
    Receiver receiver;
    Sender sender;

    ReaderWriter(std::size_t capacity, std::size_t, std::size_t, void **ends)
        : queue(capacity), receiver(queue), sender(queue, receiver, capacity) {
        ends[0] = &sender;
        ends[1] = &receiver;
    }
};

// Keeps ConcurrentQueue, whose memory comes in blocks, to its capacity. A sender asks how full it is only when it has
// used up what it found free before; the answer takes two indices of each sender, however large the queue is. Of several
// senders each gets a small share of that, and what it was promised counts as in the queue until it asks again: so there
// are never more in it, and nothing but that question is shared.
struct Bound {
    const std::size_t capacity;
    const std::size_t share;
    std::size_t promised = 0;
    std::atomic_flag asking = ATOMIC_FLAG_INIT;

    Bound(std::size_t capacity, std::size_t senders)
        : capacity(capacity), share(senders == 1 ? 1 : 8 * senders) {}
};

struct Allowance {
    std::size_t left = 0;
    std::size_t last = 0;

    template <typename Queue> bool renew(Bound &bound, const Queue &queue) {
        if (bound.share == 1) {
            left = bound.capacity - std::min(queue.size_approx(), bound.capacity);
            return left > 0;
        }
        if (bound.asking.test_and_set(std::memory_order_acquire))
            return false;
        bound.promised -= last;
        const std::size_t used = queue.size_approx() + bound.promised;
        last = used < bound.capacity ? std::max<std::size_t>(1, (bound.capacity - used) / bound.share) : 0;
        bound.promised += last;
        bound.asking.clear(std::memory_order_release);
        left = last;
        return left > 0;
    }
};

struct Traits : moodycamel::ConcurrentQueueDefaultTraits {
    static void *malloc(std::size_t size) { return cpp_queues_allocate(size); }
    static void free(void *memory) { cpp_queues_free(memory); }
};

template <std::size_t N> struct Concurrent {
    using Queue = moodycamel::ConcurrentQueue<Element<N>, Traits>;
    struct alignas(128) Sender {
        Queue &queue;
        Bound &bound;
        moodycamel::ProducerToken token;
        Allowance allowance;

        Sender(Queue &queue, Bound &bound) : queue(queue), bound(bound), token(queue) {}
        bool enqueue(const Element<N> &element) {
            if (allowance.left == 0 && !allowance.renew(bound, queue))
                return false;
            if (!queue.try_enqueue(token, element))
                return false;
            --allowance.left;
            return true;
        }
    };
    struct alignas(128) Receiver {
        Queue &queue;
        moodycamel::ConsumerToken token;

        explicit Receiver(Queue &queue) : queue(queue), token(queue) {}
        bool dequeue(Element<N> &element) { return queue.try_dequeue(token, element); }
    };
    Queue queue;
    alignas(128) Bound bound;
    std::vector<Sender *> senders;
    std::vector<Receiver *> receivers;

    Concurrent(std::size_t capacity, std::size_t sender_count, std::size_t receiver_count, void **ends)
        : queue(capacity), bound(capacity, sender_count) {
        for (std::size_t at = 0; at < sender_count; ++at) {
            senders.push_back(made<Sender>(queue, bound));
            ends[at] = senders.back();
        }
        for (std::size_t at = 0; at < receiver_count; ++at) {
            receivers.push_back(made<Receiver>(queue));
            ends[sender_count + at] = receivers.back();
        }
        // Each sender may have all elements: blocks for them, one that is begun, and one that is not yet empty are its
        // own from here on.
        const std::size_t all = capacity + 2 * Queue::BLOCK_SIZE;
        for (auto *sender : senders) {
            moodycamel::ConsumerToken token(queue);
            Element<N> element{};
            for (std::size_t count = 0; count < all; ++count)
                queue.enqueue(sender->token, element);
            while (queue.try_dequeue(token, element)) {
            }
        }
    }
    ~Concurrent() {
        for (auto *receiver : receivers)
            gone(receiver);
        for (auto *sender : senders)
            gone(sender);
    }
};

} // namespace

// What C++ would throw ends the program: it must not unwind into Rust.
#define FUNCTIONS(name, Kind, N)                                                                                      \
    extern "C" void *name##_make_##N(std::size_t capacity, std::size_t senders, std::size_t receivers,                \
                                     void **ends) noexcept {                                                          \
        return made<Kind<N>>(capacity, senders, receivers, ends);                                                     \
    }                                                                                                                 \
    extern "C" void name##_free_##N(void *queue) noexcept { gone(static_cast<Kind<N> *>(queue)); }                    \
    extern "C" bool name##_enqueue_##N(void *end, const std::uint64_t *element) noexcept {                            \
        return static_cast<Kind<N>::Sender *>(end)->enqueue(*reinterpret_cast<const Element<N> *>(element));          \
    }                                                                                                                 \
    extern "C" bool name##_dequeue_##N(void *end, std::uint64_t *element) noexcept {                                  \
        return static_cast<Kind<N>::Receiver *>(end)->dequeue(*reinterpret_cast<Element<N> *>(element));              \
    }

#define SIZES(name, Kind)                                                                                             \
    FUNCTIONS(name, Kind, 1)                                                                                          \
    FUNCTIONS(name, Kind, 8)                                                                                          \
    FUNCTIONS(name, Kind, 32)

SIZES(boost_spsc, BoostSpsc)
SIZES(reader_writer, ReaderWriter)
SIZES(concurrent, Concurrent)
