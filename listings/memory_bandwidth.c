/*
 * How much memory can be read and stored to by some CPUs.
 *
 * Each has a thread with buffers of its own, and does one of these to all of
 * them, again and again:
 *
 *     read    sum += a[i]
 *     copy    c[i] = a[i]
 *     triad   c[i] = a[i] + 3 * b[i]
 *
 * Stores past the caches have an instruction of their own. Others let most
 * processors read a line before it is stored to; that is not counted, nor is
 * it by hcabench: what counts are the bytes of a, b and c.
 *
 * How wide a load and a store is, the compiler's flags tell: -msse2, -mavx2
 * and -mavx512f make three programs.
 *
 *     memory_bandwidth-SET --kind read|copy|triad
 *                          [--store regular|non-temporal] [--size MIB]
 *                          [--pages 2m|4k] [--cpus CPU,CPU...]
 *                          [--window MS] [--windows N]
 *
 * --size is that of each buffer. mb_s: 10^6 bytes a second, the sum of all
 * threads, median of the windows; mean_mb_s: over all of them.
 *
 * In Rust: hcabench::generators::Generators
 *          hcabench::generators::accesses::Accesses
 */
#define _GNU_SOURCE
#include <getopt.h>
#include <immintrin.h>
#include <pthread.h>
#include <string.h>

#include "asked_pages.h"
#include "options.h"
#include "pinning.h"
#include "summary.h"
#include "timespec.h"

#if defined(__AVX512F__)
#define VECTOR(name) _mm512_##name
#define SET "avx512f"
typedef __m512d vector;
#elif defined(__AVX2__)
#define VECTOR(name) _mm256_##name
#define SET "avx2"
typedef __m256d vector;
#else
#define VECTOR(name) _mm_##name
#define SET "sse2"
typedef __m128d vector;
#endif

/* Of each buffer, between two looks at the clock. */
#define BLOCK ((size_t)1 << 20)
#define IN_BLOCK (BLOCK / sizeof(double))
#define IN_VECTOR (sizeof(vector) / sizeof(double))
#define MOST_THREADS 1024
/* What a and b hold, and b's factor. */
#define A 1.0
#define B 2.0
#define FACTOR 3.0

enum kind { READ, COPY, TRIAD };

struct settings {
	enum kind kind;
	bool non_temporal;
	bool huge;
	size_t size;
	uint64_t window_ns;
	uint64_t windows;
};

struct worker {
	const struct settings *settings;
	pthread_barrier_t *all_ready;
	pthread_t thread;
	int cpu;
	double *a, *b, *c;
	/* Of a; what must come of it is known. */
	double sum;
	enum pages pages;
	/* Bytes a second, of each window. */
	int64_t *rates;
	uint64_t bytes;
	uint64_t ns;
	bool failed;
};

/* Several sums, as an addition waits for the one before it. */
static double read_block(const double *a)
{
	vector first = VECTOR(setzero_pd)(), second = first, third = first,
	       fourth = first;
	double parts[IN_VECTOR], sum = 0;
	size_t i;

	for (i = 0; i < IN_BLOCK; i += 4 * IN_VECTOR) {
		first = VECTOR(add_pd)(first, VECTOR(load_pd)(a + i));
		second = VECTOR(add_pd)(second,
					VECTOR(load_pd)(a + i + IN_VECTOR));
		third = VECTOR(add_pd)(third,
				       VECTOR(load_pd)(a + i + 2 * IN_VECTOR));
		fourth = VECTOR(add_pd)(fourth,
					VECTOR(load_pd)(a + i + 3 * IN_VECTOR));
	}
	first = VECTOR(add_pd)(VECTOR(add_pd)(first, second),
			       VECTOR(add_pd)(third, fourth));
	VECTOR(storeu_pd)(parts, first);
	for (i = 0; i < IN_VECTOR; i++)
		sum += parts[i];
	return sum;
}

static inline __attribute__((always_inline))
void copy_block(double *c, const double *a, bool non_temporal)
{
	vector value;
	size_t i;

	for (i = 0; i < IN_BLOCK; i += IN_VECTOR) {
		value = VECTOR(load_pd)(a + i);
		if (non_temporal)
			VECTOR(stream_pd)(c + i, value);
		else
			VECTOR(store_pd)(c + i, value);
	}
}

