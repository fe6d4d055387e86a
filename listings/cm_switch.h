/*
 * Two ends of one process, brought together by the RDMA connection manager.
 *
 * Everything the connection manager has to tell comes as an event of one
 * channel, and one switch answers it: the active end resolves address and
 * route and connects, the passive one gets a request and accepts. No wait is
 * without a limit, because the channel is only read when there is something.
 *
 * RC and UD have a port space each. UC has none: rdma_create_ep() passes on
 * what it is handed, so with RDMA_PS_IB it makes an id for UC all the same.
 *
 * In Rust: hcabench::rdma::cm::EventChannel
 *          hcabench::rdma::cm::ActiveEndpoint
 *          hcabench::rdma::cm::PassiveEndpoint
 */
#ifndef LISTINGS_CM_SWITCH_H
#define LISTINGS_CM_SWITCH_H

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <rdma/rdma_cma.h>

#include "timespec.h"

/* One attempt of the kernel to resolve an address. On a veth pair an answer
 * can be there before anybody waits for it; the next attempt then finds it. */
#define CM_ATTEMPT_MS 250
#define CM_ROUTE_MS 30000
/* A packet is sent again after 4.096 us times two to this power: 134 ms. */
#define CM_ACK_TIMEOUT 15
/* 7, the largest, can mean for ever. */
#define CM_RETRIES 6

struct cm_switch {
	enum ibv_qp_type service;
	struct sockaddr_in from;
	struct sockaddr_in to;
	/* Gives an id its queue pair; returns 0, or -1 when it has said why. */
	int (*make_end)(struct rdma_cm_id *id, bool active, void *user);
	void *user;

	struct rdma_event_channel *channel;
	struct rdma_cm_id *listener;
	struct rdma_cm_id *active;
	struct rdma_cm_id *passive;
	bool active_up;
	bool passive_up;
	/* Of a UD pair: where messages go. */
	struct ibv_ah_attr peer;
	uint32_t peer_number;
	uint32_t peer_key;
};

/* Says what failed with which errno, and on what; returns -1. */
static inline int cm_failed(const char *operation, const char *object)
{
	fprintf(stderr, "%s for %s failed: %s\n", operation, object,
		strerror(errno));
	return -1;
}

/* Names for cm_failed(); the next call of the first overwrites its own. */
static inline const char *cm_address(const struct sockaddr_in *address)
{
	static char text[INET_ADDRSTRLEN];

	return inet_ntop(AF_INET, &address->sin_addr, text, sizeof(text));
}

static inline const char *cm_device(const struct rdma_cm_id *id)
{
	return ibv_get_device_name(id->verbs->device);
}

/* Creates an id of the service type that is bound to a local address. */
static inline struct rdma_cm_id *cm_bound_id(struct cm_switch *cm,
					     struct sockaddr_in *address)
{
	struct rdma_addrinfo information = {
		.ai_flags = RAI_PASSIVE,
		.ai_family = AF_INET,
		.ai_qp_type = IBV_QPT_UC,
		.ai_port_space = RDMA_PS_IB,
		.ai_src_len = sizeof(*address),
		.ai_src_addr = (struct sockaddr *)address,
	};
	struct rdma_cm_id *id = NULL;

	if (cm->service == IBV_QPT_UC) {
		if (rdma_create_ep(&id, &information, NULL, NULL)) {
			cm_failed("rdma_create_ep", cm_address(address));
			return NULL;
		}
		/* It came with a channel of its own. */
		if (!rdma_migrate_id(id, cm->channel))
			return id;
		cm_failed("rdma_migrate_id", cm_address(address));
	} else {
		if (rdma_create_id(cm->channel, &id, NULL,
				   cm->service == IBV_QPT_UD ? RDMA_PS_UDP :
							       RDMA_PS_TCP)) {
			cm_failed("rdma_create_id", cm_address(address));
			return NULL;
		}
		if (!rdma_bind_addr(id, (struct sockaddr *)address))
			return id;
		cm_failed("rdma_bind_addr", cm_address(address));
	}
	rdma_destroy_id(id);
	return NULL;
}

static inline int cm_resolve_address(struct cm_switch *cm)
{
	if (rdma_resolve_addr(cm->active, (struct sockaddr *)&cm->from,
			      (struct sockaddr *)&cm->to, CM_ATTEMPT_MS))
		return cm_failed("rdma_resolve_addr", cm_address(&cm->to));
	return 0;
}

