/*
 * What a cache line takes from one CPU to another: half of a round trip.
 *
 * A CPU stores a number to a line and waits until the other CPU, which waits
 * for it, has stored the same to another line. Nothing but loads and stores.
 *
 *     cache_line --ask CPU --answer CPU [--batches N] [--count-looks]
 *
 * A batch is 100 round trips, with the clock read before and after. ns is the
 * median of half a round trip over all batches but the first tenth, least_ns
 * that of the fastest batch, mean_ns the mean. Looks follow each other as fast
 * as the processor can make them, or are counted, as a program has to that is
 * to see anything else.
 *
 * In Rust: hcabench::bench::cores::loops
 */
#define _GNU_SOURCE
#include <getopt.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "options.h"
#include "pinning.h"
#include "summary.h"
#include "timespec.h"

#define ROUND_TRIPS 100

/* Each alone in two lines, of which a prefetcher may bring both. */
static struct {
	_Alignas(128) atomic_uint_fast64_t there;
	_Alignas(128) atomic_uint_fast64_t back;
	_Alignas(128) char rest;
} lines;

static uint64_t batches = 10000;
static int asking_cpu = -1, answering_cpu = -1;

static bool counts_looks;

static inline void wait_for(atomic_uint_fast64_t *word, uint64_t number,
			    bool counts)
{
	uint32_t looks = 0;

	while (atomic_load_explicit(word, memory_order_acquire) != number) {
		if (counts && ++looks % 256 == 0 && !batches)
			return;
	}
}

static inline void answer_all(bool counts)
{
	uint64_t number, last = batches * ROUND_TRIPS;

	for (number = 1; number <= last; number++) {
		wait_for(&lines.there, number, counts);
		atomic_store_explicit(&lines.back, number,
				      memory_order_release);
	}
}

static void *answer(void *none)
{
	if (pin_to(answering_cpu))
		exit(1);
	if (counts_looks)
		answer_all(true);
	else
		answer_all(false);
	return none;
}

static inline void ask_all(int64_t *picoseconds, bool counts)
{
	uint64_t number = 0, batch, before;
	int trip;

	for (batch = 0; batch < batches; batch++) {
		before = now_ns();
		for (trip = 0; trip < ROUND_TRIPS; trip++) {
			number++;
			atomic_store_explicit(&lines.there, number,
					      memory_order_release);
			wait_for(&lines.back, number, counts);
		}
		picoseconds[batch] = (int64_t)((now_ns() - before) * 1000 /
					       ROUND_TRIPS / 2);
	}
}

int main(int argc, char *argv[])
{
	static const struct option options[] = {
		{ "ask", required_argument, NULL, 'a' },
		{ "answer", required_argument, NULL, 'b' },
		{ "batches", required_argument, NULL, 'n' },
		{ "count-looks", no_argument, NULL, 'l' },
		{ 0 },
	};
	int64_t *picoseconds, *counted;
	uint64_t count, i;
	double sum = 0;
	pthread_t other;
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case 'a':
			asking_cpu = (int)number_of("--ask", optarg, 0, 1023);
			break;
		case 'b':
			answering_cpu = (int)number_of("--answer", optarg, 0,
						       1023);
			break;
		case 'n':
			batches = number_of("--batches", optarg, 10, 10000000);
			break;
		case 'l':
			counts_looks = true;
			break;
		default:
			return 2;
		}
	}
	if (optind < argc || asking_cpu < 0 || asking_cpu == answering_cpu ||
	    answering_cpu < 0) {
		fprintf(stderr,
			"usage: %s --ask CPU --answer CPU [--batches N] [--count-looks], two CPUs\n",
			argv[0]);
		return 2;
	}
	picoseconds = calloc(batches, sizeof(*picoseconds));
	if (!picoseconds || pin_to(asking_cpu))
		return 1;
	if (pthread_create(&other, NULL, answer, NULL)) {
		fputs("a thread cannot be started\n", stderr);
		return 1;
	}
	if (counts_looks)
		ask_all(picoseconds, true);
	else
		ask_all(picoseconds, false);
	pthread_join(other, NULL);

	counted = picoseconds + batches / 10;
	count = batches - batches / 10;
	for (i = 0; i < count; i++)
		sum += (double)counted[i];
	sort_samples(counted, count);
	printf("batches=%llu\nns=%.3f\nleast_ns=%.3f\nmean_ns=%.3f\n",
	       (unsigned long long)count, percentile(counted, count, 50) / 1000,
	       (double)counted[0] / 1000, sum / (double)count / 1000);
	return 0;
}
