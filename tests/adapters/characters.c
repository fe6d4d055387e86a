/* The adapters that the model plays. What no source confirms has the mark "unconfirmed". */
#include "model.h"

#define RC (1 << IBV_QPT_RC)
#define UC (1 << IBV_QPT_UC)
#define UD (1 << IBV_QPT_UD)

static uint64_t power_of_two(uint64_t least)
{
	uint64_t power = 1;
	while (power < least)
		power *= 2;
	return power;
}

static uint32_t aligned(uint32_t value, uint32_t to)
{
	return (value + to - 1) / to * to;
}

static bool refuse(int *code, int with_code)
{
	*code = with_code;
	return false;
}

/* The limits that ibv_query_device states, which each driver or its kernel part checks. */
static bool within(const struct driver *driver, const struct ibv_qp_cap *cap)
{
	return cap->max_send_wr <= (uint32_t)driver->max_qp_wr && cap->max_recv_wr <= (uint32_t)driver->max_qp_wr &&
	       cap->max_send_sge <= (uint32_t)driver->max_sge && cap->max_recv_sge <= (uint32_t)driver->max_sge;
}

/*
 * providers/mlx5/verbs.c: _sq_overhead, mlx5_calc_send_wqe, mlx5_calc_sq_size. RC and UC keep room for a memory window
 * in each request: a control segment of 16 bytes, one of 48, a key's context of 64 and 64 more; UD has a datagram
 * segment of 48. max_sq_desc_sz 1024 and max_send_wqebb 32768 are those of a ConnectX-5 (unconfirmed).
 */
static bool mlx5_grants(const struct driver *driver, struct ibv_qp_init_attr *wanted, int *code)
{
	struct ibv_qp_cap *cap = &wanted->cap;
	uint32_t overhead = wanted->qp_type == IBV_QPT_UD ? 16 + 48 : 16 + 48 + 64 + 64;
	uint32_t inlined = cap->max_inline_data ? overhead + aligned(4 + cap->max_inline_data, 16) : 0;
	uint32_t gathered = overhead + 16 * cap->max_send_sge;
	uint32_t size = aligned(inlined > gathered ? inlined : gathered, 64);
	uint64_t queue;

	if (!within(driver, cap) || size > 1024)
		return refuse(code, EINVAL);
	queue = power_of_two((uint64_t)cap->max_send_wr * size);
	if (cap->max_send_wr && queue / 64 > 32768)
		return refuse(code, EINVAL);
	cap->max_inline_data = size - overhead - 4;
	if (cap->max_send_wr)
		cap->max_send_wr = queue / size;
	cap->max_recv_wr = cap->max_recv_wr ? power_of_two(cap->max_recv_wr) : 0;
	return true;
}

/* providers/irdma/uverbs.c: irdma_ucreate_qp; uk.c: irdma_get_wqe_shift, irdma_get_sqdepth (generation 2). */
static bool irdma_grants(const struct driver *driver, struct ibv_qp_init_attr *wanted, int *code)
{
	struct ibv_qp_cap *cap = &wanted->cap;
	uint32_t elements = cap->max_send_sge + 1, depth;
	int shift = 0;

	if (!within(driver, cap) || cap->max_inline_data > (uint32_t)driver->max_inline)
		return refuse(code, EINVAL);
	if (elements > 1 || cap->max_inline_data > 8)
		shift = elements < 4 && cap->max_inline_data <= 39 ? 1 : elements < 8 && cap->max_inline_data <= 101 ? 2 : 3;
	depth = power_of_two((cap->max_send_wr << shift) + 258);
	if (depth > 32768)
		return refuse(code, EINVAL);
	cap->max_send_wr = (depth - 258) >> shift;
	cap->max_recv_wr = power_of_two(cap->max_recv_wr + 1) - 1;
	return true;
}

