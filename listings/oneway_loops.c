/*
 * The loops of oneway, each on a thread of its own, and who watches them.
 *
 * In Rust: hcabench::bench::hca::loops::sender
 *          hcabench::bench::hca::loops::receiver
 *          hcabench::bench::hca::loops::completion
 *          hcabench::bench::hca::loops::control::Control
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include "cq_time.h"
#include "oneway.h"

#define LOOK_MS 200
/* How long a thread may take to leave its loop. */
#define GRACE_MS 2000
/* How long filling slots and posting requests may take. */
#define PREPARATION_MS 120000
/* How long late arrivals may take once something has failed. */
#define AFTER_FAILURE_MS 500

#define relaxed_store(place, value)					\
	atomic_store_explicit(place, value, memory_order_relaxed)
#define relaxed_load(place) atomic_load_explicit(place, memory_order_relaxed)

/* Completions of the send queue, by the sender or by a thread. */
struct collector {
	struct burst *burst;
	struct ibv_cq *queue;
	struct ibv_wc completion;
};

/* Takes one completion; false if there was none. */
static inline __attribute__((always_inline))
bool collect_one(struct collector *collector)
{
	struct burst *burst = collector->burst;
	uint32_t label;
	uint64_t stamp;
	int found;

	found = poll_stamped(collector->queue, &collector->completion, &stamp);
	if (!found)
		return false;
	if (found < 0 || collector->completion.status != IBV_WC_SUCCESS) {
		if (!burst->completion_failure)
			burst->completion_failure = found < 0 ?
				"ibv_poll_cq failed" :
				ibv_wc_status_str(collector->completion.status);
		relaxed_store(&burst->progress.failed, true);
		return found > 0;
	}
	label = (uint32_t)collector->completion.wr_id;
	if (label >> SEQUENCE_BITS == burst->number &&
	    (label & SEQUENCE_MASK) < burst->count) {
		burst->completed[label & SEQUENCE_MASK] = stamp;
		burst->completions++;
		relaxed_store(&burst->progress.completed, burst->completions);
	}
	return true;
}

static inline bool collected_all(const struct collector *collector)
{
	return collector->burst->completions >= collector->burst->count;
}

/* Takes what is there. */
static inline __attribute__((always_inline))
void collect(struct collector *collector)
{
	while (!collected_all(collector) &&
	       !stopped(&collector->burst->progress) && collect_one(collector))
		;
}

/* Takes all that still come, until told to stop. */
static void collect_rest(struct collector *collector)
{
	bool stopping = false;

	while (!collected_all(collector)) {
		if (collect_one(collector) &&
		    !collector->burst->completion_failure)
			continue;
		/* One more look after the word to stop. */
		if (stopping)
			break;
		stopping = stopped(&collector->burst->progress);
	}
}

static struct ibv_send_wr first_request(struct pair *pair,
					struct ibv_sge *element)
{
	const struct settings *settings = pair->settings;
	struct ibv_send_wr request = {
		.sg_list = element,
		.num_sge = 1,
		.opcode = settings->by_order ? IBV_WR_SEND :
			  settings->write ? IBV_WR_RDMA_WRITE_WITH_IMM :
					    IBV_WR_SEND_WITH_IMM,
		.send_flags = IBV_SEND_SIGNALED |
			      (settings->inline_data ? IBV_SEND_INLINE : 0),
	};

	element->length = settings->size;
	element->lkey = pair->source.region->lkey;
	if (settings->write) {
		request.wr.rdma.rkey = pair->target.region->rkey;
	} else if (settings->service == IBV_QPT_UD) {
		request.wr.ud.ah = pair->address;
		request.wr.ud.remote_qpn = pair->cm.peer_number;
		request.wr.ud.remote_qkey = pair->cm.peer_key;
	}
	return request;
}

static inline __attribute__((always_inline))
void send_loop(struct burst *burst, _Atomic uint32_t *announce,
	       struct collector *collector)
{
	struct pair *pair = burst->pair;
	const uint64_t pause = pair->settings->pause_ns;
	const bool write = pair->settings->write;
	struct progress *progress = &burst->progress;
	struct ibv_qp *queue_pair = pair->source.id->qp;
	struct ibv_sge element;
	struct ibv_send_wr request = first_request(pair, &element);
	uint32_t sequence, label;
	uint64_t start;
	char *message;
	int err;

	for (sequence = 0; sequence < burst->count; sequence++) {
		message = slot_of(&pair->source.payload, sequence);
		label = burst->number << SEQUENCE_BITS | sequence;
		element.addr = (uintptr_t)message;
		request.wr_id = label;
		request.imm_data = htonl(label);
		if (write)
			request.wr.rdma.remote_addr = (uintptr_t)
				slot_of(&pair->target.payload, sequence);

		err = post_stamped(queue_pair, &request, message,
				   &burst->submitted[sequence], announce,
				   sequence);
		if (err) {
			burst->send_failure = strerror(err);
			relaxed_store(&progress->posted, sequence);
			relaxed_store(&progress->failed, true);
			break;
		}
		burst->posted = sequence + 1;
		atomic_store_explicit(&progress->posted, sequence + 1,
				      memory_order_release);
		if (sequence + 1 == burst->count)
			break;

		if (pause) {
			start = now_ns();
			do {
				if (collector)
					collect(collector);
			} while (!stopped(progress) &&
				 now_ns() - start < pause);
		} else if (collector) {
			collect(collector);
		}
		if (stopped(progress))
			break;
	}
	atomic_store_explicit(&progress->sender_done, true,
			      memory_order_release);
	if (collector)
		collect_rest(collector);
}

