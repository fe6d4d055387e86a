/* Messages, from a send queue to the memory of the peer. The one who posts a request carries it out, under the lock;
 * what has to wait (a receiver that is not ready, a peer that does not answer) a thread carries on with. */
#include "model.h"

static pthread_cond_t changed;
static bool runs; /* the thread for what waits */

static uint64_t now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000ull + time.tv_nsec;
}

/* IBA, volume 1, 9.7.5.2.8, table 46. */
static uint64_t not_ready_ns(int code)
{
	static const uint16_t hundredths[32] = {[0] = 65535, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256,
						384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384,
						24576, 32768, 49152};
	return code == 0 ? 655360000 : hundredths[code & 31] * 10000ull;
}

/* Copies so that the last bytes appear last, as PCI Express without relaxed ordering does, each slot of 8 at once. */
static void copy(uint64_t to, const void *from, uint32_t length)
{
	uint8_t *target = (uint8_t *)(uintptr_t)to;
	uint32_t head = length > 8 ? length - 8 : 0;

	memcpy(target, from, head);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	if (length >= 8)
		memcpy(target + head, (const uint8_t *)from + head, 8);
	else
		memcpy(target, from, length);
}

static void sent(struct queue_pair *qp, struct send *send, enum ibv_wc_status status)
{
	static const enum ibv_wc_opcode opcodes[] = {
		[IBV_WR_SEND] = IBV_WC_SEND, [IBV_WR_SEND_WITH_IMM] = IBV_WC_SEND,
		[IBV_WR_RDMA_WRITE] = IBV_WC_RDMA_WRITE, [IBV_WR_RDMA_WRITE_WITH_IMM] = IBV_WC_RDMA_WRITE,
		[IBV_WR_RDMA_READ] = IBV_WC_RDMA_READ,
	};
	if (send->signaled || status != IBV_WC_SUCCESS)
		complete((struct completion_queue *)qp->qp.send_cq, (struct entry){
			.wc = {.wr_id = send->wr.wr_id, .status = status, .opcode = opcodes[send->wr.opcode],
			       .byte_len = send->length, .qp_num = qp->qp.qp_num},
			.of_sends = qp, .cleared = send->place});
	free(send->copy);
	free(send);
}

static struct receive *next_receive(struct queue_pair *qp)
{
	struct receive_queue *queue = qp->receives;
	return queue->count ? &queue->receives[queue->head] : NULL;
}

static void used(struct queue_pair *qp)
{
	struct receive_queue *queue = qp->receives;
	queue->head = (queue->head + 1) % queue->limit;
	queue->count--;
}

static void received(struct queue_pair *qp, struct ibv_wc wc)
{
	wc.wr_id = next_receive(qp)->id;
	wc.qp_num = qp->qp.qp_num;
	used(qp);
	complete((struct completion_queue *)qp->qp.recv_cq, (struct entry){.wc = wc});
}

/* Moves a queue pair to the state of errors: all of its requests complete as flushed. */
void fail(struct queue_pair *qp)
{
	qp->qp.state = IBV_QPS_ERR;
	for (struct send *send; (send = qp->waiting);) {
		qp->waiting = send->next;
		sent(qp, send, IBV_WC_WR_FLUSH_ERR);
	}
	qp->last = &qp->waiting;
	while (!qp->qp.srq && next_receive(qp))
		received(qp, (struct ibv_wc){.status = IBV_WC_WR_FLUSH_ERR, .opcode = IBV_WC_RECV});
}

/* Gathers what is sent into one piece; NULL if a key does not allow it. Up to 8 bytes are read at once. */
static uint8_t *gathered(struct send *send, uint8_t *room)
{
	uint32_t at = 0;

	if (send->copy)
		return send->copy;
	if (send->wr.num_sge == 1) { /* read in place, as late as possible */
		struct ibv_sge *one = send->element;
		return memory_of(one->lkey, one->addr, one->length, 0) ? (uint8_t *)(uintptr_t)one->addr : NULL;
	}
	for (int i = 0; i < send->wr.num_sge; i++) {
		struct ibv_sge *one = &send->element[i];
		if (!memory_of(one->lkey, one->addr, one->length, 0))
			return NULL;
		memcpy(room + at, (void *)(uintptr_t)one->addr, one->length);
		at += one->length;
	}
	return room;
}