/*
 * providers/bnxt_re/verbs.c: bnxt_re_check_qp_limits, bnxt_re_get_sq_slots (32 bytes of header, 6 elements of 16).
 * What it refuses it refuses without an errno: bnxt_re_create_qp_ex returns NULL, and errno is whatever it was.
 */
static bool bnxt_grants(const struct driver *driver, struct ibv_qp_init_attr *wanted, int *code)
{
	bool fits = aligned(wanted->cap.max_inline_data, 32) <= 6 * 16;
	return (within(driver, &wanted->cap) && fits) || refuse(code, UNSET);
}

/* providers/efa/verbs.c: efa_check_qp_limits. */
static bool efa_grants(const struct driver *driver, struct ibv_qp_init_attr *wanted, int *code)
{
	if (!within(driver, &wanted->cap) || wanted->cap.max_inline_data > (uint32_t)driver->max_inline || wanted->srq)
		return refuse(code, EINVAL);
	return true;
}

/*
 * providers/hns/hns_roce_u_verbs.c: verify_qp_create_cap, hns_roce_set_qp_params, get_max_inline_data: what is too much
 * inline is granted as less, silently. At least 64 requests (HNS_ROCE_V2_MIN_WQE_NUM).
 */
static bool hns_grants(const struct driver *driver, struct ibv_qp_init_attr *wanted, int *code)
{
	struct ibv_qp_cap *cap = &wanted->cap;

	if (!cap->max_send_wr || !within(driver, cap))
		return refuse(code, EINVAL);
	cap->max_send_wr = power_of_two(cap->max_send_wr < 64 ? 64 : cap->max_send_wr);
	if (cap->max_recv_wr)
		cap->max_recv_wr = power_of_two(cap->max_recv_wr < 64 ? 64 : cap->max_recv_wr);
	if (cap->max_inline_data)
		cap->max_inline_data = power_of_two(cap->max_inline_data);
	if (cap->max_inline_data > (uint32_t)driver->max_inline)
		cap->max_inline_data = driver->max_inline;
	return true;
}

/*
 * Kernel, core/sysfs.c (names and widths of `counters`); hw/mlx5/counters.c; Documentation, mlx5/counters.rst (*_phy,
 * vport_loopback_*). mlx5 reads the packets of a function by QUERY_VPORT_COUNTER, so what stays in the adapter counts
 * as well (unconfirmed). port_xmit_wait has run to its end, as after weeks (IBA 16.1.3.5).
 */
