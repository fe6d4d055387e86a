/*
 * Memory in the pages that a user asks for, or an end that says why not.
 *
 * In Rust: hcabench::buffer::PageSize
 */
#ifndef LISTINGS_ASKED_PAGES_H
#define LISTINGS_ASKED_PAGES_H

#include <stdlib.h>
#include <string.h>

#include "pages.h"

/* Whether it is huge ones. */
static inline bool pages_asked(const char *option, const char *text)
{
	if (strcmp(text, "2m") && strcmp(text, "4k")) {
		fprintf(stderr, "%s: '%s' is not allowed, must be 2m or 4k\n",
			option, text);
		exit(2);
	}
	return !strcmp(text, "2m");
}

static inline void *map_asked(size_t length, bool huge)
{
	void *memory = map_pages(length, huge);
	enum pages got;

	if (!memory) {
		perror("mapping memory");
		exit(1);
	}
	got = pages_of(memory, length);
	if (huge ? got < TRANSPARENT_HUGE : got != SMALL) {
		fprintf(stderr, "asked for %s pages, got %s ones\n",
			huge ? "huge" : "small", page_name(got));
		exit(1);
	}
	return memory;
}

#endif