/* Writes a message into the elements of a receive request, from `skip` bytes on. */
static bool scattered(struct receive *receive, uint32_t skip, const uint8_t *from, uint32_t length)
{
	for (int i = 0; i < receive->elements; i++) {
		struct ibv_sge *one = &receive->element[i];
		if (!memory_of(one->lkey, one->addr, one->length, IBV_ACCESS_LOCAL_WRITE))
			return false;
		uint32_t skipped = skip < one->length ? skip : one->length;
		uint32_t part = one->length - skipped < length ? one->length - skipped : length;
		copy(one->addr + skipped, from, part);
		skip -= skipped, from += part, length -= part;
	}
	return true;
}

static uint64_t room_of(struct receive *receive)
{
	uint64_t room = 0;
	for (int i = 0; i < receive->elements; i++)
		room += receive->element[i].length;
	return room;
}

/* Counts the packets of a message at both ends, and where they went: two ports on one wire are in one adapter. */
static void count(struct queue_pair *qp, int to[2], uint32_t length)
{
	struct context *context = context_of(qp->qp.context);
	const struct port *other = &character()->device[to[0]].port[to[1]];
	uint64_t *here = grown[context->number][qp->attr.port_num - 1], *there = grown[to[0]][to[1]];
	uint32_t mtu = 128u << context->device->driver->mtu, packets = length ? (length + mtu - 1) / mtu : 1;
	bool looped = port_of(qp)->wire == other->wire;

	here[SENT] += packets;
	there[RECEIVED] += packets;
	here[looped ? LOOPED : WIRE_SENT] += packets;
	if (!looped)
		there[WIRE_RECEIVED] += packets;
}

enum outcome { GONE, NOT_THERE, IS_NOT_READY, WRONG };

static enum outcome read_from(struct queue_pair *peer, struct send *send)
{
	const struct driver *driver = context_of(peer->qp.context)->device->driver;
	uint64_t from = send->wr.wr.rdma.remote_addr;
	/* On iWARP the answer is a write of the peer (RFC 5040, 5.3; kernel, core/rw.c). */
	int sink = IBV_ACCESS_LOCAL_WRITE | (driver->transport == IBV_TRANSPORT_IWARP ? IBV_ACCESS_REMOTE_WRITE : 0);

	if (!memory_of(send->wr.wr.rdma.rkey, from, send->length, IBV_ACCESS_REMOTE_READ) ||
	    !(peer->attr.qp_access_flags & IBV_ACCESS_REMOTE_READ))
		return WRONG;
	for (int i = 0; i < send->wr.num_sge; i++) {
		struct ibv_sge *one = &send->element[i];
		if (!memory_of(one->lkey, one->addr, one->length, sink))
			return WRONG;
		copy(one->addr, (void *)(uintptr_t)from, one->length);
		from += one->length;
	}
	return GONE;
}

static enum outcome deliver(struct queue_pair *qp, struct send *send, enum ibv_wc_status *status)
{
	static uint8_t room[1 << 20], header[40];
	enum ibv_wr_opcode opcode = send->wr.opcode;
	bool datagram = qp->qp.qp_type == IBV_QPT_UD, reliable = qp->qp.qp_type == IBV_QPT_RC;
	const struct ibv_ah_attr *to = datagram ? &send->to : &qp->attr.ah_attr;
	bool takes = opcode == IBV_WR_SEND || opcode == IBV_WR_SEND_WITH_IMM || opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
	bool writes = opcode == IBV_WR_RDMA_WRITE || opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
	uint32_t number = datagram ? send->wr.wr.ud.remote_qpn : qp->attr.dest_qp_num;
	int place[2];