static const struct counter mlx5_counters[] = {
	{"counters/port_xmit_packets", SENT, 1000, 0},
	{"counters/port_rcv_packets", RECEIVED, 2000, 0},
	{"counters/port_xmit_wait", NOTHING, 0, 32},
	{"counters/symbol_error", NOTHING, 0, 16},
	{"counters/link_downed", NOTHING, 1, 8},
	{"hw_counters/rnr_nak_retry_err", NOT_READY, 0, 0},
	{"hw_counters/out_of_sequence", NOTHING, 0, 0},
	{"hw_counters/lifespan", NOTHING, 1, 0},
	{"ethtool/tx_packets_phy", WIRE_SENT, 5000, 0},
	{"ethtool/rx_packets_phy", WIRE_RECEIVED, 5000, 0},
	{"ethtool/vport_loopback_packets", LOOPED, 3, 0},
	{"ethtool/rx_prio0_pause", NOTHING, 0, 0},
	{0},
};
static const struct counter mlx5_worn_counters[] = {
	{"counters/port_xmit_packets", SENT, 1000, 0},
	{"counters/port_rcv_packets", RECEIVED, 2000, 0},
	{"counters/port_xmit_wait", NOTHING, UINT32_MAX, 32},
	{"counters/symbol_error", NOTHING, 65535, 16},
	{"hw_counters/rnr_nak_retry_err", NOT_READY, 0, 0},
	{0},
};
/* A port that each packet has to wait for. */
static const struct counter mlx5_paused_counters[] = {
	{"counters/port_xmit_wait", SENT, 7, 32},
	{"ethtool/tx_packets_phy", WIRE_SENT, 5000, 0},
	{"ethtool/rx_prio3_pause", WIRE_SENT, 7, 0},
	{"ethtool/rx_prio3_pause_duration", WIRE_SENT, 7, 0},
	{"ethtool/tx_prio3_pause", WIRE_RECEIVED, 7, 0},
	{0},
};
/* A virtual function is shown 0 for each counter of the physical port (unconfirmed). */
static const struct counter mlx5_virtual_counters[] = {
	{"counters/port_xmit_packets", SENT, 1000, 0},
	{"counters/port_rcv_packets", RECEIVED, 2000, 0},
	{"hw_counters/rnr_nak_retry_err", NOT_READY, 0, 0},
	{"ethtool/tx_packets_phy", NOTHING, 0, 0},
	{0},
};
/* Kernel, hw/irdma/hw_counters and verbs.c (irdma_hw_stat_names). */
static const struct counter irdma_counters[] = {
	{"hw_counters/TxUDP", SENT, 10, 0},
	{"hw_counters/RxUDP", RECEIVED, 10, 0},
	{"hw_counters/RetransSegs", NOTHING, 0, 0},
	{"hw_counters/RNR_received", NOT_READY, 0, 0},
	{0},
};
static const struct counter irdma_iwarp_counters[] = {
	{"hw_counters/tcpRetransSegs", NOTHING, 0, 0},
	{"hw_counters/ip4OutRds", SENT, 10, 0},
	{0},
};
/* Kernel, hw/bnxt_re/hw_counters.c. */
static const struct counter bnxt_counters[] = {
	{"hw_counters/tx_pkts", SENT, 10, 0},
	{"hw_counters/rx_pkts", RECEIVED, 10, 0},
	{"hw_counters/rnr_naks_rcvd", NOT_READY, 0, 0},
	{"hw_counters/seq_err_naks_rcvd", NOTHING, 0, 0},
	{0},
};
/* Kernel, hw/efa/efa_verbs.c (EFA_DEFINE_STATS); which are the device's and which the port's: unconfirmed. */
static const struct counter efa_counters[] = {
	{"hw_counters/tx_pkts", SENT, 10, 0},
	{"hw_counters/rx_pkts", RECEIVED, 10, 0},
	{"hw_counters/rx_drops", NOTHING, 0, 0},
	{"device/hw_counters/submitted_cmds", NOTHING, 77, 0},
	{0},
};
static const struct counter no_counters[] = {{0}};

/*
 * ConnectX. Service types, stamps, domains, raw clock: providers/mlx5/mlx5.c (mlx5_ctx_common_ops), cq.c. Mask of the
 * stamps and clock: kernel, hw/mlx5/main.c (mlx5_ib_query_device); 156.25 MHz: unconfirmed. max_qp_wr is the number of
 * blocks of 64 bytes, not of requests (kernel commit 1a7c18c485bf, which changed it). byte_len of UD has the header:
 * ibv_poll_cq(3). In order: mlx5_query_qp_data_in_order, if the firmware says so.
 */
#define MLX5                                                                                                           \
	.name = "mlx5_core", .node_type = "1: CA", .node = IBV_NODE_CA, .transport = IBV_TRANSPORT_IB, .vendor = 0x2c9, \
	.part = 4119, .services = RC | UC | UD, .service_errno = EOPNOTSUPP, .datagram_header = 40,                      \
	.stamp_mask = UINT64_MAX >> 1, .clock_khz = 156250, .raw_clock = true, .extended_queues = true,                  \
	.shared_receives = true, .domains = true, .paging = true, .in_order = 1, .max_qp_wr = 32768,                     \
	.max_cqe = 4194303, .max_sge = 30, .reads = 16, .max_message = 1 << 30, .mtu = IBV_MTU_4096, .speed = 32,        \
	.width = 2, .grants = mlx5_grants