static bool wait_until_ready(struct burst *burst)
{
	struct progress *progress = &burst->progress;

	while (atomic_load_explicit(&progress->ready, memory_order_acquire) <
	       burst->others) {
		if (stopped(progress) || relaxed_load(&progress->failed))
			return false;
		sched_yield();
	}
	return true;
}

static void announce_ready(struct burst *burst)
{
	atomic_fetch_add_explicit(&burst->progress.ready, 1,
				  memory_order_release);
}

static void fill(struct burst *burst)
{
	const struct payload *payload = &burst->pair->source.payload;
	uint32_t sequence, word;
	uint64_t *words;

	for (sequence = 0; sequence < burst->count; sequence++) {
		words = (uint64_t *)slot_of(payload, sequence);
		/* The line of the stamp too: no first touch in the loop. */
		words[0] = 0;
		for (word = 1; word < payload->size / 8; word++)
			words[word] = pattern(burst->number << SEQUENCE_BITS |
					      sequence, word);
	}
}

static void *sender(void *argument)
{
	struct burst *burst = argument;
	const struct settings *settings = burst->pair->settings;
	struct collector collector = {
		.burst = burst,
		.queue = burst->pair->source.send_queue,
	};
	bool collects = settings->completion_cpu < 0;

	if (pin_to(settings->sender_cpu)) {
		burst->send_failure = "no place to run";
		relaxed_store(&burst->progress.failed, true);
		return NULL;
	}
	fill(burst);
	if (!wait_until_ready(burst))
		return NULL;
	if (settings->restamp)
		send_loop(burst, &burst->progress.posted,
			  collects ? &collector : NULL);
	else
		send_loop(burst, NULL, collects ? &collector : NULL);
	return NULL;
}

/*
 * Slots are used in turn over all bursts, so that a request that a lost
 * message left behind keeps its slot to itself.
 */
static int post_receives(struct burst *burst)
{
	struct end *end = &burst->pair->target;
	const struct payload *payload = &end->payload;
	struct ibv_recv_wr *bad, request = { .num_sge = 1 };
	struct ibv_sge element;
	struct ibv_wc late;

	while (ibv_poll_cq(end->receive_queue, 1, &late) > 0) {
		end->receives_posted--;
		burst->late++;
	}
	while (end->receives_posted < burst->count) {
		element.addr = (uintptr_t)slot_of(payload, end->next_slot) -
			       payload->header;
		element.length = payload->size + payload->header;
		element.lkey = end->region->lkey;
		request.wr_id = end->next_slot;
		request.sg_list = &element;
		errno = ibv_post_recv(end->id->qp, &request, &bad);
		if (errno)
			return -1;
		end->next_slot = (end->next_slot + 1) % payload->slots;
		end->receives_posted++;
	}
	return 0;
}

static inline __attribute__((always_inline))
void receive_loop(struct burst *burst)
{
	struct ibv_cq *queue = burst->pair->target.receive_queue;
	const uint32_t header = burst->pair->target.payload.header;
	const bool by_order = burst->pair->settings->by_order;
	struct progress *progress = &burst->progress;
	struct ibv_wc completion = { 0 };
	uint32_t received = 0, late = 0, label;
	bool stopping = false;
	uint64_t stamp;
	int found;

	while (received < burst->count) {
		found = poll_stamped(queue, &completion, &stamp);
		if (found > 0 && completion.status == IBV_WC_SUCCESS) {
			/* Each burst on RC has arrived before the next. */
			label = by_order ? burst->number << SEQUENCE_BITS |
					   received :
					   ntohl(completion.imm_data);
			burst->arrivals[received] = (struct arrival) {
				.stamp = stamp,
				.label = label,
				.slot = (uint32_t)completion.wr_id,
				.bytes = completion.byte_len - header,
			};
			if (label >> SEQUENCE_BITS == burst->number) {
				received++;
				relaxed_store(&progress->received,
					      (label & SEQUENCE_MASK) + 1);
			} else {
				/* It is overwritten by the next one. */
				late++;
				if (stopped(progress))
					break;
			}
		} else if (!found) {
			/* One more look after the word to stop. */
			if (stopping)
				break;
			stopping = stopped(progress);
		} else {
			burst->receive_failure = found < 0 ?
				"ibv_poll_cq failed" :
				ibv_wc_status_str(completion.status);
			relaxed_store(&progress->failed, true);
			break;
		}
	}
	burst->received = received;
	burst->late += late;
	burst->pair->target.receives_posted -= received + late;
}

