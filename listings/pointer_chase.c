/*
 * What a load takes that waits for the one before it.
 *
 * Each line of the memory holds the address of another one, and all of them
 * are one random cycle. Nothing can be read ahead, as nobody knows an address
 * before the load that brings it.
 *
 *     pointer_chase [--size MIB] [--pages 2m|4k] [--cpu CPU]
 *                   [--window MS] [--windows N]
 *
 * cycle: steps until the first line comes again, which are as many as there
 * are lines. Then window after window is timed: ns is the median of their
 * steps, mean_ns that of all steps.
 *
 * In Rust: hcabench::generators::Chase
 */
#define _GNU_SOURCE
#include <getopt.h>

#include "asked_pages.h"
#include "options.h"
#include "pinning.h"
#include "summary.h"
#include "timespec.h"

/* Between two looks at the clock. */
#define STEPS 4096

struct line {
	struct line *next;
	char rest[56];
};

/* A random number from 0 to below a limit; the state is any but 0. */
static uint64_t random_below(uint64_t *state, uint64_t limit)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state % limit;
}

/*
 * Every line leads to itself at first. Each in turn swaps its successor with
 * that of a line before it, which joins their cycles to one (Sattolo).
 */
static void join(struct line *lines, uint64_t count)
{
	uint64_t state = 88172645463325252u, i;
	struct line *other, *next;

	for (i = 0; i < count; i++)
		lines[i].next = &lines[i];
	for (i = count - 1; i > 0; i--) {
		other = &lines[random_below(&state, i)];
		next = other->next;
		other->next = lines[i].next;
		lines[i].next = next;
	}
}

static struct line *walk(struct line *at, uint64_t steps)
{
	uint64_t i;

	for (i = 0; i < steps; i += 16) {
		at = at->next->next->next->next;
		at = at->next->next->next->next;
		at = at->next->next->next->next;
		at = at->next->next->next->next;
	}
	return at;
}

int main(int argc, char *argv[])
{
	static const struct option options[] = {
		{ "size", required_argument, NULL, 's' },
		{ "pages", required_argument, NULL, 'p' },
		{ "cpu", required_argument, NULL, 'c' },
		{ "window", required_argument, NULL, 'w' },
		{ "windows", required_argument, NULL, 'n' },
		{ 0 },
	};
	uint64_t size = 256, window = 10, windows = 50, count, i, steps, all = 0;
	uint64_t start, now, begun;
	struct line *lines, *at;
	bool huge = true;
	int64_t *picoseconds;
	int option, cpu = -1;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case 's':
			size = number_of("--size", optarg, 1, 1 << 20);
			break;
		case 'p':
			huge = pages_asked("--pages", optarg);
			break;
		case 'c':
			cpu = (int)number_of("--cpu", optarg, 0, 1023);
			break;
		case 'w':
			window = number_of("--window", optarg, 1, 60000);
			break;
		case 'n':
			windows = number_of("--windows", optarg, 1, 100000);
			break;
		default:
			return 2;
		}
	}
	if (optind < argc) {
		fprintf(stderr,
			"usage: %s [--size MIB] [--pages 2m|4k] [--cpu CPU] [--window MS] [--windows N]\n",
			argv[0]);
		return 2;
	}
	if (cpu >= 0 && pin_to(cpu))
		return 1;
	size <<= 20;
	count = size / sizeof(*lines);
	lines = map_asked(size, huge);
	picoseconds = calloc(windows, sizeof(*picoseconds));
	if (!picoseconds)
		return 1;
	join(lines, count);

	for (i = 1, at = lines->next; at != lines; at = at->next)
		i++;
	printf("pages=%s\n", page_name(pages_of(lines, size)));
	printf("lines=%llu\ncycle=%llu\n", (unsigned long long)count,
	       (unsigned long long)i);
	/* For whoever waits for it. */
	puts("chasing=1");
	fflush(stdout);

	begun = now = now_ns();
	for (i = 0; i < windows; i++) {
		start = now;
		for (steps = 0; now - start < window * 1000000; steps += STEPS) {
			at = walk(at, STEPS);
			/* It is used, so it is walked. */
			__asm__ volatile("" : : "r"(at) : "memory");
			now = now_ns();
		}
		picoseconds[i] = (int64_t)((now - start) * 1000 / steps);
		all += steps;
	}
	sort_samples(picoseconds, windows);
	printf("steps=%llu\n", (unsigned long long)all);
	printf("ns=%.3f\n", percentile(picoseconds, windows, 50) / 1000);
	printf("mean_ns=%.3f\n", (double)(now - begun) / (double)all);
	return 0;
}