static const struct driver mlx5_ib = {MLX5, .link_layer = IBV_LINK_LAYER_INFINIBAND, .counters = mlx5_worn_counters};
static const struct driver mlx5_roce = {MLX5, .link_layer = IBV_LINK_LAYER_ETHERNET, .roce_v1 = true,
					.counters = mlx5_counters};
static const struct driver mlx5_virtual = {MLX5, .link_layer = IBV_LINK_LAYER_ETHERNET, .roce_v1 = true,
					   .counters = mlx5_virtual_counters};
static const struct driver mlx5_paused = {MLX5, .link_layer = IBV_LINK_LAYER_ETHERNET, .roce_v1 = true,
					  .counters = mlx5_paused_counters};
/* mlxconfig PCI_WR_ORDERING=force_relax, or a firmware that does not say. */
static const struct driver mlx5_relaxed = {MLX5, .in_order = 0, .link_layer = IBV_LINK_LAYER_ETHERNET, .roce_v1 = true,
					   .counters = mlx5_counters};

/*
 * E810. providers/irdma/uverbs.c: irdma_ucreate_qp (RC and UD, else EOPNOTSUPP), ucreate_cq (stamps from generation 3
 * on). max_qp_wr: kernel, IRDMA_MAX_QP_WRS, (32768 - 258) / 8. 101 bytes inline: IRDMA_MAX_INLINE_DATA_SIZE. Whether
 * byte_len of UD has the header: unconfirmed. A mask of stamps (17 bits: kernel, HCA_CLOCK_TIMESTAMP_MASK; of which
 * generations: unconfirmed), and no query_rt_values.
 */
#define IRDMA                                                                                                          \
	.name = "irdma", .vendor = 0x8086, .part = 5522, .service_errno = EOPNOTSUPP, .link_layer = IBV_LINK_LAYER_ETHERNET, \
	.stamp_mask = 0x1ffff, .extended_queues = true, .max_qp_wr = 4063, .max_cqe = 1048574, .max_sge = 13,            \
	.max_inline = 101, .reads = 32, .max_message = 0x7fffffff, .mtu = IBV_MTU_4096, .speed = 32, .width = 2,         \
	.grants = irdma_grants

static const struct driver irdma_roce = {IRDMA, .node_type = "1: CA", .node = IBV_NODE_CA,
					 .transport = IBV_TRANSPORT_IB, .services = RC | UD, .counters = irdma_counters};
static const struct driver irdma_iwarp = {IRDMA, .node_type = "4: RNIC", .node = IBV_NODE_RNIC,
					  .transport = IBV_TRANSPORT_IWARP, .services = RC,
					  .counters = irdma_iwarp_counters};

/* providers/bnxt_re/verbs.c, main.c (no extended queues, no domains). Whether byte_len of UD has the header (:762) and
 * max_qp_wr: unconfirmed. */
static const struct driver bnxt = {
	.name = "bnxt_en", .node_type = "1: CA", .node = IBV_NODE_CA, .transport = IBV_TRANSPORT_IB, .vendor = 0x14e4,
	.part = 5968, .link_layer = IBV_LINK_LAYER_ETHERNET, .roce_v1 = true, .services = RC | UD, .service_errno = UNSET,
	.shared_receives = true, .max_qp_wr = 65407, .max_cqe = 1048575, .max_sge = 6, .reads = 126,
	.max_message = 1 << 30, .mtu = IBV_MTU_4096, .speed = 32, .width = 2, .grants = bnxt_grants,
	.counters = bnxt_counters,
};

/*
 * Kernel, hw/efa/efa_verbs.c: efa_query_port (one GID, max_msg_sz is the MTU), efa_query_device (no sys_image_guid),
 * efa_qp_validate_attr (UD, else EOPNOTSUPP), efa_query_qp (EFA_QUERY_QP_SUPP_MASK). providers/efa: no stamps in
 * EFA_CREATE_CQ (IBV_WC_STANDARD_FLAGS). Depth, 8 KiB of MTU as 4096, and byte_len without the header: unconfirmed.
 */