static void *receiver(void *argument)
{
	struct burst *burst = argument;
	const struct payload *payload = &burst->pair->target.payload;

	if (pin_to(burst->pair->settings->receiver_cpu)) {
		burst->receive_failure = "no place to run";
	} else {
		memset(payload->memory, 0, payload->length);
		if (post_receives(burst))
			burst->receive_failure = "ibv_post_recv failed";
	}
	if (burst->receive_failure) {
		relaxed_store(&burst->progress.failed, true);
		return NULL;
	}
	announce_ready(burst);
	receive_loop(burst);
	return NULL;
}

static void *completer(void *argument)
{
	struct burst *burst = argument;
	struct collector collector = {
		.burst = burst,
		.queue = burst->pair->source.send_queue,
	};

	if (pin_to(burst->pair->settings->completion_cpu)) {
		burst->completion_failure = "no place to run";
		relaxed_store(&burst->progress.failed, true);
		return NULL;
	}
	announce_ready(burst);
	collect_rest(&collector);
	return NULL;
}

static void *stamper(void *argument)
{
	struct burst *burst = argument;
	const struct payload *payload = &burst->pair->source.payload;

	if (pin_to(burst->pair->settings->stamp_cpu)) {
		burst->send_failure = "no place to run";
		relaxed_store(&burst->progress.failed, true);
		return NULL;
	}
	announce_ready(burst);
	burst->rewritten = rewrite_stamps(&burst->progress,
					  slot_of(payload, 0), payload->stride);
	return NULL;
}

/* Tells the loops to stop when nothing more is to be expected. */
struct watch {
	uint64_t counts;
	uint64_t changed;
	/* The connection has, or a device is gone. */
	bool ended;
};

static void look(struct burst *burst, struct watch *watch)
{
	struct progress *progress = &burst->progress;
	const struct settings *settings = burst->pair->settings;
	uint64_t limit_ms = settings->timeout_ms + settings->pause_ns / 1000000;
	uint64_t counts, now = now_ns();

	counts = (uint64_t)relaxed_load(&progress->posted) +
		 relaxed_load(&progress->received) +
		 relaxed_load(&progress->completed) +
		 relaxed_load(&progress->ready);
	if (!relaxed_load(&progress->posted))
		limit_ms = PREPARATION_MS;
	if (relaxed_load(&progress->failed)) {
		/* Only arrivals count then. */
		counts = relaxed_load(&progress->received);
		limit_ms = AFTER_FAILURE_MS;
	}
	if (counts != watch->counts) {
		watch->counts = counts;
		watch->changed = now;
	}
	if (now - watch->changed > limit_ms * 1000000)
		relaxed_store(&progress->stop, true);
	if (!watch->ended && cm_step(&burst->pair->cm, 0) < 0) {
		watch->ended = true;
		relaxed_store(&progress->stop, true);
	}
}

int run_burst(struct burst *burst)
{
	const struct settings *settings = burst->pair->settings;
	void *(*const loops[])(void *) = {
		receiver,
		sender,
		settings->completion_cpu < 0 ? NULL : completer,
		settings->restamp ? stamper : NULL,
	};
	struct watch watch = { .changed = now_ns() };
	pthread_t threads[4];
	uint64_t deadline, stopped_at;
	struct timespec until;
	pthread_attr_t small;
	int started = 0, i;

	burst->others = 1 + (loops[2] != NULL) + (loops[3] != NULL);
	pthread_attr_init(&small);
	/* All memory is locked, stacks too. */
	pthread_attr_setstacksize(&small, 256 << 10);
	for (i = 0; i < 4; i++) {
		if (!loops[i])
			continue;
		errno = pthread_create(&threads[started], &small, loops[i],
				       burst);
		if (errno) {
			cm_failed("pthread_create", "a loop");
			relaxed_store(&burst->progress.stop, true);
			burst->send_failure = "a thread is missing";
			break;
		}
		started++;
	}
	pthread_attr_destroy(&small);

	stopped_at = 0;
	for (i = 0; i < started; ) {
		deadline = now_ns() + LOOK_MS * 1000000ull;
		until = ns_to_timespec(deadline);
		/* Not on the wall clock, which may be set meanwhile. */
		if (!pthread_clockjoin_np(threads[i], NULL, CLOCK_MONOTONIC,
					  &until)) {
			i++;
			continue;
		}
		look(burst, &watch);
		if (!stopped(&burst->progress))
			continue;
		if (!stopped_at)
			stopped_at = now_ns();
		if (now_ns() - stopped_at > GRACE_MS * 1000000ull) {
			fprintf(stderr, "a thread does not leave its loop\n");
			/* It uses what would be given back. */
			_exit(1);
		}
	}
	if (burst->completion_failure)
		fprintf(stderr, "a send request failed: %s\n",
			burst->completion_failure);
	if (burst->receive_failure)
		fprintf(stderr, "receiving failed: %s\n",
			burst->receive_failure);
	if (burst->send_failure)
		fprintf(stderr, "posting failed: %s\n", burst->send_failure);
	return watch.ended || burst->completion_failure ||
	       burst->receive_failure || burst->send_failure ? -1 : 0;
}
