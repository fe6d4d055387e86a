/*
 * Waiting for the next step of a fixed rate, by watching the time stamp
 * counter.
 *
 * The step is met within a few cycles and no system call is made; the price is
 * a CPU that does nothing else. When the caller comes late, the steps that
 * have passed are counted, and the next one is again a whole number of periods
 * from the start: the rate is kept, however late.
 *
 * In Rust: hcabench::pacing::ConstantRate with MissPolicy::StartOver
 */
#ifndef LISTINGS_RDTSCP_WAIT_H
#define LISTINGS_RDTSCP_WAIT_H

#include "rdtscp.h"

struct rdtscp_wait {
	uint64_t start;
	uint64_t next;
	/* The last step that was met or missed. */
	uint64_t step;
	/* In cycles. Rarely a whole number: rounded, it would drift. */
	double period;
};

static inline void rdtscp_wait_aim(struct rdtscp_wait *wait)
{
	wait->next = wait->start +
		     (uint64_t)((double)(wait->step + 1) * wait->period);
}

/* The first step is one period from now. */
static inline void rdtscp_wait_start(struct rdtscp_wait *wait,
				     uint64_t period_ns, double hertz)
{
	wait->period = (double)period_ns * hertz / 1e9;
	wait->step = 0;
	wait->start = rdtscp();
	rdtscp_wait_aim(wait);
}

/* The steps since the last call, one more than were missed. */
static inline uint64_t rdtscp_wait(struct rdtscp_wait *wait)
{
	uint64_t now, passed, steps;

	do
		now = rdtscp();
	while (now < wait->next);

	passed = (uint64_t)((double)(now - wait->start) / wait->period);
	/* It may come out one short where next was rounded down. */
	steps = passed > wait->step ? passed - wait->step : 1;
	wait->step += steps;
	rdtscp_wait_aim(wait);
	return steps;
}

#endif
