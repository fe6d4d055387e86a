/*
 * A point in time as one number that fits into the smallest message.
 *
 * clock_gettime() fills two fields, seconds and nanoseconds of the second.
 * Both together as nanoseconds take 64 bits and last 584 years: such a stamp
 * is the first 8 bytes of every message, and two of them are subtracted
 * without looking for a second that has ended in between.
 *
 * CLOCK_MONOTONIC never steps; CLOCK_REALTIME does, whenever somebody sets it.
 *
 * In Rust: hcabench::time::Posix
 */
#ifndef LISTINGS_TIMESPEC_H
#define LISTINGS_TIMESPEC_H

#include <stdint.h>
#include <time.h>

#define NS_PER_SECOND UINT64_C(1000000000)

static inline uint64_t timespec_to_ns(const struct timespec *time)
{
	return (uint64_t)time->tv_sec * NS_PER_SECOND + (uint64_t)time->tv_nsec;
}

static inline struct timespec ns_to_timespec(uint64_t ns)
{
	return (struct timespec) {
		.tv_sec = (time_t)(ns / NS_PER_SECOND),
		.tv_nsec = (long)(ns % NS_PER_SECOND),
	};
}

/* The call fails for an unknown clock only. */
static inline uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return timespec_to_ns(&now);
}

static inline uint64_t now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

#endif