static inline __attribute__((always_inline))
void triad_block(double *c, const double *a, const double *b, bool non_temporal)
{
	const vector factor = VECTOR(set1_pd)(FACTOR);
	vector value;
	size_t i;

	for (i = 0; i < IN_BLOCK; i += IN_VECTOR) {
		value = VECTOR(mul_pd)(factor, VECTOR(load_pd)(b + i));
		value = VECTOR(add_pd)(VECTOR(load_pd)(a + i), value);
		if (non_temporal)
			VECTOR(stream_pd)(c + i, value);
		else
			VECTOR(store_pd)(c + i, value);
	}
}

/* One block of all buffers; each kind is a loop of its own. */
static void do_block(struct worker *worker, size_t at)
{
	const bool non_temporal = worker->settings->non_temporal;
	const double *a = worker->a + at;
	double *c = worker->c ? worker->c + at : NULL;
	const double *b = worker->b ? worker->b + at : NULL;

	switch (worker->settings->kind) {
	case READ:
		worker->sum += read_block(a);
		break;
	case COPY:
		if (non_temporal)
			copy_block(c, a, true);
		else
			copy_block(c, a, false);
		break;
	case TRIAD:
		if (non_temporal)
			triad_block(c, a, b, true);
		else
			triad_block(c, a, b, false);
		break;
	}
	if (non_temporal)
		_mm_sfence();
}

static double *new_buffer(struct worker *worker, double value)
{
	const struct settings *settings = worker->settings;
	double *buffer = map_asked(settings->size, settings->huge);
	enum pages pages;
	size_t i;

	for (i = 0; i < settings->size / sizeof(double); i++)
		buffer[i] = value;
	pages = pages_of(buffer, settings->size);
	if (pages < worker->pages)
		worker->pages = pages;
	return buffer;
}

/* Whether everything was read, and all of c is what it must be. */
static bool is_right(const struct worker *worker, uint64_t blocks)
{
	const struct settings *settings = worker->settings;
	const double expected = settings->kind == COPY ? A : A + FACTOR * B;
	size_t i;

	if (settings->kind == READ)
		return worker->sum == A * (double)(blocks * IN_BLOCK);
	for (i = 0; i < settings->size / sizeof(double); i++)
		if (worker->c[i] != expected)
			return false;
	return true;
}

static void measure(struct worker *worker)
{
	const struct settings *settings = worker->settings;
	const size_t length = settings->size / sizeof(double);
	const uint64_t per_block = BLOCK * ((uint64_t)settings->kind + 1);
	uint64_t blocks = 0, in_window, i, start, now, begun;
	size_t at;

	/* Does not count. */
	for (at = 0; at < length; at += IN_BLOCK, blocks++)
		do_block(worker, at);
	pthread_barrier_wait(worker->all_ready);
	begun = now = now_ns();
	for (i = 0, at = 0; i < settings->windows; i++) {
		start = now;
		for (in_window = 0; now - start < settings->window_ns;
		     in_window++) {
			do_block(worker, at);
			at = (at + IN_BLOCK) % length;
			now = now_ns();
		}
		worker->rates[i] = (int64_t)((double)(in_window * per_block) *
					     1e9 / (double)(now - start));
		worker->bytes += in_window * per_block;
		blocks += in_window;
	}
	worker->ns = now - begun;
	worker->failed = !is_right(worker, blocks);
	if (worker->failed)
		fprintf(stderr, "what was read or stored on CPU %d is wrong\n",
			worker->cpu);
}

static void *work(void *argument)
{
	/* The kernel tells of neighbouring memory together: one at a time. */
	static pthread_mutex_t mapping = PTHREAD_MUTEX_INITIALIZER;
	struct worker *worker = argument;
	const enum kind kind = worker->settings->kind;

	/* Those that would wait for it would wait for ever. */
	if (worker->cpu >= 0 && pin_to(worker->cpu))
		exit(1);
	pthread_mutex_lock(&mapping);
	worker->a = new_buffer(worker, A);
	if (kind == TRIAD)
		worker->b = new_buffer(worker, B);
	if (kind != READ)
		worker->c = new_buffer(worker, 0);
	pthread_mutex_unlock(&mapping);
	measure(worker);
	return NULL;
}

static enum kind kind_of(const char *text)
{
	static const char *const kinds[] = { "read", "copy", "triad" };
	size_t i;

	for (i = 0; i < 3; i++)
		if (!strcmp(text, kinds[i]))
			return (enum kind)i;
	fprintf(stderr, "--kind: '%s' is not allowed, must be read, copy or triad\n",
		text);
	exit(2);
}

