/* A model of RDMA adapters for tests: README.md. */
#ifndef ADAPTERS_MODEL_H
#define ADAPTERS_MODEL_H

#define _GNU_SOURCE
#include <errno.h>
#include <arpa/inet.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define LENGTH(array) (sizeof(array) / sizeof *(array))
#define CONTAINER(pointer, type, member) ((type *)((char *)(pointer)-offsetof(type, member)))

/* ---- data ---- */

/* What makes a counter of a port grow, by packets. */
enum counted {
	NOTHING,       /* stays at its start */
	SENT,          /* sent by this function */
	RECEIVED,      /* received by this function */
	WIRE_SENT,     /* left the physical port */
	WIRE_RECEIVED, /* came over the physical port */
	LOOPED,        /* turned back within the adapter */
	NOT_READY,     /* sent again as the receiver was not ready */
	KINDS,
};

struct counter {
	const char *name; /* below the port's folder in sysfs; `device/NAME` of the device, `ethtool/NAME` of the interface */
	enum counted what;
	uint64_t start;
	int bits; /* it stops at the largest value of these; 0: it does not stop */
};

/* The errno of a driver that sets none. */
#define UNSET 0

/* What a driver decides. */
struct driver {
	const char *name, *node_type; /* of sysfs */
	enum ibv_node_type node;
	enum ibv_transport_type transport;
	uint32_t vendor, part;
	int link_layer;
	bool roce_v1;       /* the table has each GID twice */
	int services;       /* a bit for each ibv_qp_type */
	int service_errno;  /* of another service type */
	int datagram_header; /* what the byte_len of a datagram has beside the message */
	uint64_t stamp_mask, clock_khz; /* 0: no time stamps */
	bool raw_clock;     /* ibv_query_rt_values_ex */
	bool extended_queues, shared_receives, domains, paging;
	int in_order;       /* answer of ibv_query_qp_data_in_order */
	int query_mask;     /* of ibv_query_qp; 0: all */
	int max_qp_wr, max_cqe, max_sge, max_inline, reads;
	uint32_t max_message;
	enum ibv_mtu mtu;
	uint8_t speed, width;
	bool (*grants)(const struct driver *driver, struct ibv_qp_init_attr *wanted, int *code);
	const struct counter *counters; /* the last has no name */
};

struct port {
	enum ibv_port_state state;
	uint16_t lid, sm_lid;
	const char *interface, *address, *mac, *gid; /* gid: of those that are not made of an address */
	const char *bond;
	int wire; /* ports with the same number are functions of one physical port */
};

struct device {
	const char *name, *pci, *physfn;
	uint64_t guid, image_guid;
	const struct driver *driver;
	int ports;
	struct port port[2];
};

struct character {
	const char *name;
	int devices;
	struct device device[2];
};

const struct character *character(void);
#define EACH_PORT(at, number)                                                                                          \
	for (int at = 0; at < character()->devices; at++)                                                              \
		for (int number = 0; number < character()->device[at].ports; number++)
bool with(const char *circumstance);

/* The adapter's clock: a planted truth, which a test of the conversion knows. */
#define CLOCK_OFFSET 987654321987
#define CLOCK_PPM 37 /* by how much it is faster than the driver says */
uint64_t adapter_clock(const struct driver *driver);

/* ---- what is open in this process ---- */

extern pthread_mutex_t lock; /* of all below */
extern struct queue_pair *queue_pairs;
extern uint64_t grown[2][2][KINDS]; /* by device and port */

struct context {
	const struct device *device;
	int number; /* of the device */
	int event_pipe;
	struct verbs_context verbs; /* ends with the ibv_context */
};

struct memory {
	struct ibv_mr mr;
	int access;
};

struct channel {
	struct ibv_comp_channel channel;
	int pipe;
};

struct entry {
	struct ibv_wc wc;
	uint64_t stamp;
	struct queue_pair *of_sends; /* whose send queue it clears */
	uint64_t cleared;
};

struct completion_queue {
	struct ibv_cq_ex cq; /* begins as an ibv_cq */
	struct entry *entries, current;
	uint32_t head, count;
	bool armed, overrun;
};

struct receive {
	uint64_t id;
	int elements;
	struct ibv_sge element[4];
};

struct receive_queue {
	struct receive *receives;
	uint32_t head, count, limit;
};

struct shared_receives {
	struct ibv_srq srq;
	struct receive_queue queue;
};

struct send {
	struct send *next;
	struct ibv_send_wr wr; /* without its list */
	struct ibv_sge element[4];
	struct ibv_ah_attr to;
	uint8_t *copy; /* of inline data */
	uint32_t length;
	uint64_t place;
	bool signaled;
};

struct queue_pair {
	struct ibv_qp qp;
	struct queue_pair *next;
	struct ibv_qp_attr attr;
	struct ibv_qp_cap cap;
	bool all_signaled;
	struct receive_queue own, *receives;
	uint64_t posted, cleared;
	struct send *waiting, **last;
	uint64_t again; /* when the first of those waiting is tried again, in ns of the monotonic clock */
	int tries;
};

struct context *context_of(struct ibv_context *context);
const struct port *port_of(struct queue_pair *qp);
struct queue_pair *queue_pair_at(uint32_t number, const struct ibv_ah_attr *to, const struct driver *from,
				 int place[2]);
struct memory *memory_of(uint32_t key, uint64_t address, uint64_t length, int access);
void gid_of(const struct device *device, const struct port *port, int index, uint8_t gid[16], bool *is_v2);
int gids_of(const struct device *device, const struct port *port);
bool complete(struct completion_queue *queue, struct entry entry);
void fail(struct queue_pair *qp);

int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int post_receive(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
int post_shared(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

struct ibv_ah_attr *address_of(struct ibv_ah *ah);

#endif
