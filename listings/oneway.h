/*
 * What the parts of oneway have in common.
 *
 * In Rust: hcabench::bench::hca
 */
#ifndef LISTINGS_ONEWAY_H
#define LISTINGS_ONEWAY_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cm_switch.h"
#include "pages.h"
#include "pinning.h"
#include "time_thread.h"

#define CACHE_LINE 64
/* Precedes a UD message in the receive buffer. */
#define GLOBAL_ROUTE_HEADER 40

struct settings {
	enum ibv_qp_type service;
	bool write;
	/* Without immediate data, which iWARP does not have. */
	bool by_order;
	bool inline_data;
	/* t_send, by a thread that rewrites stamps, not t_subm. */
	bool restamp;
	uint32_t size;
	uint32_t burst;
	uint32_t warmup;
	uint64_t pause_ns;
	uint64_t timeout_ms;
	/* -1: no thread of its own, or the first or last CPU there is. */
	int sender_cpu;
	int receiver_cpu;
	int completion_cpu;
	int stamp_cpu;
};

/* Messages of one size, each on cache lines of its own. */
struct payload {
	char *memory;
	size_t length;
	size_t header;
	size_t stride;
	uint32_t slots;
	uint32_t size;
};

static inline char *slot_of(const struct payload *payload, uint32_t index)
{
	size_t header = payload->header ? CACHE_LINE : 0;

	return payload->memory + index * payload->stride + header;
}

/* A queue pair and all it needs. */
struct end {
	struct rdma_cm_id *id;
	struct ibv_pd *domain;
	struct ibv_mr *region;
	struct ibv_cq *send_queue;
	struct ibv_cq *receive_queue;
	struct payload payload;
	/* Of the receive requests: those not yet used, and the next slot. */
	uint32_t receives_posted;
	uint32_t next_slot;
};

struct pair {
	const struct settings *settings;
	struct cm_switch cm;
	struct end source;
	struct end target;
	struct ibv_ah *address;
};

/* Both return 0, or -1 when they have said why not. */
int connect_pair(struct pair *pair);
void destroy_pair(struct pair *pair);
/* Memory in huge pages if there are any, touched and locked, or NULL. */
void *map_locked(size_t length);

static inline enum pages least_pages(enum pages one, enum pages other)
{
	return one < other ? one : other;
}

struct arrival {
	uint64_t stamp;
	uint32_t label;
	uint32_t slot;
	uint32_t bytes;
};

/* One burst: what it is to be, and what the loops stored. */
struct burst {
	struct pair *pair;
	uint32_t number;
	uint32_t count;
	uint32_t others;
	struct progress progress;
	uint64_t *submitted;
	uint64_t *completed;
	struct arrival *arrivals;
	uint32_t posted;
	uint32_t received;
	uint32_t completions;
	uint32_t late;
	uint64_t rewritten;
	/* What failed first in each loop. */
	const char *send_failure;
	const char *receive_failure;
	const char *completion_failure;
};

/* Runs a burst on its threads; returns 0, or -1 when it has said why not. */
int run_burst(struct burst *burst);

/* The number of the burst and of the message, in immediate data if there is. */
#define SEQUENCE_BITS 16
#define SEQUENCE_MASK ((1u << SEQUENCE_BITS) - 1)

/* A word of a message behind its stamp, which tells message and place. */
static inline uint64_t pattern(uint32_t label, uint32_t word)
{
	return ((uint64_t)label << 32 | word) * UINT64_C(0x2545f4914f6cdd1d);
}

#endif
