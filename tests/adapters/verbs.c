/* Devices, and the objects of an open one. */
#include "model.h"

#include <fcntl.h>

#undef ibv_query_port
#undef ibv_reg_mr

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
uint64_t grown[2][2][KINDS];

static struct ibv_device devices[2];
struct queue_pair *queue_pairs;
static struct memory *memories[1 << 16];
static uint32_t next_queue_pair = 0x41;

struct context *context_of(struct ibv_context *context)
{
	return CONTAINER(context, struct context, verbs.context);
}

static const struct driver *driver_of(struct ibv_context *context)
{
	return context_of(context)->device->driver;
}

/* What a call returns that failed with this code. */
static void *none(int code)
{
	if (code != UNSET)
		errno = code;
	return NULL;
}

/* ---- devices ---- */

EXPORT struct ibv_device **ibv_get_device_list(int *count)
{
	const struct character *plays = character();
	struct ibv_device **list = calloc(plays->devices + 1, sizeof *list);

	for (int i = 0; i < plays->devices; i++) {
		const struct device *device = &plays->device[i];
		devices[i].node_type = device->driver->node;
		devices[i].transport_type = device->driver->transport;
		snprintf(devices[i].name, sizeof devices[i].name, "%s", device->name);
		list[i] = &devices[i];
	}
	if (count)
		*count = plays->devices;
	return list;
}

EXPORT void ibv_free_device_list(struct ibv_device **list)
{
	free(list);
}

EXPORT const char *ibv_get_device_name(struct ibv_device *device)
{
	return device->name;
}

EXPORT int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	const struct device *device = context_of(context)->device;
	const struct driver *driver = device->driver;

	*attr = (struct ibv_device_attr){
		.fw_ver = "model of an adapter", /* so that no result of it looks like a device's */
		.node_guid = htobe64(device->guid),
		.sys_image_guid = htobe64(device->image_guid),
		.vendor_id = driver->vendor,
		.vendor_part_id = driver->part,
		.max_qp = 4096,
		.max_qp_wr = driver->max_qp_wr,
		.max_cqe = driver->max_cqe,
		.max_qp_rd_atom = driver->reads,
		.max_qp_init_rd_atom = driver->reads,
		.atomic_cap = IBV_ATOMIC_NONE, /* the model has none */
		.max_srq = driver->shared_receives ? 1024 : 0,
		.max_srq_wr = driver->shared_receives ? driver->max_qp_wr - 1 : 0,
		.max_srq_sge = driver->shared_receives ? 4 : 0,
		.phys_port_cnt = device->ports,
	};
	return 0;
}

static int query_device_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
			   struct ibv_device_attr_ex *attr, size_t size)
{
	const struct driver *driver = driver_of(context);
	struct ibv_device_attr_ex all = {0};

	if (input && input->comp_mask)
		return EINVAL;
	ibv_query_device(context, &all.orig_attr);
	all.completion_timestamp_mask = driver->stamp_mask;
	all.hca_core_clock = driver->clock_khz;
	if (driver->paging) {
		uint32_t connected = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_READ;
		all.odp_caps.general_caps = IBV_ODP_SUPPORT;
		all.odp_caps.per_transport_caps.rc_odp_caps = connected | IBV_ODP_SUPPORT_SRQ_RECV;
		all.odp_caps.per_transport_caps.ud_odp_caps = IBV_ODP_SUPPORT_SEND;
	}
	memcpy(attr, &all, size < sizeof all ? size : sizeof all);
	return 0;
}

static int query_port(struct ibv_context *context, uint8_t number, struct ibv_port_attr *attr, size_t size)
{
	const struct device *device = context_of(context)->device;
	const struct driver *driver = device->driver;

	if (number < 1 || number > device->ports)
		return EINVAL;
	const struct port *port = &device->port[number - 1];
	struct ibv_port_attr all = {
		.state = port->state,
		.active_mtu = driver->mtu,
		.max_msg_sz = driver->max_message,
		.lid = port->lid,
		.sm_lid = port->sm_lid,
		.active_width = driver->width,
		.active_speed = driver->speed,
		.link_layer = driver->link_layer,
	};
	memcpy(attr, &all, size < sizeof all ? size : sizeof all);
	return 0;
}