static const struct driver efa = {
	.name = "efa", .node_type = "7: unspecified", .node = IBV_NODE_UNSPECIFIED,
	.transport = IBV_TRANSPORT_UNSPECIFIED, .vendor = 0x1d0f, .part = 0xefa1, .link_layer = IBV_LINK_LAYER_UNSPECIFIED,
	.services = UD, .service_errno = EOPNOTSUPP, .extended_queues = true, .domains = true,
	.query_mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY | IBV_QP_SQ_PSN | IBV_QP_CAP |
		      IBV_QP_RNR_RETRY,
	.max_qp_wr = 4096, .max_cqe = 32768, .max_sge = 2, .max_inline = 32, .max_message = 4096, .mtu = IBV_MTU_4096,
	.speed = 32, .width = 2, .grants = efa_grants, .counters = efa_counters,
};

/* providers/hns/hns_roce_u_verbs.c, hns_roce_u.c: check_qp_create_mask (UD on HIP09 only, else EOPNOTSUPP). HIP09's
 * limits: unconfirmed. */
static const struct driver hns = {
	.name = "hns3", .node_type = "1: CA", .node = IBV_NODE_CA, .transport = IBV_TRANSPORT_IB, .vendor = 0x19e5,
	.part = 0xa222, .link_layer = IBV_LINK_LAYER_ETHERNET, .roce_v1 = true, .services = RC | UD,
	.service_errno = EOPNOTSUPP, .datagram_header = 40, .extended_queues = true, .shared_receives = true,
	.domains = true, .max_qp_wr = 32768, .max_cqe = 4194304, .max_sge = 64, .max_inline = 1024, .reads = 128,
	.max_message = 0x80000000, .mtu = IBV_MTU_4096, .speed = 32, .width = 2, .grants = hns_grants,
	.counters = no_counters,
};

#define IB_PORT(the_state, the_lid, manager, the_interface, the_wire)                                                  \
	{.state = the_state, .lid = the_lid, .sm_lid = manager, .interface = the_interface, .wire = the_wire}
#define ETHERNET(number, text, the_wire)                                                                               \
	{.state = IBV_PORT_ACTIVE, .interface = "eth4" number, .address = "10.41." text, .mac = "0c:42:a1:41:00:0" number, \
	 .wire = the_wire}
/* Two functions of one card, each with a port. */
#define CARD(prefix, the_driver, first, second)                                                                        \
	.devices = 2, .device = {                                                                                      \
		{prefix "0", "0000:3b:00.0", NULL, 0x0c42a10300410000, 0x0c42a10300410000, &the_driver, 1, {first}},     \
		{prefix "1", "0000:3b:00.1", NULL, 0x0c42a10300410001, 0x0c42a10300410000, &the_driver, 1, {second}},    \
	}

