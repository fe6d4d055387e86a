/*
 * Numbers from the command line, or an end with code 2 that says what is
 * allowed.
 *
 * In Rust: hcabench::cli
 */
#ifndef LISTINGS_OPTIONS_H
#define LISTINGS_OPTIONS_H

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static inline uint64_t number_of(const char *option, const char *text,
				 uint64_t min, uint64_t max)
{
	unsigned long long value;
	char *end;

	errno = 0;
	value = strtoull(text, &end, 10);
	if (text[0] < '0' || text[0] > '9' || *end || errno || value < min ||
	    value > max) {
		fprintf(stderr,
			"%s: '%s' is not allowed, must be a whole number from %llu to %llu\n",
			option, text, (unsigned long long)min,
			(unsigned long long)max);
		exit(2);
	}
	return value;
}

#endif