/* Where the kernel or the service type does not take it, its own stands. */
static inline void cm_set_ack_timeout(struct rdma_cm_id *id)
{
	uint8_t exponent = CM_ACK_TIMEOUT;

	rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT,
			&exponent, sizeof(exponent));
}

static inline int cm_connect_or_accept(struct cm_switch *cm,
				       struct rdma_cm_id *id, bool active)
{
	struct rdma_conn_param parameters = {
		/* No reads and atomics; UC demands it. */
		.responder_resources = 0,
		.initiator_depth = 0,
		.retry_count = CM_RETRIES,
		.rnr_retry_count = CM_RETRIES,
	};

	if (cm->make_end(id, active, cm->user))
		return -1;
	cm_set_ack_timeout(id);
	if (active)
		return rdma_connect(id, &parameters) ?
			cm_failed("rdma_connect", cm_device(id)) : 0;
	parameters.qp_num = id->qp->qp_num;
	return rdma_accept(id, &parameters) ?
		cm_failed("rdma_accept", cm_device(id)) : 0;
}

/* Answers an event. Returns 0, or -1 when it was the end. */
static inline int cm_answer(struct cm_switch *cm, struct rdma_cm_event *event)
{
	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		if (rdma_resolve_route(event->id, CM_ROUTE_MS))
			return cm_failed("rdma_resolve_route",
					 cm_address(&cm->to));
		return 0;

	case RDMA_CM_EVENT_ADDR_ERROR:
		if (event->status == -ETIMEDOUT)
			return cm_resolve_address(cm);
		break;

	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		return cm_connect_or_accept(cm, event->id, true);

	case RDMA_CM_EVENT_CONNECT_REQUEST:
		cm->passive = event->id;
		/* A datagram end stands when it has answered. */
		cm->passive_up = cm->service == IBV_QPT_UD;
		return cm_connect_or_accept(cm, event->id, false);

	case RDMA_CM_EVENT_ESTABLISHED:
		if (event->id != cm->active) {
			cm->passive_up = true;
			return 0;
		}
		cm->active_up = true;
		if (cm->service == IBV_QPT_UD) {
			cm->peer = event->param.ud.ah_attr;
			cm->peer_number = event->param.ud.qp_num;
			cm->peer_key = event->param.ud.qkey;
		}
		return 0;

	case RDMA_CM_EVENT_ADDR_CHANGE:
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		return 0;

	case RDMA_CM_EVENT_ROUTE_ERROR:
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_REJECTED:
	case RDMA_CM_EVENT_DISCONNECTED:
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
	default:
		break;
	}
	fprintf(stderr, "the connection manager reports %s, status %d\n",
		rdma_event_str(event->event), event->status);
	return -1;
}

/*
 * Takes and answers one event, if there is one within so many milliseconds.
 * Returns 1 for that, 0 for none, -1 for the end.
 */
static inline int cm_step(struct cm_switch *cm, int limit_ms)
{
	struct pollfd ready = { .fd = cm->channel->fd, .events = POLLIN };
	struct rdma_cm_event *event, copy;
	int found;

	found = poll(&ready, 1, limit_ms);
	if (found < 0 && errno != EINTR)
		return cm_failed("poll", "the event channel");
	if (found <= 0)
		return 0;
	if (rdma_get_cm_event(cm->channel, &event))
		return cm_failed("rdma_get_cm_event", "the event channel");
	copy = *event;
	rdma_ack_cm_event(event);
	return cm_answer(cm, &copy) ? -1 : 1;
}

/* Connects the two ends. Returns 0, or -1 when it has said why not. */
static inline int cm_connect(struct cm_switch *cm, uint64_t limit_ms)
{
	uint64_t deadline = now_ns() + limit_ms * 1000000;

	cm->channel = rdma_create_event_channel();
	if (!cm->channel)
		return cm_failed("rdma_create_event_channel", "the two ends");
	cm->listener = cm_bound_id(cm, &cm->to);
	if (!cm->listener)
		return -1;
	if (rdma_listen(cm->listener, 1))
		return cm_failed("rdma_listen", cm_address(&cm->to));
	cm->to.sin_port = rdma_get_src_port(cm->listener);
	cm->active = cm_bound_id(cm, &cm->from);
	if (!cm->active || cm_resolve_address(cm))
		return -1;

	while (!cm->active_up || !cm->passive_up) {
		if (cm_step(cm, 100) < 0)
			return -1;
		if (now_ns() > deadline) {
			fprintf(stderr, "not connected within %llu ms\n",
				(unsigned long long)limit_ms);
			return -1;
		}
	}
	return 0;
}

#endif
