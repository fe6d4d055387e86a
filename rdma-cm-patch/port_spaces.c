/*
 * Which port spaces connect an unreliable connection (UC) by rdma_create_id2, on two ports of this
 * host, each named by its address: port-spaces ADDRESS ADDRESS
 *
 * A line for each port space: its name, "connected" with the types of the two queue pairs as
 * ibv_query_qp tells them and whether a message arrived, or the first step that failed, at which end,
 * with the errno or the event. Exit code 0 whatever the results are, 1 when nothing could be tried.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <rdma/rdma_cma.h>

enum { STEP_LIMIT_MS = 15000, ADDRESS_ATTEMPT_MS = 250, ADDRESS_ATTEMPTS = 20 };

struct end {
	const char *name;
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	struct ibv_cq *queue;
	struct ibv_mr *region;
	char message[8];
};

struct attempt {
	struct end active, passive;
	struct rdma_cm_id *listener;
	char failure[160];
};

static int failed(struct attempt *attempt, const struct end *end, const char *step)
{
	snprintf(attempt->failure, sizeof(attempt->failure), "%s end, %s: %s", end->name, step, strerror(errno));
	return -1;
}

/* Waits for an event, which is acknowledged. Returns the id that it brings, or NULL with the failure told. */
static struct rdma_cm_id *expect(struct attempt *attempt, const struct end *end, const char *step,
				 enum rdma_cm_event_type wanted, int *status)
{
	struct pollfd readable = { .fd = end->channel->fd, .events = POLLIN };
	struct rdma_cm_event *event;
	enum rdma_cm_event_type type;
	struct rdma_cm_id *id;

	if (poll(&readable, 1, STEP_LIMIT_MS) != 1) {
		snprintf(attempt->failure, sizeof(attempt->failure), "%s end, %s: no event in %d s", end->name, step,
			 STEP_LIMIT_MS / 1000);
		return NULL;
	}
	if (rdma_get_cm_event(end->channel, &event)) {
		failed(attempt, end, "rdma_get_cm_event");
		return NULL;
	}
	type = event->event;
	*status = event->status;
	id = event->id;
	rdma_ack_cm_event(event);
	if (type == wanted)
		return id;
	snprintf(attempt->failure, sizeof(attempt->failure), "%s end, %s: %s, status %d", end->name, step,
		 rdma_event_str(type), *status);
	return NULL;
}

static int make_queue_pair(struct attempt *attempt, struct end *end)
{
	struct ibv_qp_init_attr attributes = {
		.qp_type = IBV_QPT_UC,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};

	end->queue = ibv_create_cq(end->id->verbs, 2, NULL, NULL, 0);
	if (!end->queue)
		return failed(attempt, end, "ibv_create_cq");
	attributes.send_cq = attributes.recv_cq = end->queue;
	if (rdma_create_qp(end->id, NULL, &attributes))
		return failed(attempt, end, "rdma_create_qp");
	end->region = ibv_reg_mr(end->id->pd, end->message, sizeof(end->message), IBV_ACCESS_LOCAL_WRITE);
	if (!end->region)
		return failed(attempt, end, "ibv_reg_mr");
	return 0;
}

static void release(struct end *end)
{
	if (end->id && end->id->qp)
		rdma_destroy_qp(end->id);
	if (end->region)
		ibv_dereg_mr(end->region);
	if (end->queue)
		ibv_destroy_cq(end->queue);
	if (end->id)
		rdma_destroy_id(end->id);
}

/* On a veth pair the first attempts can time out, because the neighbour's answer comes too early. */
static int resolve_address(struct attempt *attempt, struct sockaddr *from, struct sockaddr *to)
{
	struct end *end = &attempt->active;

	for (int i = 0; i < ADDRESS_ATTEMPTS; i++) {
		int status = 0;

		if (rdma_resolve_addr(end->id, from, to, ADDRESS_ATTEMPT_MS))
			return failed(attempt, end, "rdma_resolve_addr");
		if (expect(attempt, end, "rdma_resolve_addr", RDMA_CM_EVENT_ADDR_RESOLVED, &status))
			return 0;
		if (status != -ETIMEDOUT)
			return -1;
	}
	return -1;
}

static int connect_ends(struct attempt *attempt, enum rdma_port_space space, struct sockaddr_in from,
			struct sockaddr_in to)
{
	struct rdma_conn_param parameters = { 0 };
	struct end *active = &attempt->active, *passive = &attempt->passive;
	int status;

	if (rdma_create_id2(passive->channel, &attempt->listener, NULL, space, IBV_QPT_UC))
		return failed(attempt, passive, "rdma_create_id2");
	if (rdma_bind_addr(attempt->listener, (struct sockaddr *)&to))
		return failed(attempt, passive, "rdma_bind_addr");
	if (rdma_listen(attempt->listener, 1))
		return failed(attempt, passive, "rdma_listen");
	to.sin_port = rdma_get_src_port(attempt->listener);

	if (rdma_create_id2(active->channel, &active->id, NULL, space, IBV_QPT_UC))
		return failed(attempt, active, "rdma_create_id2");
	if (resolve_address(attempt, (struct sockaddr *)&from, (struct sockaddr *)&to))
		return -1;
	if (rdma_resolve_route(active->id, STEP_LIMIT_MS))
		return failed(attempt, active, "rdma_resolve_route");
	if (!expect(attempt, active, "rdma_resolve_route", RDMA_CM_EVENT_ROUTE_RESOLVED, &status))
		return -1;
	if (make_queue_pair(attempt, active))
		return -1;
	if (rdma_connect(active->id, &parameters))
		return failed(attempt, active, "rdma_connect");

