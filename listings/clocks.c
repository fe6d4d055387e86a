/*
 * The clocks against each other: rdtsc, rdtscp and clock_gettime().
 *
 * Says whether anybody trusts the time stamp counter, measures its rate, then
 * measures an interval by all three at once, and counts readings that go
 * backwards, both instructions in turn on one CPU.
 *
 *     clocks [--interval MS] [--readings N]
 *
 * In Rust: hcabench::time::Counter
 *          hcabench::time::Posix
 */
#define _GNU_SOURCE
#include <getopt.h>
#include <sched.h>

#include "options.h"
#include "rdtsc.h"
#include "rdtscp.h"
#include "timespec.h"
#include "tsc_rate.h"

/* The same moment, three times, with nothing in between. */
struct moment {
	uint64_t rdtsc;
	uint64_t rdtscp;
	uint64_t raw_ns;
};

static struct moment read_moment(void)
{
	uint64_t first, second, last, ns, closest = UINT64_MAX;
	struct moment moment = { 0 };
	int i;

	for (i = 0; i < 1000; i++) {
		first = rdtsc();
		ns = clock_ns(CLOCK_MONOTONIC_RAW);
		second = rdtscp();
		last = rdtsc();
		if (last - first < closest) {
			closest = last - first;
			moment.rdtsc = first;
			moment.rdtscp = second;
			moment.raw_ns = ns;
		}
	}
	return moment;
}

static uint64_t backward_steps(uint64_t readings)
{
	uint64_t last = 0, next, backward = 0, i;

	for (i = 0; i < readings; i++) {
		next = i & 1 ? rdtscp() : rdtsc();
		backward += next < last;
		last = next;
	}
	return backward;
}

int main(int argc, char *argv[])
{
	static const struct option options[] = {
		{ "interval", required_argument, NULL, 'i' },
		{ "readings", required_argument, NULL, 'r' },
		{ 0 },
	};
	uint64_t interval = 500, readings = 1000000;
	struct moment from, to;
	struct timespec length;
	cpu_set_t cpu;
	double hertz;
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case 'i':
			interval = number_of("--interval", optarg, 10, 60000);
			break;
		case 'r':
			readings = number_of("--readings", optarg, 2, 1000000000);
			break;
		default:
			return 2;
		}
	}
	if (optind < argc) {
		fprintf(stderr, "usage: %s [--interval MS] [--readings N]\n",
			argv[0]);
		return 2;
	}
	if (!has_rdtscp()) {
		fprintf(stderr, "this processor has no rdtscp\n");
		return 1;
	}
	CPU_ZERO(&cpu);
	CPU_SET(sched_getcpu(), &cpu);
	if (sched_setaffinity(0, sizeof(cpu), &cpu)) {
		perror("sched_setaffinity");
		return 1;
	}

	hertz = tsc_hertz(interval * 1000000);
	length = ns_to_timespec(interval * 1000000);
	from = read_moment();
	clock_nanosleep(CLOCK_MONOTONIC, 0, &length, NULL);
	to = read_moment();

	printf("tsc_trust=%s\n", tsc_trust());
	printf("tsc_hertz=%.0f\n", hertz);
	printf("raw_ns=%llu\n", (unsigned long long)(to.raw_ns - from.raw_ns));
	printf("rdtsc_cycles=%llu\n",
	       (unsigned long long)(to.rdtsc - from.rdtsc));
	printf("rdtscp_cycles=%llu\n",
	       (unsigned long long)(to.rdtscp - from.rdtscp));
	printf("rdtsc_ns=%.0f\n", (double)(to.rdtsc - from.rdtsc) / hertz * 1e9);
	printf("rdtscp_ns=%.0f\n",
	       (double)(to.rdtscp - from.rdtscp) / hertz * 1e9);
	printf("readings=%llu\n", (unsigned long long)readings);
	printf("backward_steps=%llu\n",
	       (unsigned long long)backward_steps(readings));
	return 0;
}
