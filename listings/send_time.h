/*
 * t_subm: the moment right before a message is handed to the HCA.
 *
 * The work request is ready when post_stamped() is called: slot, number, flags
 * and remote address are set. Between the reading of the clock and the call of
 * ibv_post_send() there is the one store that puts the stamp into the message.
 * The memory of the message must stay as it is until the HCA has read it, so
 * each message of a burst has a slot of its own.
 *
 * In Rust: hcabench::bench::hca::loops::sender::send
 */
#ifndef LISTINGS_SEND_TIME_H
#define LISTINGS_SEND_TIME_H

#include <endian.h>
#include <stdatomic.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "timespec.h"

/* The HCA and time_thread.h look at it meanwhile: one store, never torn. */
static inline void store_stamp(void *message, uint64_t stamp)
{
	atomic_store_explicit((_Atomic uint64_t *)message, htole64(stamp),
			      memory_order_relaxed);
}

static inline uint64_t load_stamp(const void *message)
{
	return le64toh(atomic_load_explicit((const _Atomic uint64_t *)message,
					    memory_order_relaxed));
}

/*
 * Stamps a message and posts its work request. If there is an announce, the
 * message's number plus one is stored there before posting: whoever sees it
 * may rewrite the stamp (time_thread.h).
 *
 * Returns 0, or the errno of ibv_post_send().
 */
static inline __attribute__((always_inline))
int post_stamped(struct ibv_qp *qp, struct ibv_send_wr *request, void *message,
		 uint64_t *submitted, _Atomic uint32_t *announce,
		 uint32_t sequence)
{
	struct ibv_send_wr *bad;
	uint64_t stamp;
	int err;

	stamp = now_ns();
	store_stamp(message, stamp);
	if (announce)
		atomic_store_explicit(announce, sequence + 1,
				      memory_order_release);
	err = ibv_post_send(qp, request, &bad);
	if (!err)
		*submitted = stamp;
	return err;
}

#endif
