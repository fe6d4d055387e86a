/*
 * The loop that watches a clock for jumps, as bare as it gets: read, subtract,
 * store, again. Its median iteration is the measure of any other such loop.
 *
 *     clock_loop CLOCK ITERATIONS
 *
 * CLOCK is realtime, monotonic, monotonic-raw, rdtsc (lfence; rdtsc), rdtscp
 * (cpuid; rdtscp), rdtscp-lfence (rdtscp; lfence), or all for one line of JSON
 * each. In a virtual machine cpuid makes an exit to the hypervisor.
 *
 * In Rust: hcabench::time::Clock
 */
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>

#include "options.h"
#include "rdtsc.h"
#include "rdtscp.h"
#include "summary.h"
#include "timespec.h"
#include "tsc_rate.h"

static inline __attribute__((always_inline)) uint64_t read_realtime(void)
{
	return clock_ns(CLOCK_REALTIME);
}

static inline __attribute__((always_inline)) uint64_t read_monotonic(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

static inline __attribute__((always_inline)) uint64_t read_monotonic_raw(void)
{
	return clock_ns(CLOCK_MONOTONIC_RAW);
}

/* Nothing crosses cpuid in either direction. */
static inline __attribute__((always_inline)) uint64_t cpuid_rdtscp(void)
{
	uint32_t low, high;

	__asm__ volatile("xorl %%eax, %%eax\n\t"
			 "cpuid\n\t"
			 "rdtscp"
			 : "=a"(low), "=d"(high)
			 :
			 : "rbx", "rcx", "memory");
	return (uint64_t)high << 32 | low;
}

static inline __attribute__((always_inline)) uint64_t rdtscp_lfence(void)
{
	uint32_t low, high;

	__asm__ volatile("rdtscp\n\t"
			 "lfence"
			 : "=a"(low), "=d"(high)
			 :
			 : "rcx", "memory");
	return (uint64_t)high << 32 | low;
}

static inline __attribute__((always_inline))
void watch(uint64_t (*read)(void), int64_t *differences, uint64_t iterations)
{
	uint64_t previous, next, i;

	previous = read();
	for (i = 0; i < iterations; i++) {
		next = read();
		differences[i] = (int64_t)(next - previous);
		previous = next;
	}
}

#define LOOP(name, read)						\
	static void watch_##name(int64_t *differences, uint64_t iterations) \
	{								\
		watch(read, differences, iterations);			\
	}

LOOP(realtime, read_realtime)
LOOP(monotonic, read_monotonic)
LOOP(monotonic_raw, read_monotonic_raw)
LOOP(rdtsc, rdtsc)
LOOP(rdtscp, cpuid_rdtscp)
LOOP(rdtscp_lfence, rdtscp_lfence)

static const struct clock {
	const char *name;
	void (*watch)(int64_t *differences, uint64_t iterations);
	bool in_cycles;
} clocks[] = {
	{ "realtime", watch_realtime, false },
	{ "monotonic", watch_monotonic, false },
	{ "monotonic-raw", watch_monotonic_raw, false },
	{ "rdtsc", watch_rdtsc, true },
	{ "rdtscp", watch_rdtscp, true },
	{ "rdtscp-lfence", watch_rdtscp_lfence, true },
};

/* median and median_ns: of one iteration; unit: that of median. */
static void report(const struct clock *clock, int64_t *differences,
		   uint64_t iterations, double hertz)
{
	double median;

	clock->watch(differences, iterations);
	sort_samples(differences, iterations);
	median = percentile(differences, iterations, 50);
	printf("{\"clock\":\"%s\",\"iterations\":%llu,\"unit\":\"%s\",\"median\":%.1f,\"median_ns\":%.2f,\"min\":%lld}\n",
	       clock->name, (unsigned long long)iterations,
	       clock->in_cycles ? "cycles" : "ns", median,
	       clock->in_cycles ? median / hertz * 1e9 : median,
	       (long long)differences[0]);
}

int main(int argc, char *argv[])
{
	uint64_t iterations;
	int64_t *differences;
	bool found = false;
	double hertz;
	size_t i;

	if (argc != 3) {
		fprintf(stderr,
			"usage: %s realtime|monotonic|monotonic-raw|rdtsc|rdtscp|rdtscp-lfence|all ITERATIONS\n",
			argv[0]);
		return 2;
	}
	iterations = number_of("ITERATIONS", argv[2], 1, 100000000);
	if (!has_rdtscp()) {
		fprintf(stderr, "this processor has no rdtscp\n");
		return 1;
	}
	differences = mmap(NULL, iterations * sizeof(*differences),
			   PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (differences == MAP_FAILED) {
		perror("mapping memory for the differences");
		return 1;
	}

	hertz = tsc_hertz(200 * 1000 * 1000);
	for (i = 0; i < sizeof(clocks) / sizeof(clocks[0]); i++) {
		if (strcmp(argv[1], "all") && strcmp(argv[1], clocks[i].name))
			continue;
		found = true;
		report(&clocks[i], differences, iterations, hertz);
	}
	if (!found) {
		fprintf(stderr, "CLOCK: '%s' is not allowed (see %s without arguments)\n",
			argv[1], argv[0]);
		return 2;
	}
	return 0;
}
