/* The RDMA connection manager, between ids of this process. */
#include "model.h"

#include <sys/eventfd.h>

struct identifier {
	struct rdma_cm_id id;
	struct identifier *next, *peer, *listener; /* of all; the other end; of one that a request brought: who listens */
	bool listens, connected;
	uint8_t timeout;
	struct rdma_conn_param asked;
};

struct event {
	struct rdma_cm_event event;
	struct event *next;
};

struct event_channel {
	struct rdma_event_channel channel; /* fd: a semaphore of the events */
	struct event *first;
};

static struct identifier *identifiers;
static struct ibv_context *contexts[2]; /* of the manager, one for each device */
static uint16_t next_port = 18515;

static struct identifier *of(struct rdma_cm_id *id)
{
	return CONTAINER(id, struct identifier, id);
}

static int failed(int code)
{
	errno = code;
	return -1;
}

static bool find_port(const struct sockaddr *address, int place[2])
{
	char text[INET_ADDRSTRLEN] = "";

	if (!address || address->sa_family != AF_INET)
		return false;
	inet_ntop(AF_INET, &((const struct sockaddr_in *)address)->sin_addr, text, sizeof text);
	size_t length = strlen(text);
	EACH_PORT(i, j) {
		const char *own = character()->device[i].port[j].address;
		if (own && strncmp(own, text, length) == 0 && own[length] == '/') {
			place[0] = i, place[1] = j;
			return true;
		}
	}
	return false;
}

EXPORT struct rdma_event_channel *rdma_create_event_channel(void)
{
	if (with("no-manager")) {
		errno = ENODEV; /* librdmacm: no /dev/infiniband/rdma_cm */
		return NULL;
	}
	struct event_channel *channel = calloc(1, sizeof *channel);
	channel->channel.fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
	return &channel->channel;
}

EXPORT void rdma_destroy_event_channel(struct rdma_event_channel *channel)
{
	close(channel->fd);
	free(CONTAINER(channel, struct event_channel, channel));
}

static struct event *event_of(struct identifier *id, enum rdma_cm_event_type type, int status)
{
	struct event *event = calloc(1, sizeof *event);
	event->event.id = &id->id;
	event->event.event = type;
	event->event.status = status;
	return event;
}

static void announce(struct rdma_event_channel *to, struct event *event)
{
	struct event_channel *channel = CONTAINER(to, struct event_channel, channel);
	struct event **last = &channel->first;
	uint64_t one = 1;

	while (*last)
		last = &(*last)->next;
	*last = event;
	ssize_t written = write(to->fd, &one, sizeof one);
	(void)written;
}

EXPORT int rdma_get_cm_event(struct rdma_event_channel *of_channel, struct rdma_cm_event **found)
{
	struct event_channel *channel = CONTAINER(of_channel, struct event_channel, channel);
	uint64_t one;

	for (;;) {
		if (read(of_channel->fd, &one, sizeof one) != sizeof one)
			return -1;
		pthread_mutex_lock(&lock);
		struct event *event = channel->first;
		if (event)
			channel->first = event->next;
		pthread_mutex_unlock(&lock);
		if (event) { /* else it was of an id that is no more */
			*found = &event->event;
			return 0;
		}
	}
}

EXPORT int rdma_ack_cm_event(struct rdma_cm_event *event)
{
	free(CONTAINER(event, struct event, event));
	return 0;
}

static struct identifier *new_id(struct rdma_event_channel *channel, void *context, enum rdma_port_space space,
				 enum ibv_qp_type type)
{
	struct identifier *id = calloc(1, sizeof *id);
	id->id.channel = channel;
	id->id.context = context;
	id->id.ps = space;
	id->id.qp_type = type;
	id->timeout = 18; /* kernel, core/cma.c: CMA_IBOE_PACKET_LIFETIME */
	id->next = identifiers;
	identifiers = id;
	return id;
}

EXPORT int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context,
			  enum rdma_port_space space)
{
	/* librdmacm/cma.c, rdma_create_id: the service type follows from the port space. */
	bool datagrams = space == RDMA_PS_UDP || space == RDMA_PS_IPOIB;

	pthread_mutex_lock(&lock);
	*id = &new_id(channel, context, space, datagrams ? IBV_QPT_UD : IBV_QPT_RC)->id;
	pthread_mutex_unlock(&lock);
	return 0;
}

EXPORT int rdma_destroy_id(struct rdma_cm_id *id)
{
	struct identifier *own = of(id);

	pthread_mutex_lock(&lock);
	for (struct identifier **place = &identifiers; *place;) {
		if ((*place)->peer == own)
			(*place)->peer = NULL;
		if ((*place)->listener == own)
			(*place)->listener = NULL;
		if (*place == own)
			*place = own->next;
		else
			place = &(*place)->next;
	}
	if (id->channel)
		for (struct event **place = &CONTAINER(id->channel, struct event_channel, channel)->first; *place;) {
			struct event *event = *place;
			if (event->event.id == id || event->event.listen_id == id) {
				*place = event->next;
				free(event);
			} else {
				place = &event->next;
			}
		}
	pthread_mutex_unlock(&lock);
	free(own);
	return 0;
}

