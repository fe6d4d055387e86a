/*
 * Whether the time stamp counter can be taken for a clock, and how fast it is.
 *
 * No rate is taken from a table: it is measured against CLOCK_MONOTONIC_RAW,
 * from one pair of readings to another. A pair is good when nothing came in
 * between, so of many the closest is taken.
 *
 * In Rust: hcabench::time::TscTrust
 *          hcabench::time::calibrate_against
 */
#ifndef LISTINGS_TSC_RATE_H
#define LISTINGS_TSC_RATE_H

#include <cpuid.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "rdtsc.h"
#include "timespec.h"

/* 1 if a word stands in a file of the kernel's clock sources, 0 if not, -1 if
 * the file cannot be read. */
static inline int clock_source_says(const char *file, const char *word)
{
	char path[128], line[256] = "", *rest = line, *next;
	FILE *stream;
	bool read;

	snprintf(path, sizeof(path),
		 "/sys/devices/system/clocksource/clocksource0/%s", file);
	stream = fopen(path, "r");
	if (!stream)
		return -1;
	read = fgets(line, sizeof(line), stream);
	fclose(stream);
	if (!read)
		return -1;
	while ((next = strsep(&rest, " \n")))
		if (!strcmp(next, word))
			return 1;
	return 0;
}

/*
 * "invariant": the processor says that it counts at one rate in all states
 * (CPUID 8000_0007H, EDX bit 8) and the kernel has not struck it off its list,
 * or has no list to be read. "clock-source": only the kernel trusts it. "none":
 * nobody does.
 */
static inline const char *tsc_trust(void)
{
	unsigned int eax, ebx, ecx, edx;

	if (__get_cpuid(0x80000007, &eax, &ebx, &ecx, &edx) &&
	    (edx & (1u << 8)) &&
	    clock_source_says("available_clocksource", "tsc") != 0)
		return "invariant";
	if (clock_source_says("current_clocksource", "tsc") > 0)
		return "clock-source";
	return "none";
}

/* The same moment on both clocks. */
struct tsc_pair {
	uint64_t cycles;
	uint64_t ns;
};

static inline struct tsc_pair read_tsc_pair(void)
{
	uint64_t before, cycles, after, closest = UINT64_MAX;
	struct tsc_pair pair = { 0 };
	int i;

	for (i = 0; i < 1000; i++) {
		before = clock_ns(CLOCK_MONOTONIC_RAW);
		cycles = rdtsc();
		after = clock_ns(CLOCK_MONOTONIC_RAW);
		if (after - before < closest) {
			closest = after - before;
			pair.cycles = cycles;
			pair.ns = before + closest / 2;
		}
	}
	return pair;
}

/* Cycles per second, measured for so long. */
static inline double tsc_hertz(uint64_t for_ns)
{
	struct timespec length = ns_to_timespec(for_ns);
	struct tsc_pair from, to;

	from = read_tsc_pair();
	clock_nanosleep(CLOCK_MONOTONIC, 0, &length, NULL);
	to = read_tsc_pair();
	return (double)(to.cycles - from.cycles) * 1e9 /
	       (double)(to.ns - from.ns);
}

#endif
