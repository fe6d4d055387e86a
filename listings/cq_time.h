/*
 * t_recv and t_comp: the moment a completion is found.
 *
 * The clock is read right behind the ibv_poll_cq() that returned something,
 * and at no other time. One completion is taken at a time, so that no stamp
 * waits for another completion. What is found goes to memory that was touched
 * and locked before; everything else is done after the burst.
 *
 * On the queue of the receive requests this is t_recv, on that of the send
 * requests t_comp.
 *
 * In Rust: hcabench::bench::hca::loops::receiver::receive
 *          hcabench::bench::hca::loops::completion::Collector
 */
#ifndef LISTINGS_CQ_TIME_H
#define LISTINGS_CQ_TIME_H

#include <infiniband/verbs.h>

#include "timespec.h"

/*
 * Takes a completion if there is one. Returns what ibv_poll_cq() returned: 1
 * and the stamp, 0 for nothing, less for a queue that is broken.
 */
static inline __attribute__((always_inline))
int poll_stamped(struct ibv_cq *queue, struct ibv_wc *completion,
		 uint64_t *stamp)
{
	int found;

	found = ibv_poll_cq(queue, 1, completion);
	if (found > 0)
		*stamp = now_ns();
	return found;
}

#endif