EXPORT int ibv_query_port(struct ibv_context *context, uint8_t number, struct _compat_ibv_port_attr *attr)
{
	/* The old structure ends before `flags`. */
	return query_port(context, number, (struct ibv_port_attr *)attr, offsetof(struct ibv_port_attr, flags));
}

int gids_of(const struct device *device, const struct port *port)
{
	if (!port->address || device->driver->transport == IBV_TRANSPORT_IWARP)
		return 1;
	return device->driver->roce_v1 ? 4 : 2;
}

/* RoCE: the GID of the link and that of the address, each for v1 and v2 where the driver has both (core/cache.c). */
void gid_of(const struct device *device, const struct port *port, int index, uint8_t gid[16], bool *is_v2)
{
	unsigned byte[6], part[4];
	bool roce_v1 = device->driver->roce_v1;

	memset(gid, 0, 16);
	*is_v2 = false;
	gid[0] = 0xfe, gid[1] = 0x80;
	if (port->mac) {
		sscanf(port->mac, "%x:%x:%x:%x:%x:%x", byte, byte + 1, byte + 2, byte + 3, byte + 4, byte + 5);
		if (device->driver->transport == IBV_TRANSPORT_IWARP) { /* kernel, irdma_iw_query_gid */
			for (int i = 0; i < 6; i++)
				gid[i] = byte[i];
			return;
		}
		*is_v2 = !roce_v1 || index % 2 == 1;
		if (index >= (roce_v1 ? 2 : 1)) {
			sscanf(port->address, "%u.%u.%u.%u", part, part + 1, part + 2, part + 3);
			memset(gid, 0, 16);
			gid[10] = gid[11] = 0xff;
			for (int i = 0; i < 4; i++)
				gid[12 + i] = part[i];
			return;
		}
		uint8_t link[8] = {byte[0] ^ 2, byte[1], byte[2], 0xff, 0xfe, byte[3], byte[4], byte[5]};
		memcpy(gid + 8, link, 8);
	} else if (port->gid) {
		inet_pton(AF_INET6, port->gid, gid);
	} else {
		uint64_t guid = htobe64(device->guid);
		memcpy(gid + 8, &guid, 8);
	}
}

static int query_rt_values(struct ibv_context *context, struct ibv_values_ex *values)
{
	const struct driver *driver = driver_of(context);

	if (!driver->raw_clock)
		return EOPNOTSUPP;
	if (values->comp_mask & ~IBV_VALUES_MASK_RAW_CLOCK)
		return EINVAL;
	/* mlx5_query_rt_values: the ticks are in the member for nanoseconds. */
	values->raw_clock.tv_sec = 0;
	values->raw_clock.tv_nsec = adapter_clock(driver);
	return 0;
}

static void asynchronous(struct ibv_context *context, struct ibv_async_event event)
{
	ssize_t written = write(context_of(context)->event_pipe, &event, sizeof event);
	(void)written;
}

EXPORT int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
	return read(context->async_fd, event, sizeof *event) == sizeof *event ? 0 : -1;
}

EXPORT void ibv_ack_async_event(struct ibv_async_event *event)
{
	(void)event;
}

/* ---- domains and memory ---- */

struct thread_domain {
	struct ibv_td td;
	int parents; /* that hold it */
};

/* Of a protection domain or a parent domain; the kernel counts those of the former (core/uverbs_cmd.c, usecnt). */
struct domain {
	struct ibv_pd pd;
	int users;
	struct domain *protection; /* of a parent domain */
	struct thread_domain *thread;
};

static struct domain *domain_of(struct ibv_pd *pd)
{
	return CONTAINER(pd, struct domain, pd);
}

/* Changes by how much a domain is used. */
static void use(struct ibv_pd *pd, int change)
{
	pthread_mutex_lock(&lock);
	domain_of(pd)->users += change;
	pthread_mutex_unlock(&lock);
}

/* A device refuses it, and what is left is never freed. In a test it is a mistake in the order of destruction. */
static int busy(const char *what)
{
	fprintf(stderr, "model of an adapter: %s is destroyed while it is used\n", what);
	abort();
	return EBUSY;
}

EXPORT struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	struct domain *domain = calloc(1, sizeof *domain);
	domain->pd.context = context;
	return &domain->pd;
}

