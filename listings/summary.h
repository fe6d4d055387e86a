/*
 * Percentiles of samples, all of them kept.
 *
 * Samples are signed: a difference of two readings can be negative, where a
 * clock was set or two CPUs disagree, and must show as such.
 *
 * In Rust: hcabench::stats::percentile_of_sorted
 */
#ifndef LISTINGS_SUMMARY_H
#define LISTINGS_SUMMARY_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

static inline int compare_samples(const void *a, const void *b)
{
	int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;

	return (left > right) - (left < right);
}

static inline void sort_samples(int64_t *samples, size_t count)
{
	qsort(samples, count, sizeof(*samples), compare_samples);
}

/* Linear between the closest ranks; there is at least one sample. */
static inline double percentile(const int64_t *sorted, size_t count,
				double percent)
{
	double rank = percent / 100 * (double)(count - 1);
	size_t below = (size_t)rank;
	double part = rank - (double)below;

	if (below + 1 >= count)
		return (double)sorted[count - 1];
	return (double)sorted[below] * (1 - part) +
	       (double)sorted[below + 1] * part;
}

#endif
