/*
 * Waiting for the next step of a fixed rate, by a timer of the kernel.
 *
 * The timer expires at every step, and a read of its descriptor returns how
 * often it has expired since the last read: 1 when the caller was in time,
 * more when steps were missed, and it blocks when the next is still to come.
 * Nothing is lost and the CPU is free meanwhile. But each step takes a system
 * call and a wake-up: at 100 kHz that alone can be longer than the step.
 *
 * In Rust: hcabench::pacing::ConstantRate with AfterMiss::Skip; it never sleeps
 */
#ifndef LISTINGS_TIMERFD_WAIT_H
#define LISTINGS_TIMERFD_WAIT_H

#include <errno.h>
#include <stdint.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "timespec.h"

struct timerfd_wait {
	int fd;
};

/* The first step is one period from now. Returns 0 or -1 and errno. */
static inline int timerfd_wait_start(struct timerfd_wait *wait,
				     uint64_t period_ns)
{
	struct itimerspec every = {
		.it_interval = ns_to_timespec(period_ns),
		.it_value = ns_to_timespec(period_ns),
	};

	wait->fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	if (wait->fd < 0)
		return -1;
	return timerfd_settime(wait->fd, 0, &every, NULL);
}

/* The steps since the last call, one more than were missed; 0 and errno. */
static inline uint64_t timerfd_wait(struct timerfd_wait *wait)
{
	uint64_t steps;
	ssize_t length;

	do
		length = read(wait->fd, &steps, sizeof(steps));
	while (length < 0 && errno == EINTR);
	return length == sizeof(steps) ? steps : 0;
}

#endif