/* providers/mlx5/verbs.c: mlx5_free_pd, mlx5_dealloc_parent_domain. */
EXPORT int ibv_dealloc_pd(struct ibv_pd *pd)
{
	struct domain *domain = domain_of(pd);

	if (domain->users)
		return busy("a domain");
	if (domain->protection)
		use(&domain->protection->pd, -1);
	if (domain->thread)
		domain->thread->parents--;
	free(domain);
	return 0;
}

static struct ibv_td *alloc_td(struct ibv_context *context, struct ibv_td_init_attr *attr)
{
	if (!driver_of(context)->domains || attr->comp_mask)
		return none(EOPNOTSUPP);
	struct thread_domain *thread = calloc(1, sizeof *thread);
	thread->td.context = context;
	return &thread->td;
}

static int dealloc_td(struct ibv_td *td)
{
	struct thread_domain *thread = CONTAINER(td, struct thread_domain, td);

	if (thread->parents)
		return busy("a thread domain");
	free(thread);
	return 0;
}

static struct ibv_pd *alloc_parent_domain(struct ibv_context *context, struct ibv_parent_domain_init_attr *attr)
{
	if (!driver_of(context)->domains)
		return none(EOPNOTSUPP);
	if (!attr->pd || attr->comp_mask & ~(IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT))
		return none(EINVAL);
	/* Drivers take one without: then it is of no thread, which no test is to take for one. */
	if (!attr->td)
		return none(EINVAL);
	struct domain *parent = domain_of(ibv_alloc_pd(context));
	parent->protection = domain_of(attr->pd);
	parent->thread = CONTAINER(attr->td, struct thread_domain, td);
	parent->thread->parents++;
	use(attr->pd, 1);
	return &parent->pd;
}

EXPORT struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *address, size_t length, uint64_t iova, unsigned access)
{
	const int remote = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
	uint32_t key = 0;

	/* Kernel, include/rdma/ib_verbs.h, ib_check_mr_access; before 6.7 the second was EINVAL. */
	if (access & remote && !(access & IBV_ACCESS_LOCAL_WRITE))
		return none(EINVAL);
	if (access & IBV_ACCESS_ON_DEMAND && !driver_of(pd->context)->paging)
		return none(EOPNOTSUPP);
	pthread_mutex_lock(&lock);
	while (key < LENGTH(memories) && memories[key])
		key++;
	struct memory *memory = key < LENGTH(memories) ? calloc(1, sizeof *memory) : NULL;
	if (memory) {
		struct ibv_mr mr = {pd->context, pd, (void *)(uintptr_t)iova, length, 0, (key + 1) << 8, (key + 1) << 8};
		mr.addr = address;
		memory->mr = mr;
		memory->access = access;
		memories[key] = memory;
	}
	pthread_mutex_unlock(&lock);
	if (memory)
		use(pd, 1);
	return memory ? &memory->mr : none(ENOMEM);
}

EXPORT struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *address, size_t length, int access)
{
	return ibv_reg_mr_iova2(pd, address, length, (uintptr_t)address, access);
}

EXPORT int ibv_dereg_mr(struct ibv_mr *mr)
{
	pthread_mutex_lock(&lock);
	memories[(mr->lkey >> 8) - 1] = NULL;
	/* What is posted goes first: no rule of drivers, but of who registers memory. */
	for (struct queue_pair *qp = queue_pairs; qp; qp = qp->next)
		if (qp->qp.pd == mr->pd)
			busy("memory of queue pairs");
	pthread_mutex_unlock(&lock);
	use(mr->pd, -1);
	free(CONTAINER(mr, struct memory, mr));
	return 0;
}

struct memory *memory_of(uint32_t key, uint64_t address, uint64_t length, int access)
{
	uint32_t index = (key >> 8) - 1;
	struct memory *memory = index < LENGTH(memories) && (key & 255) == 0 ? memories[index] : NULL;

	if (!memory || (memory->access & access) != access)
		return NULL;
	uint64_t start = (uintptr_t)memory->mr.addr;
	bool fits = length <= memory->mr.length && address - start <= memory->mr.length - length;
	return address >= start && fits ? memory : NULL;
}

/* ---- completion queues ---- */

EXPORT struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
	struct channel *channel = calloc(1, sizeof *channel);
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) != 0) {
		free(channel);
		return NULL;
	}
	channel->channel.context = context;
	channel->channel.fd = ends[0];
	channel->pipe = ends[1];
	return &channel->channel;
}

