/*
 * The time stamp counter, read by rdtsc behind a fence.
 *
 * rdtsc alone is executed whenever the processor likes. The lfence before it
 * waits until all earlier instructions have completed, so that the work to be
 * timed cannot slip behind the reading. Nothing here keeps later instructions
 * from starting early; a second lfence does, and costs as much again.
 *
 * In Rust: hcabench::time::Counter, which has both fences
 */
#ifndef LISTINGS_RDTSC_H
#define LISTINGS_RDTSC_H

#include <stdint.h>

#ifndef __x86_64__
#error "the time stamp counter is one of x86-64"
#endif

static inline __attribute__((always_inline)) uint64_t rdtsc(void)
{
	uint32_t low, high;

	__asm__ volatile("lfence\n\t"
			 "rdtsc"
			 : "=a"(low), "=d"(high)
			 :
			 : "memory");
	return (uint64_t)high << 32 | low;
}

#endif