/* Gives an id the device and the port at a place. */
static void put_at(struct identifier *id, const int place[2])
{
	if (!contexts[place[0]]) {
		int count;
		struct ibv_device **list = ibv_get_device_list(&count);
		contexts[place[0]] = ibv_open_device(list[place[0]]);
		ibv_free_device_list(list);
	}
	id->id.verbs = contexts[place[0]];
	id->id.port_num = place[1] + 1;
}

EXPORT int rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *address)
{
	struct sockaddr_in *own = &id->route.addr.src_sin;
	int place[2];

	if (!find_port(address, place))
		return failed(address->sa_family == AF_INET ? ENODEV : EADDRNOTAVAIL);
	pthread_mutex_lock(&lock);
	memcpy(own, address, sizeof *own);
	if (own->sin_port == 0)
		own->sin_port = htons(next_port++);
	put_at(of(id), place);
	pthread_mutex_unlock(&lock);
	return 0;
}

EXPORT int rdma_create_ep(struct rdma_cm_id **id, struct rdma_addrinfo *info, struct ibv_pd *pd,
			  struct ibv_qp_init_attr *attr)
{
	if (!(info->ai_flags & RAI_PASSIVE) || pd || attr)
		return failed(EINVAL); /* all that hcabench uses */
	pthread_mutex_lock(&lock);
	struct identifier *own = new_id(NULL, NULL, info->ai_port_space, info->ai_qp_type);
	pthread_mutex_unlock(&lock);
	*id = &own->id;
	if (rdma_bind_addr(*id, info->ai_src_addr) == 0)
		return 0;
	int code = errno;
	rdma_destroy_id(*id);
	return failed(code);
}

EXPORT int rdma_migrate_id(struct rdma_cm_id *id, struct rdma_event_channel *channel)
{
	id->channel = channel;
	return 0;
}

EXPORT __be16 rdma_get_src_port(struct rdma_cm_id *id)
{
	return id->route.addr.src_sin.sin_port;
}

EXPORT int rdma_set_option(struct rdma_cm_id *id, int level, int name, void *value, size_t length)
{
	if (level == RDMA_OPTION_ID && name == RDMA_OPTION_ID_ACK_TIMEOUT && length == 1)
		of(id)->timeout = *(uint8_t *)value;
	return 0;
}

EXPORT int rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *from, struct sockaddr *to, int timeout)
{
	int place[2] = {0}, destination[2] = {0};

	(void)timeout;
	if (!id->route.addr.src_sin.sin_port && from && rdma_bind_addr(id, from) != 0)
		return -1;
	bool there = find_port(to, destination);
	pthread_mutex_lock(&lock);
	if (there) {
		memcpy(&id->route.addr.dst_sin, to, sizeof(struct sockaddr_in));
		find_port(&id->route.addr.src_addr, place);
		put_at(of(id), with("no-routes") ? destination : place);
	}
	announce(id->channel, event_of(of(id), there ? RDMA_CM_EVENT_ADDR_RESOLVED : RDMA_CM_EVENT_ADDR_ERROR,
				       there ? 0 : -ENETUNREACH));
	pthread_mutex_unlock(&lock);
	return 0;
}

EXPORT int rdma_resolve_route(struct rdma_cm_id *id, int timeout)
{
	(void)timeout;
	pthread_mutex_lock(&lock);
	announce(id->channel, event_of(of(id), RDMA_CM_EVENT_ROUTE_RESOLVED, 0));
	pthread_mutex_unlock(&lock);
	return 0;
}

EXPORT int rdma_create_qp(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp *qp = ibv_create_qp(pd, attr);

	if (!qp)
		return -1;
	/* librdmacm/cma.c: ucma_init_conn_qp, ucma_init_ud_qp (RDMA_UDP_QKEY). */
	struct queue_pair *pair = CONTAINER(qp, struct queue_pair, qp);
	pair->attr.port_num = id->port_num;
	pair->attr.qkey = RDMA_UDP_QKEY;
	pair->attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
	qp->state = attr->qp_type == IBV_QPT_UD ? IBV_QPS_RTS : IBV_QPS_INIT;
	id->qp = qp;
	return 0;
}

EXPORT void rdma_destroy_qp(struct rdma_cm_id *id)
{
	ibv_destroy_qp(id->qp);
	id->qp = NULL;
}

EXPORT int rdma_listen(struct rdma_cm_id *id, int backlog)
{
	(void)backlog;
	of(id)->listens = true;
	return 0;
}