static bool is_non_temporal(const char *text)
{
	if (strcmp(text, "regular") && strcmp(text, "non-temporal")) {
		fprintf(stderr,
			"--store: '%s' is not allowed, must be regular or non-temporal\n",
			text);
		exit(2);
	}
	return !strcmp(text, "non-temporal");
}

static size_t cpus_of(char *text, int *cpus)
{
	size_t count = 0;
	char *cpu;

	for (cpu = strtok(text, ","); cpu && count < MOST_THREADS;
	     cpu = strtok(NULL, ","))
		cpus[count++] = (int)number_of("--cpus", cpu, 0, 1023);
	return count;
}

static void report(const struct worker *workers, size_t threads)
{
	const uint64_t windows = workers->settings->windows;
	int64_t *rates = calloc(windows, sizeof(*rates));
	enum pages pages = HUGE;
	double mean = 0;
	uint64_t i;
	size_t t;

	if (!rates)
		exit(1);
	for (t = 0; t < threads; t++) {
		for (i = 0; i < windows; i++)
			rates[i] += workers[t].rates[i];
		mean += (double)workers[t].bytes * 1e3 / (double)workers[t].ns;
		if (workers[t].pages < pages)
			pages = workers[t].pages;
	}
	sort_samples(rates, windows);
	printf("set=%s\nthreads=%zu\npages=%s\n", SET, threads,
	       page_name(pages));
	printf("mb_s=%.1f\n", percentile(rates, windows, 50) / 1e6);
	printf("mean_mb_s=%.1f\n", mean);
}

static int usage(const char *name)
{
	fprintf(stderr,
		"usage: %s --kind read|copy|triad [--store regular|non-temporal] [--size MIB] [--pages 2m|4k] [--cpus CPU,CPU...] [--window MS] [--windows N]\n",
		name);
	return 2;
}

int main(int argc, char *argv[])
{
	static const struct option options[] = {
		{ "kind", required_argument, NULL, 'k' },
		{ "store", required_argument, NULL, 't' },
		{ "size", required_argument, NULL, 's' },
		{ "pages", required_argument, NULL, 'p' },
		{ "cpus", required_argument, NULL, 'c' },
		{ "window", required_argument, NULL, 'w' },
		{ "windows", required_argument, NULL, 'n' },
		{ 0 },
	};
	struct settings settings = {
		.huge = true,
		.size = (size_t)256 << 20,
		.window_ns = 10000000,
		.windows = 50,
	};
	static struct worker workers[MOST_THREADS];
	int cpus[MOST_THREADS] = { -1 }, option;
	pthread_barrier_t all_ready;
	size_t threads = 1, t;
	bool known = false;

	if (!__builtin_cpu_supports(SET)) {
		fprintf(stderr, "this processor has no " SET "\n");
		return 2;
	}
	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case 'k':
			settings.kind = kind_of(optarg);
			known = true;
			break;
		case 't':
			settings.non_temporal = is_non_temporal(optarg);
			break;
		case 's':
			settings.size = number_of("--size", optarg, 1, 1 << 20)
					<< 20;
			break;
		case 'p':
			settings.huge = pages_asked("--pages", optarg);
			break;
		case 'c':
			threads = cpus_of(optarg, cpus);
			break;
		case 'w':
			settings.window_ns =
				number_of("--window", optarg, 1, 60000) *
				1000000;
			break;
		case 'n':
			settings.windows =
				number_of("--windows", optarg, 1, 100000);
			break;
		default:
			return 2;
		}
	}
	if (optind < argc || !known || !threads)
		return usage(argv[0]);

	pthread_barrier_init(&all_ready, NULL, (unsigned int)threads);
	for (t = 0; t < threads; t++) {
		workers[t] = (struct worker) {
			.settings = &settings,
			.all_ready = &all_ready,
			.cpu = cpus[t],
			.pages = HUGE,
			.rates = calloc(settings.windows, sizeof(int64_t)),
		};
		if (!workers[t].rates ||
		    pthread_create(&workers[t].thread, NULL, work, &workers[t])) {
			fprintf(stderr, "a thread cannot be started\n");
			return 1;
		}
	}
	for (t = 0; t < threads; t++)
		pthread_join(workers[t].thread, NULL);
	for (t = 0; t < threads; t++)
		if (workers[t].failed)
			return 1;
	report(workers, threads);
	return 0;
}