EXPORT int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	struct channel *whole = CONTAINER(channel, struct channel, channel);
	if (channel->refcnt)
		return busy("a completion channel");
	close(channel->fd);
	close(whole->pipe);
	free(whole);
	return 0;
}

EXPORT int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **user)
{
	if (read(channel->fd, cq, sizeof *cq) != sizeof *cq)
		return -1;
	*user = (*cq)->cq_context;
	return 0;
}

EXPORT void ibv_ack_cq_events(struct ibv_cq *cq, unsigned count)
{
	cq->comp_events_completed += count;
}

static int req_notify_cq(struct ibv_cq *cq, int solicited)
{
	(void)solicited;
	pthread_mutex_lock(&lock);
	((struct completion_queue *)cq)->armed = true;
	pthread_mutex_unlock(&lock);
	return 0;
}

bool complete(struct completion_queue *queue, struct entry entry)
{
	struct ibv_cq *cq = (struct ibv_cq *)&queue->cq;

	entry.stamp = adapter_clock(driver_of(cq->context));
	if (queue->count > (uint32_t)cq->cqe) {
		if (!queue->overrun)
			asynchronous(cq->context, (struct ibv_async_event){{.cq = cq}, IBV_EVENT_CQ_ERR});
		queue->overrun = true;
		return false;
	}
	queue->entries[(queue->head + queue->count) % (cq->cqe + 1)] = entry;
	__atomic_store_n(&queue->count, queue->count + 1, __ATOMIC_RELEASE);
	if (queue->armed && cq->channel) {
		queue->armed = false;
		ssize_t written = write(CONTAINER(cq->channel, struct channel, channel)->pipe, &cq, sizeof cq);
		(void)written;
	}
	return true;
}

/* The next completion; the lock is held. */
static struct entry *take(struct completion_queue *queue)
{
	if (queue->count == 0)
		return NULL;
	struct entry *entry = &queue->entries[queue->head % (queue->cq.cqe + 1)];
	queue->head = (queue->head + 1) % (queue->cq.cqe + 1);
	__atomic_store_n(&queue->count, queue->count - 1, __ATOMIC_RELAXED);
	/* Requests without a completion are done when a later one is (mlx5: poll_one moves the tail). */
	if (entry->of_sends && entry->cleared > entry->of_sends->cleared)
		entry->of_sends->cleared = entry->cleared;
	return entry;
}

static int poll_cq(struct ibv_cq *cq, int most, struct ibv_wc *wc)
{
	struct completion_queue *queue = (struct completion_queue *)cq;
	struct entry *entry;
	int count = 0;

	if (__atomic_load_n(&queue->count, __ATOMIC_ACQUIRE) == 0)
		return 0;
	pthread_mutex_lock(&lock);
	while (count < most && (entry = take(queue)))
		wc[count++] = entry->wc;
	pthread_mutex_unlock(&lock);
	return count;
}

static int next_poll(struct ibv_cq_ex *cq)
{
	struct completion_queue *queue = (struct completion_queue *)cq;

	if (__atomic_load_n(&queue->count, __ATOMIC_ACQUIRE) == 0)
		return ENOENT;
	pthread_mutex_lock(&lock);
	struct entry *entry = take(queue);
	if (entry) {
		queue->current = *entry;
		cq->status = entry->wc.status;
		cq->wr_id = entry->wc.wr_id;
	}
	pthread_mutex_unlock(&lock);
	return entry ? 0 : ENOENT;
}

static int start_poll(struct ibv_cq_ex *cq, struct ibv_poll_cq_attr *attr)
{
	return attr->comp_mask ? EINVAL : next_poll(cq);
}

static void end_poll(struct ibv_cq_ex *cq)
{
	(void)cq;
}

#define READ(type, name, value)                                                                                        \
	static type read_##name(struct ibv_cq_ex *cq)                                                                  \
	{                                                                                                              \
		const struct entry *entry = &((struct completion_queue *)cq)->current;                                  \
		return value;                                                                                          \
	}
READ(enum ibv_wc_opcode, opcode, entry->wc.opcode)
READ(uint32_t, vendor_err, entry->wc.vendor_err)
READ(uint32_t, byte_len, entry->wc.byte_len)
READ(__be32, imm_data, entry->wc.imm_data)
READ(uint32_t, qp_num, entry->wc.qp_num)
READ(uint32_t, src_qp, entry->wc.src_qp)
READ(unsigned int, wc_flags, entry->wc.wc_flags)
READ(uint32_t, slid, entry->wc.slid)
READ(uint8_t, sl, entry->wc.sl)
READ(uint8_t, dlid_path_bits, entry->wc.dlid_path_bits)
READ(uint64_t, completion_ts, entry->stamp)