/* The way from a port to another one. */
static struct ibv_ah_attr way(struct identifier *from, struct identifier *to)
{
	const struct device *device = context_of(to->id.verbs)->device, *own = context_of(from->id.verbs)->device;
	const struct port *port = &device->port[to->id.port_num - 1];
	struct ibv_ah_attr attr = {.port_num = from->id.port_num, .dlid = port->lid};
	bool is_v2;

	if (device->driver->link_layer != IBV_LINK_LAYER_INFINIBAND) { /* RoCE v2 by the address: the last of the table */
		attr.is_global = 1;
		gid_of(device, port, gids_of(device, port) - 1, attr.grh.dgid.raw, &is_v2);
		attr.grh.sgid_index = gids_of(own, &own->port[from->id.port_num - 1]) - 1;
		attr.grh.hop_limit = 64;
	}
	return attr;
}

EXPORT int rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *asked)
{
	struct identifier *own = of(id), *listener;
	const struct sockaddr_in *to = &id->route.addr.dst_sin;

	pthread_mutex_lock(&lock);
	own->asked = *asked;
	for (listener = identifiers; listener; listener = listener->next) {
		const struct sockaddr_in *at = &listener->id.route.addr.src_sin;
		if (listener->listens && at->sin_port == to->sin_port && at->sin_addr.s_addr == to->sin_addr.s_addr)
			break;
	}
	if (!listener) {
		announce(id->channel, event_of(own, RDMA_CM_EVENT_REJECTED, 8)); /* no such service */
	} else {
		struct identifier *other = new_id(listener->id.channel, listener->id.context, id->ps, id->qp_type);
		int place[2] = {context_of(listener->id.verbs)->number, listener->id.port_num - 1};
		put_at(other, place);
		other->id.route.addr.src_sin = *to;
		other->id.route.addr.dst_sin = id->route.addr.src_sin;
		other->peer = own, other->listener = listener, own->peer = other;
		struct event *event = event_of(other, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
		event->event.listen_id = &listener->id;
		event->event.param.conn = *asked;
		announce(listener->id.channel, event);
	}
	pthread_mutex_unlock(&lock);
	return 0;
}

/* Brings a queue pair to RTS. Kernel, core/cm.c, cm_init_qp_rtr_attr: min_rnr_timer is 0. */
static void connected(struct identifier *own, const struct rdma_conn_param *by)
{
	struct queue_pair *pair = CONTAINER(own->id.qp, struct queue_pair, qp);

	pair->attr.ah_attr = way(own, own->peer);
	pair->attr.dest_qp_num = own->peer->id.qp->qp_num;
	pair->attr.path_mtu = context_of(own->id.verbs)->device->driver->mtu;
	pair->attr.min_rnr_timer = 0;
	pair->attr.timeout = own->timeout;
	pair->attr.retry_cnt = by->retry_count;
	pair->attr.rnr_retry = by->rnr_retry_count;
	pair->attr.max_rd_atomic = by->initiator_depth;
	pair->attr.max_dest_rd_atomic = by->responder_resources;
	pair->qp.state = IBV_QPS_RTS;
	own->connected = true;
}

EXPORT int rdma_accept(struct rdma_cm_id *id, struct rdma_conn_param *answer)
{
	struct identifier *own = of(id), *peer;

	pthread_mutex_lock(&lock);
	peer = own->peer;
	if (!peer || (id->qp_type != IBV_QPT_UD && (!id->qp || !peer->id.qp))) {
		pthread_mutex_unlock(&lock);
		return failed(EINVAL);
	}
	struct event *event = event_of(peer, RDMA_CM_EVENT_ESTABLISHED, 0);
	if (id->qp_type == IBV_QPT_UD) {
		event->event.param.ud.ah_attr = way(peer, own);
		event->event.param.ud.qp_num = id->qp ? id->qp->qp_num : answer->qp_num;
		event->event.param.ud.qkey = RDMA_UDP_QKEY;
	} else {
		connected(own, answer);
		connected(peer, &peer->asked);
		announce(id->channel, event_of(own, RDMA_CM_EVENT_ESTABLISHED, 0));
	}
	announce(peer->id.channel, event);
	pthread_mutex_unlock(&lock);
	return 0;
}

EXPORT int rdma_disconnect(struct rdma_cm_id *id)
{
	struct identifier *both[] = {of(id), NULL};

	pthread_mutex_lock(&lock);
	both[1] = both[0]->peer;
	for (int i = 0; i < 2; i++)
		if (both[i] && both[i]->connected) {
			both[i]->connected = false;
			if (both[i]->id.qp)
				fail(CONTAINER(both[i]->id.qp, struct queue_pair, qp));
			announce(both[i]->id.channel, event_of(both[i], RDMA_CM_EVENT_DISCONNECTED, 0));
		}
	pthread_mutex_unlock(&lock);
	return 0;
}
