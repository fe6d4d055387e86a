/*
 * The two ends of oneway: memory, queues, queue pairs, connection.
 *
 * In Rust: hcabench::bench::hca::ends::endpoints::Endpoints
 *          hcabench::buffer::PayloadBuffer
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "oneway.h"

void *map_locked(size_t length)
{
	void *memory = map_pages(length, true);

	if (!memory) {
		cm_failed("mmap", "messages and stamps");
		return NULL;
	}
	if (mlock(memory, round_up(length, HUGE_PAGE))) {
		fprintf(stderr, "mlock of %zu bytes failed: raise the limit with ulimit -l\n",
			round_up(length, HUGE_PAGE));
		unmap_pages(memory, length);
		return NULL;
	}
	return memory;
}

static int make_payload(struct payload *payload, const struct settings *settings,
			size_t header)
{
	payload->slots = settings->burst > settings->warmup ? settings->burst :
							      settings->warmup;
	payload->size = settings->size;
	payload->header = header;
	payload->stride = round_up(settings->size, CACHE_LINE) +
			  round_up(header, CACHE_LINE);
	payload->length = payload->slots * payload->stride;
	payload->memory = map_locked(payload->length);
	return payload->memory ? 0 : -1;
}

/* A UD message is one packet: more than the MTU cannot be sent. */
static int check_size(struct rdma_cm_id *id, const struct settings *settings)
{
	struct ibv_port_attr port;
	uint32_t mtu;

	if (settings->service != IBV_QPT_UD)
		return 0;
	errno = ibv_query_port(id->verbs, id->port_num, &port);
	if (errno)
		return cm_failed("ibv_query_port", cm_device(id));
	mtu = 128u << port.active_mtu;
	if (settings->size <= mtu)
		return 0;
	fprintf(stderr, "--size %u is impossible with --service ud on %s: a message is at most the MTU, %u bytes\n",
		settings->size, ibv_get_device_name(id->verbs->device), mtu);
	return -1;
}

/* Each end uses one of its two queues. */
static int make_end(struct rdma_cm_id *id, bool active, void *user)
{
	struct pair *pair = user;
	const struct settings *settings = pair->settings;
	struct end *end = active ? &pair->source : &pair->target;
	bool header = settings->service == IBV_QPT_UD && !active;
	struct ibv_qp_init_attr attributes = { 0 };
	struct ibv_qp_cap *cap = &attributes.cap;

	end->id = id;
	/* What is touched on a CPU lies in the memory next to it. */
	if (pin_to(active ? settings->sender_cpu : settings->receiver_cpu) ||
	    check_size(id, settings) ||
	    make_payload(&end->payload, settings,
			 header ? GLOBAL_ROUTE_HEADER : 0))
		return -1;
	end->domain = ibv_alloc_pd(id->verbs);
	if (!end->domain)
		return cm_failed("ibv_alloc_pd", cm_device(id));
	end->region = ibv_reg_mr(end->domain, end->payload.memory,
				 end->payload.length,
				 active ? 0 : IBV_ACCESS_LOCAL_WRITE |
					      IBV_ACCESS_REMOTE_WRITE);
	if (!end->region)
		return cm_failed("ibv_reg_mr", cm_device(id));

	cap->max_send_wr = active ? end->payload.slots : 1;
	cap->max_recv_wr = active ? 1 : end->payload.slots;
	cap->max_send_sge = 1;
	cap->max_recv_sge = 1;
	cap->max_inline_data = active && settings->inline_data ?
			       settings->size : 0;
	end->send_queue = ibv_create_cq(id->verbs, cap->max_send_wr, NULL,
					NULL, 0);
	end->receive_queue = ibv_create_cq(id->verbs, cap->max_recv_wr, NULL,
					   NULL, 0);
	if (!end->send_queue || !end->receive_queue)
		return cm_failed("ibv_create_cq", cm_device(id));
	attributes.send_cq = end->send_queue;
	attributes.recv_cq = end->receive_queue;
	attributes.qp_type = settings->service;
	if (rdma_create_qp(id, end->domain, &attributes))
		return cm_failed("rdma_create_qp", cm_device(id));
	if (active && settings->inline_data &&
	    cap->max_inline_data < settings->size) {
		fprintf(stderr, "--inline needs %u bytes, %u were granted\n",
			settings->size, cap->max_inline_data);
		return -1;
	}
	return 0;
}

/* What the rest of the process may use: CPUs without a loop, if any are left. */
static void leave_measuring_cpus(const cpu_set_t *all,
				 const struct settings *settings)
{
	const int busy[] = { settings->sender_cpu, settings->receiver_cpu,
			     settings->completion_cpu, settings->stamp_cpu };
	cpu_set_t left = *all;
	size_t i;

	for (i = 0; i < sizeof(busy) / sizeof(busy[0]); i++)
		if (busy[i] >= 0)
			CPU_CLR(busy[i], &left);
	sched_setaffinity(0, sizeof(left), CPU_COUNT(&left) ? &left : all);
}

int connect_pair(struct pair *pair)
{
	cpu_set_t all;
	int result;

	if (sched_getaffinity(0, sizeof(all), &all))
		return cm_failed("sched_getaffinity", "this process");
	pair->cm.service = pair->settings->service;
	pair->cm.make_end = make_end;
	pair->cm.user = pair;
	result = cm_connect(&pair->cm, 30000);
	leave_measuring_cpus(&all, pair->settings);
	if (result || pair->settings->service != IBV_QPT_UD)
		return result;
	pair->address = ibv_create_ah(pair->source.domain, &pair->cm.peer);
	return pair->address ? 0 :
		cm_failed("ibv_create_ah", cm_device(pair->source.id));
}

static void destroy_end(struct end *end)
{
	if (end->id && end->id->qp)
		rdma_destroy_qp(end->id);
	if (end->receive_queue)
		ibv_destroy_cq(end->receive_queue);
	if (end->send_queue)
		ibv_destroy_cq(end->send_queue);
	if (end->region)
		ibv_dereg_mr(end->region);
	if (end->domain)
		ibv_dealloc_pd(end->domain);
	unmap_pages(end->payload.memory, end->payload.length);
}

void destroy_pair(struct pair *pair)
{
	if (pair->cm.active_up)
		rdma_disconnect(pair->cm.active);
	if (pair->address)
		ibv_destroy_ah(pair->address);
	destroy_end(&pair->source);
	destroy_end(&pair->target);
	if (pair->cm.active)
		rdma_destroy_id(pair->cm.active);
	if (pair->cm.passive)
		rdma_destroy_id(pair->cm.passive);
	if (pair->cm.listener)
		rdma_destroy_id(pair->cm.listener);
	if (pair->cm.channel)
		rdma_destroy_event_channel(pair->cm.channel);
}