/* By the time of day, as of now: the adapter's own clock of it is not modelled. */
static uint64_t read_completion_wallclock_ns(struct ibv_cq_ex *cq)
{
	const struct entry *entry = &((struct completion_queue *)cq)->current;
	const struct driver *driver = driver_of(cq->context);
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	uint64_t ticks = (adapter_clock(driver) - entry->stamp) & driver->stamp_mask;
	return now.tv_sec * 1000000000ull + now.tv_nsec - ticks * 1000000 / driver->clock_khz;
}

static struct completion_queue *create_queue(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr)
{
	const struct driver *driver = driver_of(context);

	if (attr->cqe < 1 || attr->cqe > (uint32_t)driver->max_cqe || attr->comp_vector >= (uint32_t)context->num_comp_vectors)
		return none(EINVAL);
	struct completion_queue *queue = calloc(1, sizeof *queue);
	queue->entries = calloc(attr->cqe + 1, sizeof *queue->entries);
	queue->cq.context = context;
	queue->cq.channel = attr->channel;
	queue->cq.cq_context = attr->cq_context;
	queue->cq.cqe = attr->cqe;
	if (attr->channel)
		attr->channel->refcnt++;
	return queue;
}

EXPORT struct ibv_cq *ibv_create_cq(struct ibv_context *context, int entries, void *user,
				    struct ibv_comp_channel *channel, int vector)
{
	struct ibv_cq_init_attr_ex attr = {.cqe = entries, .cq_context = user, .channel = channel, .comp_vector = vector};
	return (struct ibv_cq *)create_queue(context, &attr);
}

static struct ibv_cq_ex *create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr)
{
	const struct driver *driver = driver_of(context);
	uint64_t stamps = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;
	uint64_t flags = attr->wc_flags, known = IBV_WC_STANDARD_FLAGS | (driver->raw_clock ? stamps : 0);

	if (!driver->extended_queues || flags & ~known)
		return none(EOPNOTSUPP);
	struct completion_queue *queue = create_queue(context, attr);
	if (!queue)
		return NULL;
	struct ibv_cq_ex *cq = &queue->cq;
	cq->start_poll = start_poll, cq->next_poll = next_poll, cq->end_poll = end_poll;
	cq->read_opcode = read_opcode, cq->read_vendor_err = read_vendor_err, cq->read_wc_flags = read_wc_flags;
#define IF_ASKED(flag, name)                                                                                           \
	if (flags & IBV_WC_EX_WITH_##flag)                                                                             \
	cq->read_##name = read_##name
	IF_ASKED(BYTE_LEN, byte_len);
	IF_ASKED(IMM, imm_data);
	IF_ASKED(QP_NUM, qp_num);
	IF_ASKED(SRC_QP, src_qp);
	IF_ASKED(SLID, slid);
	IF_ASKED(SL, sl);
	IF_ASKED(DLID_PATH_BITS, dlid_path_bits);
	IF_ASKED(COMPLETION_TIMESTAMP, completion_ts);
	IF_ASKED(COMPLETION_TIMESTAMP_WALLCLOCK, completion_wallclock_ns);
	return cq;
}

EXPORT int ibv_destroy_cq(struct ibv_cq *cq)
{
	struct completion_queue *queue = (struct completion_queue *)cq;

	pthread_mutex_lock(&lock);
	bool used = false;
	for (struct queue_pair *qp = queue_pairs; qp; qp = qp->next)
		used |= qp->qp.send_cq == cq || qp->qp.recv_cq == cq;
	pthread_mutex_unlock(&lock);
	if (used)
		return busy("a completion queue");
	if (cq->channel)
		cq->channel->refcnt--;
	free(queue->entries);
	free(queue);
	return 0;
}

EXPORT struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	const struct driver *driver = driver_of(pd->context);