static const struct character characters[] = {
	{"connectx-ib", CARD("mlx5_", mlx5_ib, IB_PORT(IBV_PORT_ACTIVE, 3, 1, "ib41", 1),
			     IB_PORT(IBV_PORT_ACTIVE, 4, 1, "ib42", 2))},
	{"connectx-ib-no-manager", CARD("mlx5_", mlx5_ib, IB_PORT(IBV_PORT_INIT, 0, 0, "ib41", 1),
					IB_PORT(IBV_PORT_INIT, 0, 0, "ib42", 2))},
	{"connectx-roce", CARD("mlx5_", mlx5_roce, ETHERNET("1", "0.1/24", 1), ETHERNET("2", "0.2/24", 2))},
	{"connectx-roce-relaxed", CARD("mlx5_", mlx5_relaxed, ETHERNET("1", "0.1/24", 1), ETHERNET("2", "0.2/24", 2))},
	{"connectx-roce-paused", CARD("mlx5_", mlx5_paused, ETHERNET("1", "0.1/24", 1), ETHERNET("2", "0.2/24", 2))},
	/* The two ports are on one wire though each is a physical function, as on a card in a mode for several hosts. */
	{"connectx-one-wire", CARD("mlx5_", mlx5_roce, ETHERNET("1", "0.1/24", 1), ETHERNET("2", "0.2/24", 1))},
	{"connectx-virtual", .devices = 2, .device = {
		{"mlx5_2", "0000:3b:00.2", "0000:3b:00.0", 0x0c42a10300410002, 0x0c42a10300410000, &mlx5_virtual, 1,
		 {ETHERNET("1", "0.1/24", 1)}},
		{"mlx5_3", "0000:3b:00.3", "0000:3b:00.0", 0x0c42a10300410003, 0x0c42a10300410000, &mlx5_virtual, 1,
		 {ETHERNET("2", "0.2/24", 1)}},
	}},
	/* Kernel, hw/mlx5/main.c: the name under LAG (unconfirmed). */
	{"connectx-bond", .devices = 1, .device = {
		{"mlx5_bond_0", "0000:3b:00.0", NULL, 0x0c42a10300410000, 0x0c42a10300410000, &mlx5_roce, 1,
		 {{.state = IBV_PORT_ACTIVE, .interface = "bond41", .address = "10.41.0.1/24", .mac = "0c:42:a1:41:00:01",
		   .bond = "802.3ad 4", .wire = 1}}},
	}},
	{"irdma-roce", CARD("rocep59s0f", irdma_roce, ETHERNET("1", "0.1/24", 1), ETHERNET("2", "0.2/24", 2))},
	{"irdma-iwarp", CARD("iwp59s0f", irdma_iwarp, ETHERNET("1", "0.1/24", 1), ETHERNET("2", "0.2/24", 2))},
	{"bnxt", CARD("bnxt_re", bnxt, ETHERNET("1", "0.1/24", 1), ETHERNET("2", "0.2/24", 2))},
	{"hns", CARD("hns_", hns, ETHERNET("1", "0.1/24", 1), ETHERNET("2", "0.2/24", 2))},
	{"efa", .devices = 2, .device = {
		{"rdmap0s6", "0000:00:06.0", NULL, 0, 0, &efa, 1,
		 {{.state = IBV_PORT_ACTIVE, .gid = "fe80::41:a1ff:fe41:1", .wire = 1}}},
		{"rdmap0s7", "0000:00:07.0", NULL, 0, 0, &efa, 1,
		 {{.state = IBV_PORT_ACTIVE, .gid = "fe80::41:a1ff:fe41:2", .wire = 2}}},
	}},
};

const struct character *character(void)
{
	const char *name = getenv("ADAPTERS_CHARACTER");
	for (size_t i = 0; i < LENGTH(characters); i++)
		if (name && strcmp(name, characters[i].name) == 0)
			return &characters[i];
	fprintf(stderr, "ADAPTERS_CHARACTER is %s, which the model does not play\n", name ? name : "not set");
	abort();
}

/*
 * no-routes   the connection manager takes the device that has the destination's address, as the kernel does where that
 *             is one of this host and no rule says otherwise (core/addr.c: copy_src_l2_addr)
 * no-manager  the module rdma_ucm is not loaded
 * gone        the second device can be opened once, when devices are listed
 */
bool with(const char *circumstance)
{
	const char *all = getenv("ADAPTERS_WITH");
	return all && strstr(all, circumstance);
}

uint64_t adapter_clock(const struct driver *driver)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC_RAW, &now);
	unsigned __int128 ns = (unsigned __int128)now.tv_sec * 1000000000 + now.tv_nsec;
	unsigned __int128 ticks = ns * driver->clock_khz * (1000000 + CLOCK_PPM) / 1000000 / 1000000;
	return (uint64_t)(ticks + CLOCK_OFFSET) & driver->stamp_mask;
}
