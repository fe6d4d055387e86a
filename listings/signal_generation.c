/*
 * A signal of a fixed rate, and what becomes of the steps it comes too late
 * for.
 *
 * Before each sample it waits for the next step. The wait tells how many steps
 * have gone by: one if all is well, more if the work between two waits took
 * longer than a period. Steps that were missed are not made up for; they are
 * left out of the numbering, so a gap in the numbers downstream can be told
 * from a message that was lost on the way. Either way the rate holds.
 *
 *     signal_generation --wait timerfd|rdtscp [--rate HZ] [--duration MS]
 *                       [--stall MS]
 *
 * --stall keeps the work busy for so long, once, in the middle.
 *
 * In Rust: hcabench::pacing::Pacing
 *          hcabench::pacing::ConstantRate
 */
#define _GNU_SOURCE
#include <getopt.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>

#include "options.h"
#include "timerfd_wait.h"
#include "timespec.h"
#ifdef __x86_64__
#include "rdtscp_wait.h"
#include "tsc_rate.h"
#endif

struct sample {
	uint64_t time;
	uint64_t number;
};

struct signal {
	uint64_t period_ns;
	uint64_t periods;
	uint64_t stall_ns;
	struct sample *samples;
	/* Results. */
	uint64_t taken;
	uint64_t missed;
	uint64_t elapsed_ns;
	uint64_t stalled_ns;
	uint64_t stall_gap_ns;
	uint64_t stall_missed;
};

static void die(const char *operation)
{
	perror(operation);
	exit(1);
}

/* For whoever waits for it. */
static void begins(void)
{
	printf("generating=1\n");
	fflush(stdout);
}

static uint64_t wait_by_timerfd(void *wait)
{
	uint64_t steps = timerfd_wait(wait);

	if (!steps)
		die("reading the timer");
	return steps;
}

/* Keeps the CPU busy; returns for how long it really was. */
static uint64_t stall(uint64_t ns)
{
	uint64_t start = now_ns(), now;

	do
		now = now_ns();
	while (now - start < ns);
	return now - start;
}

static inline __attribute__((always_inline))
void generate(struct signal *signal, uint64_t (*wait)(void *), void *state,
	      uint64_t start)
{
	uint64_t number = 0, steps;
	bool stalled = false, was_stalled = false;
	struct sample *sample;

	do {
		steps = wait(state);
		number += steps;
		signal->missed += steps - 1;
		sample = &signal->samples[signal->taken++];
		sample->time = now_ns();
		sample->number = number;

		if (was_stalled) {
			signal->stall_gap_ns = sample->time - sample[-1].time;
			signal->stall_missed = steps - 1;
			was_stalled = false;
		}
		if (signal->stall_ns && !stalled &&
		    number >= signal->periods / 2) {
			signal->stalled_ns = stall(signal->stall_ns);
			stalled = was_stalled = true;
		}
	} while (number < signal->periods || was_stalled);
	signal->elapsed_ns = sample->time - start;
}

static void generate_by_timerfd(struct signal *signal)
{
	struct timerfd_wait wait;
	uint64_t start;

	begins();
	/* Before the timer is set: a step may be over before that returns. */
	start = now_ns();
	if (timerfd_wait_start(&wait, signal->period_ns))
		die("timerfd");
	generate(signal, wait_by_timerfd, &wait, start);
	close(wait.fd);
}

#ifdef __x86_64__
static uint64_t wait_by_rdtscp(void *wait)
{
	return rdtscp_wait(wait);
}

static void generate_by_rdtscp(struct signal *signal)
{
	struct rdtscp_wait wait;
	uint64_t start;
	double hertz;

	if (!has_rdtscp()) {
		fprintf(stderr, "this processor has no rdtscp: use --wait timerfd\n");
		exit(1);
	}
	if (!strcmp(tsc_trust(), "none"))
		fprintf(stderr, "warning: neither processor nor kernel trusts the TSC: steps may be of any length\n");
	hertz = tsc_hertz(200 * 1000 * 1000);
	printf("tsc_trust=%s\ntsc_hertz=%.0f\n", tsc_trust(), hertz);
	begins();
	start = now_ns();
	rdtscp_wait_start(&wait, signal->period_ns, hertz);
	generate(signal, wait_by_rdtscp, &wait, start);
}
#else
static void generate_by_rdtscp(struct signal *signal)
{
	(void)signal;
	fprintf(stderr, "--wait rdtscp exists on x86-64 only: use timerfd\n");
	exit(2);
}
#endif

int main(int argc, char *argv[])
{
	static const struct option options[] = {
		{ "wait", required_argument, NULL, 'w' },
		{ "rate", required_argument, NULL, 'r' },
		{ "duration", required_argument, NULL, 'd' },
		{ "stall", required_argument, NULL, 's' },
		{ 0 },
	};
	uint64_t rate = 1000, duration = 1000, stall_ms = 0, i, length;
	struct signal signal = { 0 };
	const char *by = NULL;
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case 'w':
			by = optarg;
			break;
		case 'r':
			rate = number_of("--rate", optarg, 1, 1000000);
			break;
		case 'd':
			duration = number_of("--duration", optarg, 1, 60000);
			break;
		case 's':
			stall_ms = number_of("--stall", optarg, 1, 10000);
			break;
		default:
			return 2;
		}
	}
	if (optind < argc || !by ||
	    (strcmp(by, "timerfd") && strcmp(by, "rdtscp"))) {
		fprintf(stderr,
			"usage: %s --wait timerfd|rdtscp [--rate HZ] [--duration MS] [--stall MS]\n",
			argv[0]);
		return 2;
	}

	signal.period_ns = NS_PER_SECOND / rate;
	signal.periods = duration * rate / 1000;
	signal.stall_ns = stall_ms * 1000000;
	/* No more samples than steps, and one each for the ends. */
	length = (signal.periods + 2) * sizeof(*signal.samples);
	signal.samples = mmap(NULL, length, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (signal.samples == MAP_FAILED)
		die("mapping memory for the samples");

	printf("wait=%s\n", by);
	printf("period_ns=%llu\n", (unsigned long long)signal.period_ns);
	if (!strcmp(by, "timerfd"))
		generate_by_timerfd(&signal);
	else
		generate_by_rdtscp(&signal);

	for (i = 1; i < signal.taken; i++) {
		if (signal.samples[i].number <= signal.samples[i - 1].number ||
		    signal.samples[i].time < signal.samples[i - 1].time) {
			fprintf(stderr, "sample %llu is out of order\n",
				(unsigned long long)i);
			return 1;
		}
	}
	printf("taken=%llu\n", (unsigned long long)signal.taken);
	printf("missed=%llu\n", (unsigned long long)signal.missed);
	printf("last_number=%llu\n",
	       (unsigned long long)signal.samples[signal.taken - 1].number);
	printf("elapsed_ns=%llu\n", (unsigned long long)signal.elapsed_ns);
	if (stall_ms) {
		printf("stall_ns=%llu\n",
		       (unsigned long long)signal.stalled_ns);
		printf("stall_gap_ns=%llu\n",
		       (unsigned long long)signal.stall_gap_ns);
		printf("stall_missed=%llu\n",
		       (unsigned long long)signal.stall_missed);
	}
	return 0;
}