	if (!driver->shared_receives)
		return none(EOPNOTSUPP);
	if (attr->attr.max_wr < 1 || attr->attr.max_wr >= (uint32_t)driver->max_qp_wr || attr->attr.max_sge > 4)
		return none(EINVAL);
	struct shared_receives *shared = calloc(1, sizeof *shared);
	shared->srq.context = pd->context;
	shared->srq.srq_context = attr->srq_context;
	shared->srq.pd = pd;
	shared->queue.limit = attr->attr.max_wr;
	shared->queue.receives = calloc(attr->attr.max_wr, sizeof(struct receive));
	use(pd, 1);
	return &shared->srq;
}

EXPORT int ibv_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr)
{
	*attr = (struct ibv_srq_attr){CONTAINER(srq, struct shared_receives, srq)->queue.limit, 4, 0};
	return 0;
}

EXPORT int ibv_destroy_srq(struct ibv_srq *srq)
{
	struct shared_receives *shared = CONTAINER(srq, struct shared_receives, srq);

	pthread_mutex_lock(&lock);
	bool used = false;
	for (struct queue_pair *qp = queue_pairs; qp; qp = qp->next)
		used |= qp->qp.srq == srq;
	pthread_mutex_unlock(&lock);
	if (used)
		return busy("a shared receive queue");
	use(srq->pd, -1);
	free(shared->queue.receives);
	free(shared);
	return 0;
}

/* ---- queue pairs ---- */

const struct port *port_of(struct queue_pair *qp)
{
	return &context_of(qp->qp.context)->device->port[qp->attr.port_num - 1];
}

/* The queue pair of this number at the port that an address vector leads to, and where that is. */
struct queue_pair *queue_pair_at(uint32_t number, const struct ibv_ah_attr *to, const struct driver *from, int place[2])
{
	for (struct queue_pair *qp = queue_pairs; qp; qp = qp->next) {
		const struct context *context = context_of(qp->qp.context);
		if (qp->qp.qp_num != number || !qp->attr.port_num)
			continue;
		const struct port *port = port_of(qp);
		bool here = !to->is_global && from->link_layer == IBV_LINK_LAYER_INFINIBAND && port->lid == to->dlid;
		for (int i = 0; to->is_global && i < gids_of(context->device, port); i++) {
			uint8_t gid[16];
			bool is_v2;
			gid_of(context->device, port, i, gid, &is_v2);
			here |= memcmp(gid, to->grh.dgid.raw, 16) == 0;
		}
		if (!here || port->state != IBV_PORT_ACTIVE)
			return NULL;
		place[0] = context->number;
		place[1] = qp->attr.port_num - 1;
		return qp;
	}
	return NULL;
}

EXPORT struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	const struct driver *driver = driver_of(pd->context);
	int code = EINVAL;

	if (!(driver->services >> attr->qp_type & 1))
		return none(driver->service_errno);
	if (!attr->send_cq || !attr->recv_cq || (attr->srq && !driver->shared_receives))
		return none(EINVAL);
	if (!driver->grants(driver, attr, &code))
		return none(code);
	struct queue_pair *pair = calloc(1, sizeof *pair);
	pair->cap = attr->cap;
	pair->all_signaled = attr->sq_sig_all;
	pair->last = &pair->waiting;
	if (attr->srq) {
		pair->receives = &CONTAINER(attr->srq, struct shared_receives, srq)->queue;
	} else {
		pair->receives = &pair->own;
		pair->own.limit = attr->cap.max_recv_wr;
		pair->own.receives = calloc(attr->cap.max_recv_wr + 1, sizeof(struct receive));
	}
	struct ibv_qp *qp = &pair->qp;
	qp->context = pd->context;
	qp->qp_context = attr->qp_context;
	qp->pd = pd;
	qp->send_cq = attr->send_cq;
	qp->recv_cq = attr->recv_cq;
	qp->srq = attr->srq;
	qp->qp_type = attr->qp_type;
	pthread_mutex_lock(&lock);
	qp->qp_num = next_queue_pair++;
	pair->next = queue_pairs;
	queue_pairs = pair;
	pthread_mutex_unlock(&lock);
	use(pd, 1);
	return qp;
}

/* Drops what a queue pair has in a completion queue (mlx5: mlx5_cq_clean). */
static void clean(struct completion_queue *queue, struct queue_pair *pair)
{
	uint32_t kept = 0, size = queue->cq.cqe + 1;

	for (uint32_t i = 0; i < queue->count; i++) {
		struct entry entry = queue->entries[(queue->head + i) % size];
		if (entry.wc.qp_num != pair->qp.qp_num)
			queue->entries[(queue->head + kept++) % size] = entry;
	}
	queue->count = kept;
}

