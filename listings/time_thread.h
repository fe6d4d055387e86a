/*
 * t_send: the moment the HCA reads a message, approached from outside.
 *
 * A thread of its own goes on writing the time into every message that was
 * posted and has not arrived. The last stamp written before the HCA fetched
 * the message is the one that travels. The median latency from t_subm less
 * that from t_send is about what inline data saves.
 *
 * Inline data is copied while it is posted, so there is nothing to rewrite.
 *
 * In Rust: hcabench::bench::hca::loops::stamper::restamp
 */
#ifndef LISTINGS_TIME_THREAD_H
#define LISTINGS_TIME_THREAD_H

#include <stdatomic.h>
#include <stdbool.h>

#include "send_time.h"

/* What sender, receiver and this thread tell each other. */
struct progress {
	_Alignas(128) _Atomic bool stop;
	_Alignas(128) _Atomic uint32_t ready;
	_Alignas(128) _Atomic uint32_t posted;
	_Alignas(128) _Atomic bool sender_done;
	_Alignas(128) _Atomic uint32_t received;
	_Alignas(128) _Atomic uint32_t completed;
	_Alignas(128) _Atomic bool failed;
};

static inline bool stopped(const struct progress *progress)
{
	return atomic_load_explicit(&progress->stop, memory_order_relaxed);
}

/*
 * Rewrites the oldest message first, until all have arrived or it is told to
 * stop. Returns the number of stamps written.
 */
static inline uint64_t rewrite_stamps(struct progress *progress, char *messages,
				      size_t stride)
{
	uint32_t posted, received, sequence;
	uint64_t rewritten = 0;
	bool sender_done;

	while (!stopped(progress)) {
		/* First: if the sender was done by then, posted is final. */
		sender_done = atomic_load_explicit(&progress->sender_done,
						   memory_order_acquire);
		posted = atomic_load_explicit(&progress->posted,
					      memory_order_acquire);
		received = atomic_load_explicit(&progress->received,
						memory_order_relaxed);
		if (received >= posted && sender_done)
			break;
		for (sequence = received; sequence < posted; sequence++) {
			store_stamp(messages + sequence * stride, now_ns());
			rewritten++;
		}
	}
	return rewritten;
}

#endif
