/*
 * The time stamp counter, read by rdtscp.
 *
 * rdtscp waits by itself until all earlier instructions have been executed
 * and all earlier loads are visible. It also tells, in ecx, where it was read
 * (Linux stores node and CPU there), which shows a migration between two
 * readings. As with rdtsc, later instructions may start before it.
 *
 * Older processors do not have it: has_rdtscp() asks.
 *
 * In Rust: hcabench::time::Counter, which reads by fences and rdtsc to the same
 *          effect and so needs no rdtscp
 */
#ifndef LISTINGS_RDTSCP_H
#define LISTINGS_RDTSCP_H

#include <stdbool.h>
#include <stdint.h>

#ifndef __x86_64__
#error "the time stamp counter is one of x86-64"
#endif

#include <cpuid.h>

/* CPUID 8000_0001H, EDX bit 27. */
static inline bool has_rdtscp(void)
{
	unsigned int eax, ebx, ecx, edx;

	return __get_cpuid(0x80000001, &eax, &ebx, &ecx, &edx) &&
	       (edx & (1u << 27));
}

static inline __attribute__((always_inline))
uint64_t rdtscp_on(uint32_t *place)
{
	uint32_t low, high;

	__asm__ volatile("rdtscp"
			 : "=a"(low), "=d"(high), "=c"(*place)
			 :
			 : "memory");
	return (uint64_t)high << 32 | low;
}

static inline __attribute__((always_inline)) uint64_t rdtscp(void)
{
	uint32_t place;

	return rdtscp_on(&place);
}

#endif