EXPORT int ibv_destroy_qp(struct ibv_qp *qp)
{
	struct queue_pair *pair = CONTAINER(qp, struct queue_pair, qp);

	pthread_mutex_lock(&lock);
	for (struct queue_pair **place = &queue_pairs; *place; place = &(*place)->next)
		if (*place == pair) {
			*place = pair->next;
			break;
		}
	fail(pair); /* what that completes is cleaned away */
	clean((struct completion_queue *)qp->send_cq, pair);
	clean((struct completion_queue *)qp->recv_cq, pair);
	pthread_mutex_unlock(&lock);
	use(qp->pd, -1);
	free(pair->own.receives);
	free(pair);
	return 0;
}

/* Kernel, core/verbs.c, qp_state_table: what a transition must have, and what it may have beside the state. */
static bool allowed(enum ibv_qp_type type, enum ibv_qp_state from, enum ibv_qp_state to, int mask)
{
	bool rc = type == IBV_QPT_RC, ud = type == IBV_QPT_UD;
	int must = 0, may = IBV_QP_STATE | IBV_QP_CUR_STATE;

	if (to == IBV_QPS_RESET || to == IBV_QPS_ERR)
		return (mask & ~may) == 0;
	if (from == IBV_QPS_RESET && to == IBV_QPS_INIT) {
		must = IBV_QP_PKEY_INDEX | IBV_QP_PORT | (ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS);
	} else if (from == IBV_QPS_INIT && to == IBV_QPS_RTR) {
		must = ud ? 0 : IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
		must |= rc ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0;
		may |= IBV_QP_PKEY_INDEX | (ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS | IBV_QP_ALT_PATH);
	} else if (from == IBV_QPS_RTR && to == IBV_QPS_RTS) {
		must = IBV_QP_SQ_PSN;
		must |= rc ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC : 0;
		may |= ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS | IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE;
		may |= rc ? IBV_QP_MIN_RNR_TIMER : 0;
	} else if (from == IBV_QPS_RTS && to == IBV_QPS_RTS) {
		may |= ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS | IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE;
		may |= rc ? IBV_QP_MIN_RNR_TIMER : 0;
	} else {
		return false;
	}
	return (mask & must) == must && (mask & ~(must | may)) == 0;
}

EXPORT int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	struct queue_pair *pair = CONTAINER(qp, struct queue_pair, qp);
	const struct device *device = context_of(qp->context)->device;
	const struct driver *driver = device->driver;
	enum ibv_qp_state to = mask & IBV_QP_STATE ? attr->qp_state : qp->state;

	if (!allowed(qp->qp_type, qp->state, to, mask))
		return EINVAL;
	if (mask & IBV_QP_PORT && (attr->port_num < 1 || attr->port_num > device->ports))
		return EINVAL;
	if (mask & IBV_QP_PKEY_INDEX && attr->pkey_index != 0)
		return EINVAL;
	/* Kernel, core/verbs.c, rdma_check_ah_attr: RoCE has a global route always. */
	if (mask & IBV_QP_AV && driver->link_layer == IBV_LINK_LAYER_ETHERNET && !attr->ah_attr.is_global)
		return EINVAL;
	if (mask & IBV_QP_PATH_MTU && attr->path_mtu > driver->mtu)
		return EINVAL;
	if ((mask & IBV_QP_MAX_DEST_RD_ATOMIC && attr->max_dest_rd_atomic > driver->reads) ||
	    (mask & IBV_QP_MAX_QP_RD_ATOMIC && attr->max_rd_atomic > driver->reads))
		return EINVAL;
	pthread_mutex_lock(&lock);
#define TAKE(flag, member)                                                                                             \
	if (mask & IBV_QP_##flag)                                                                                      \
	pair->attr.member = attr->member
	TAKE(PKEY_INDEX, pkey_index);
	TAKE(PORT, port_num);
	TAKE(QKEY, qkey);
	TAKE(ACCESS_FLAGS, qp_access_flags);
	TAKE(AV, ah_attr);
	TAKE(PATH_MTU, path_mtu);
	TAKE(DEST_QPN, dest_qp_num);
	TAKE(RQ_PSN, rq_psn);
	TAKE(SQ_PSN, sq_psn);
	TAKE(MAX_DEST_RD_ATOMIC, max_dest_rd_atomic);
	TAKE(MAX_QP_RD_ATOMIC, max_rd_atomic);
	TAKE(MIN_RNR_TIMER, min_rnr_timer);
	TAKE(TIMEOUT, timeout);
	TAKE(RETRY_CNT, retry_cnt);
	TAKE(RNR_RETRY, rnr_retry);
	if (to == IBV_QPS_ERR)
		fail(pair);
	else
		qp->state = to;
	pair->attr.qp_state = pair->attr.cur_qp_state = qp->state;
	pthread_mutex_unlock(&lock);
	return 0;
}