	const struct driver *driver = context_of(qp->qp.context)->device->driver;
	struct queue_pair *peer = queue_pair_at(number, to, driver, place);
	if (!peer || peer->qp.qp_type != qp->qp.qp_type || port_of(qp)->state != IBV_PORT_ACTIVE)
		return NOT_THERE;
	if (peer->qp.state != IBV_QPS_RTR && peer->qp.state != IBV_QPS_RTS)
		return NOT_THERE;
	if (!datagram && (peer->attr.dest_qp_num != qp->qp.qp_num))
		return NOT_THERE;
	if (datagram && peer->attr.qkey != send->wr.wr.ud.remote_qkey)
		return NOT_THERE;
	struct receive *receive = takes ? next_receive(peer) : NULL;
	if (takes && !receive)
		return IS_NOT_READY;
	*status = IBV_WC_REM_ACCESS_ERR;
	count(qp, place, send->length);
	if (opcode == IBV_WR_RDMA_READ)
		return read_from(peer, send);
	uint8_t *from = gathered(send, room);
	if (!from) {
		*status = IBV_WC_LOC_PROT_ERR;
		return WRONG;
	}
	if (writes) {
		uint64_t address = send->wr.wr.rdma.remote_addr;
		if (!memory_of(send->wr.wr.rdma.rkey, address, send->length, IBV_ACCESS_REMOTE_WRITE) ||
		    !(peer->attr.qp_access_flags & IBV_ACCESS_REMOTE_WRITE))
			return reliable ? WRONG : NOT_THERE;
		copy(address, from, send->length);
	} else {
		uint32_t skip = datagram ? sizeof header : 0;
		if (room_of(receive) < (uint64_t)skip + send->length) {
			if (datagram)
				return NOT_THERE;
			received(peer, (struct ibv_wc){.status = IBV_WC_LOC_LEN_ERR, .opcode = IBV_WC_RECV});
			fail(peer);
			*status = IBV_WC_REM_INV_REQ_ERR;
			return reliable ? WRONG : NOT_THERE;
		}
		if (datagram)
			scattered(receive, 0, header, sizeof header);
		scattered(receive, skip, from, send->length);
	}
	if (takes) {
		bool immediate = opcode != IBV_WR_SEND;
		received(peer, (struct ibv_wc){
			.opcode = opcode == IBV_WR_RDMA_WRITE_WITH_IMM ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV,
			.byte_len = send->length + (datagram ? driver->datagram_header : 0),
			.imm_data = immediate ? send->wr.imm_data : 0,
			.src_qp = datagram ? qp->qp.qp_num : 0,
			.wc_flags = (immediate ? IBV_WC_WITH_IMM : 0) | (datagram && to->is_global ? IBV_WC_GRH : 0),
			.slid = port_of(qp)->lid,
		});
	}
	return GONE;
}

/* Carries out what a send queue has, until something must wait. */
static void advance(struct queue_pair *qp)
{
	bool reliable = qp->qp.qp_type == IBV_QPT_RC;

	for (struct send *send; (send = qp->waiting) && now() >= qp->again;) {
		enum ibv_wc_status status = IBV_WC_SUCCESS;
		enum outcome outcome = deliver(qp, send, &status);

		if (outcome == IS_NOT_READY && reliable) {
			int place[2];
			struct queue_pair *peer = queue_pair_at(qp->attr.dest_qp_num, &qp->attr.ah_attr,
								context_of(qp->qp.context)->device->driver, place);
			grown[context_of(qp->qp.context)->number][qp->attr.port_num - 1][NOT_READY]++;
			if (qp->attr.rnr_retry == 7 || qp->tries++ < qp->attr.rnr_retry) {
				qp->again = now() + not_ready_ns(peer->attr.min_rnr_timer);
				return;
			}
			outcome = WRONG;
			status = IBV_WC_RNR_RETRY_EXC_ERR;
		} else if (outcome == NOT_THERE && reliable) {
			if (qp->tries++ < qp->attr.retry_cnt || qp->attr.timeout == 0) {
				qp->again = now() + (qp->attr.timeout ? 4096ull << qp->attr.timeout : 1000000000);
				return;
			}
			outcome = WRONG;
			status = IBV_WC_RETRY_EXC_ERR;
		}
		qp->waiting = send->next;
		if (!qp->waiting)
			qp->last = &qp->waiting;
		qp->tries = 0;
		/* What UC and UD lose is sent all the same. */
		sent(qp, send, outcome == WRONG ? status : IBV_WC_SUCCESS);
		if (outcome == WRONG) {
			fail(qp);
			return;
		}
	}
}

static void *carry_on(void *unused)
{
	(void)unused;
	pthread_mutex_lock(&lock);
	for (;;) {
		uint64_t first = now() + 3600000000000ull;
		for (struct queue_pair *qp = queue_pairs; qp; qp = qp->next) {
			advance(qp);
			if (qp->waiting && qp->again < first)
				first = qp->again;
		}
		struct timespec until = {first / 1000000000, first % 1000000000};
		pthread_cond_timedwait(&changed, &lock, &until);
	}
	return NULL;
}

