/*
 * The CPU of the thread that calls.
 *
 * In Rust: hcabench::host::pinning::pin_current_thread
 */
#ifndef LISTINGS_PINNING_H
#define LISTINGS_PINNING_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

/* Returns 0, or -1 when it has said why not. */
static inline int pin_to(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set)) {
		fprintf(stderr, "CPU %d cannot be used: %s\n", cpu,
			strerror(errno));
		return -1;
	}
	return 0;
}

#endif