	passive->id = expect(attempt, passive, "waiting for a request", RDMA_CM_EVENT_CONNECT_REQUEST, &status);
	if (!passive->id)
		return -1;
	if (make_queue_pair(attempt, passive))
		return -1;
	if (rdma_accept(passive->id, &parameters))
		return failed(attempt, passive, "rdma_accept");
	if (!expect(attempt, active, "rdma_connect", RDMA_CM_EVENT_ESTABLISHED, &status) ||
	    !expect(attempt, passive, "rdma_accept", RDMA_CM_EVENT_ESTABLISHED, &status))
		return -1;
	return 0;
}

static const char *queue_pair_type(struct attempt *attempt, const struct end *end)
{
	struct ibv_qp_attr attributes;
	struct ibv_qp_init_attr made_with;

	if (ibv_query_qp(end->id->qp, &attributes, IBV_QP_STATE, &made_with)) {
		failed(attempt, end, "ibv_query_qp");
		return NULL;
	}
	switch (made_with.qp_type) {
	case IBV_QPT_UC:
		return "UC";
	case IBV_QPT_RC:
		return "RC";
	case IBV_QPT_UD:
		return "UD";
	default:
		return "neither UC nor RC nor UD";
	}
}

/* Sends 8 bytes and waits for them. */
static int deliver(struct attempt *attempt)
{
	struct end *from = &attempt->active, *to = &attempt->passive;
	struct ibv_sge target = { (uintptr_t)to->message, sizeof(to->message), to->region->lkey };
	struct ibv_sge source = { (uintptr_t)from->message, sizeof(from->message), from->region->lkey };
	struct ibv_recv_wr receive = { .sg_list = &target, .num_sge = 1 }, *bad_receive;
	struct ibv_send_wr send = { .sg_list = &source, .num_sge = 1, .opcode = IBV_WR_SEND,
				    .send_flags = IBV_SEND_SIGNALED }, *bad_send;
	struct timespec pause = { .tv_nsec = 1000000 };
	struct ibv_wc completion;

	memcpy(from->message, "message", sizeof(from->message));
	errno = ibv_post_recv(to->id->qp, &receive, &bad_receive);
	if (errno)
		return failed(attempt, to, "ibv_post_recv");
	errno = ibv_post_send(from->id->qp, &send, &bad_send);
	if (errno)
		return failed(attempt, from, "ibv_post_send");
	for (int waited = 0; waited < STEP_LIMIT_MS; waited++) {
		int found = ibv_poll_cq(to->queue, 1, &completion);

		if (found > 0 && completion.status == IBV_WC_SUCCESS && completion.byte_len == sizeof(to->message) &&
		    !memcmp(from->message, to->message, sizeof(to->message)))
			return 0;
		if (found) {
			snprintf(attempt->failure, sizeof(attempt->failure), "receiving: %s",
				 found > 0 ? ibv_wc_status_str(completion.status) : "ibv_poll_cq");
			return -1;
		}
		nanosleep(&pause, NULL);
	}
	snprintf(attempt->failure, sizeof(attempt->failure), "the message did not arrive");
	return -1;
}

static int try_space(const char *name, enum rdma_port_space space, struct sockaddr_in from, struct sockaddr_in to)
{
	struct attempt attempt = { .active = { .name = "active" }, .passive = { .name = "passive" } };
	const char *sending, *receiving;

	attempt.active.channel = rdma_create_event_channel();
	attempt.passive.channel = rdma_create_event_channel();
	if (!attempt.active.channel || !attempt.passive.channel) {
		perror("port-spaces: rdma_create_event_channel");
		return -1;
	}
	if (!connect_ends(&attempt, space, from, to) && (sending = queue_pair_type(&attempt, &attempt.active)) &&
	    (receiving = queue_pair_type(&attempt, &attempt.passive)) && !deliver(&attempt))
		printf("%-13s  connected, %s to %s, message arrived\n", name, sending, receiving);
	else
		printf("%-13s  %s\n", name, attempt.failure);
	fflush(stdout);
	release(&attempt.active);
	release(&attempt.passive);
	if (attempt.listener)
		rdma_destroy_id(attempt.listener);
	rdma_destroy_event_channel(attempt.active.channel);
	rdma_destroy_event_channel(attempt.passive.channel);
	return 0;
}

int main(int count, char **words)
{
	static const struct {
		const char *name;
		enum rdma_port_space space;
	} spaces[] = {
		{ "RDMA_PS_IB", RDMA_PS_IB },
		{ "RDMA_PS_TCP", RDMA_PS_TCP },
		{ "RDMA_PS_UDP", RDMA_PS_UDP },
		{ "RDMA_PS_IPOIB", RDMA_PS_IPOIB },
	};
	struct sockaddr_in from = { .sin_family = AF_INET }, to = { .sin_family = AF_INET };

	if (count != 3 || inet_pton(AF_INET, words[1], &from.sin_addr) != 1 ||
	    inet_pton(AF_INET, words[2], &to.sin_addr) != 1) {
		fprintf(stderr, "Usage: port-spaces ADDRESS ADDRESS (IPv4, of two RDMA ports of this host)\n");
		return 2;
	}
	for (size_t i = 0; i < sizeof(spaces) / sizeof(spaces[0]); i++)
		if (try_space(spaces[i].name, spaces[i].space, from, to))
			return 1;
	return 0;
}