static void wait_later(void)
{
	if (!runs) {
		pthread_condattr_t attributes;
		pthread_t thread;
		pthread_condattr_init(&attributes);
		pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
		pthread_cond_init(&changed, &attributes);
		runs = pthread_create(&thread, NULL, carry_on, NULL) == 0;
	}
	pthread_cond_signal(&changed);
}

static int post_one(struct queue_pair *qp, struct ibv_send_wr *wr)
{
	const struct driver *driver = context_of(qp->qp.context)->device->driver;
	bool iwarp = driver->transport == IBV_TRANSPORT_IWARP, datagram = qp->qp.qp_type == IBV_QPT_UD;
	bool immediate = wr->opcode == IBV_WR_SEND_WITH_IMM || wr->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
	uint64_t length = 0;

	if (qp->qp.state != IBV_QPS_RTS && qp->qp.state != IBV_QPS_ERR)
		return EINVAL;
	if (qp->posted - qp->cleared >= qp->cap.max_send_wr)
		return ENOMEM;
	bool has_it = datagram ? wr->opcode <= IBV_WR_SEND_WITH_IMM && wr->opcode >= IBV_WR_SEND : !iwarp || !immediate;
	if (!has_it || wr->opcode > IBV_WR_RDMA_READ || wr->num_sge > 4)
		return EINVAL;
	for (int i = 0; i < wr->num_sge; i++)
		length += wr->sg_list[i].length;
	if (length > driver->max_message || length > 1 << 20 || (datagram && length > 128u << driver->mtu))
		return EINVAL;
	if (wr->send_flags & IBV_SEND_INLINE && length > qp->cap.max_inline_data)
		return EINVAL;
	struct send *send = calloc(1, sizeof *send);
	send->wr = *wr;
	send->length = length;
	send->place = ++qp->posted;
	send->signaled = qp->all_signaled || wr->send_flags & IBV_SEND_SIGNALED;
	memcpy(send->element, wr->sg_list, wr->num_sge * sizeof *wr->sg_list);
	if (datagram)
		send->to = *address_of(wr->wr.ud.ah);
	if (wr->send_flags & IBV_SEND_INLINE) { /* the buffer is the caller's again */
		uint8_t *to = send->copy = malloc(length + 1);
		for (int i = 0; i < wr->num_sge; to += wr->sg_list[i++].length)
			memcpy(to, (void *)(uintptr_t)wr->sg_list[i].addr, wr->sg_list[i].length);
	}
	if (qp->qp.state == IBV_QPS_ERR) {
		sent(qp, send, IBV_WC_WR_FLUSH_ERR);
		return 0;
	}
	*qp->last = send;
	qp->last = &send->next;
	if (qp->waiting == send)
		qp->again = 0;
	advance(qp);
	if (qp->waiting)
		wait_later();
	return 0;
}

int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	int code = 0;

	pthread_mutex_lock(&lock);
	for (; wr && code == 0; wr = code ? wr : wr->next)
		code = post_one(CONTAINER(qp, struct queue_pair, qp), wr);
	pthread_mutex_unlock(&lock);
	if (code)
		*bad = wr;
	return code;
}

static int add_receives(struct receive_queue *queue, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	for (; wr; wr = wr->next) {
		if (queue->count >= queue->limit || wr->num_sge > 4) {
			*bad = wr;
			return wr->num_sge > 4 ? EINVAL : ENOMEM;
		}
		struct receive *receive = &queue->receives[(queue->head + queue->count++) % queue->limit];
		receive->id = wr->wr_id;
		receive->elements = wr->num_sge;
		memcpy(receive->element, wr->sg_list, wr->num_sge * sizeof *wr->sg_list);
	}
	return 0;
}

int post_receive(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct queue_pair *pair = CONTAINER(qp, struct queue_pair, qp);
	int code = EINVAL;

	*bad = wr;
	pthread_mutex_lock(&lock);
	if (!qp->srq && qp->state != IBV_QPS_RESET)
		code = add_receives(pair->receives, wr, bad);
	while (code == 0 && qp->state == IBV_QPS_ERR && next_receive(pair))
		received(pair, (struct ibv_wc){.status = IBV_WC_WR_FLUSH_ERR, .opcode = IBV_WC_RECV});
	pthread_mutex_unlock(&lock);
	return code;
}

int post_shared(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	pthread_mutex_lock(&lock);
	int code = add_receives(&CONTAINER(srq, struct shared_receives, srq)->queue, wr, bad);
	pthread_mutex_unlock(&lock);
	return code;
}