EXPORT int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *initial)
{
	struct queue_pair *pair = CONTAINER(qp, struct queue_pair, qp);
	int most = driver_of(qp->context)->query_mask;

	if (most && mask & ~most)
		return EOPNOTSUPP;
	pthread_mutex_lock(&lock);
	*attr = pair->attr;
	attr->qp_state = attr->cur_qp_state = qp->state;
	attr->cap = pair->cap;
	pthread_mutex_unlock(&lock);
	*initial = (struct ibv_qp_init_attr){qp->qp_context, qp->send_cq, qp->recv_cq, qp->srq, pair->cap, qp->qp_type,
					     pair->all_signaled};
	return 0;
}

EXPORT int ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode opcode, uint32_t flags)
{
	(void)opcode;
	return flags == 0 && qp->state == IBV_QPS_RTS ? driver_of(qp->context)->in_order : 0;
}

/* An address handle is its attributes. */
struct address {
	struct ibv_ah ah;
	struct ibv_ah_attr attr;
};

EXPORT struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	/* As for a connection; EFA asks for none, and sends to GID 0 then (efa_create_ah of the kernel takes it as it is). */
	if (driver_of(pd->context)->link_layer == IBV_LINK_LAYER_ETHERNET && !attr->is_global)
		return none(EINVAL);
	struct address *address = calloc(1, sizeof *address);
	address->ah.context = pd->context;
	address->ah.pd = pd;
	address->attr = *attr;
	use(pd, 1);
	return &address->ah;
}

EXPORT int ibv_destroy_ah(struct ibv_ah *ah)
{
	use(ah->pd, -1);
	free(CONTAINER(ah, struct address, ah));
	return 0;
}

struct ibv_ah_attr *address_of(struct ibv_ah *ah)
{
	return &CONTAINER(ah, struct address, ah)->attr;
}

EXPORT const char *ibv_wc_status_str(enum ibv_wc_status status)
{
	return status == IBV_WC_SUCCESS ? "success" : "a failure of the model";
}

/* ---- an open device ---- */

EXPORT struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	struct context *context = calloc(1, sizeof *context);
	struct ibv_context *inner = &context->verbs.context;
	static int opened; /* the second device, so many times */
	int ends[2];

	if (with("gone") && device != devices && __atomic_fetch_add(&opened, 1, __ATOMIC_RELAXED) > 0) {
		free(context);
		return none(ENODEV);
	}
	if (pipe2(ends, O_CLOEXEC) != 0) {
		free(context);
		return NULL;
	}
	context->number = device - devices;
	context->device = &character()->device[context->number];
	context->event_pipe = ends[1];
	inner->device = device;
	inner->async_fd = ends[0];
	inner->cmd_fd = -1;
	inner->num_comp_vectors = 4;
	inner->abi_compat = __VERBS_ABI_IS_EXTENDED;
	inner->ops.poll_cq = poll_cq;
	inner->ops.req_notify_cq = req_notify_cq;
	inner->ops.post_send = post_send;
	inner->ops.post_recv = post_receive;
	inner->ops.post_srq_recv = post_shared;
	context->verbs.sz = sizeof context->verbs;
	context->verbs.query_port = query_port;
	context->verbs.query_device_ex = query_device_ex;
	context->verbs.query_rt_values = query_rt_values;
	context->verbs.create_cq_ex = create_cq_ex;
	context->verbs.alloc_td = alloc_td;
	context->verbs.dealloc_td = dealloc_td;
	context->verbs.alloc_parent_domain = alloc_parent_domain;
	return inner;
}

EXPORT int ibv_close_device(struct ibv_context *context)
{
	struct context *whole = context_of(context);
	close(context->async_fd);
	close(whole->event_pipe);
	free(whole);
	return 0;
}
