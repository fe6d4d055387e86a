/* What a process finds of the adapters outside of libibverbs: a folder in place of /sys, the addresses of the network
 * interfaces, and their statistics. In place of libc's functions, where the object is preloaded. */
#include "model.h"

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

static const char *folder(void)
{
	return getenv("ADAPTERS_FOLDER");
}

/* ---- the folder ---- */

enum kind { TEXT, LINK };

/* The folder while it is written. */
static const char *put_into;

/* Puts a text, or a link to another place in the folder, at a place in it. */
__attribute__((format(printf, 3, 4))) static void put(enum kind kind, const char *what, const char *format, ...)
{
	char path[4096], target[4096];
	va_list values;
	FILE *file;

	int start = snprintf(path, sizeof path, "%s/", put_into);
	va_start(values, format);
	vsnprintf(path + start, sizeof path - start, format, values);
	va_end(values);
	for (char *slash = path + start; (slash = strchr(slash, '/')); *slash++ = '/') {
		*slash = 0;
		if (mkdir(path, 0777) != 0 && errno != EEXIST)
			abort();
	}
	if (kind == LINK) {
		snprintf(target, sizeof target, "%s/%s", folder(), what);
		if (symlink(target, path) != 0 && errno != EEXIST)
			abort();
	} else {
		if (!(file = fopen(path, "w")))
			abort();
		fprintf(file, "%s\n", what);
		fclose(file);
	}
}

static void put_port(const struct device *device, int number)
{
	const struct port *port = &device->port[number - 1];
	const char *layers[] = {"Unknown", "InfiniBand", "Ethernet"};
	char base[256], text[64], function[64];

	snprintf(function, sizeof function, "devices/pci/%s", device->pci);
	snprintf(base, sizeof base, "%s/infiniband/%s/ports/%d", function, device->name, number);
	put(TEXT, layers[device->driver->link_layer], "%s/link_layer", base);
	put(TEXT, "0xffff", "%s/pkeys/0", base);
	for (int i = 0; i < gids_of(device, port); i++) {
		uint8_t gid[16];
		bool is_v2;
		gid_of(device, port, i, gid, &is_v2);
		for (int j = 0; j < 8; j++)
			sprintf(text + 5 * j, "%02x%02x%s", gid[2 * j], gid[2 * j + 1], j < 7 ? ":" : "");
		put(TEXT, text, "%s/gids/%d", base, i);
		put(TEXT, is_v2 ? "RoCE v2" : "IB/RoCE v1", "%s/gid_attrs/types/%d", base, i);
		if (port->address && device->driver->transport == IBV_TRANSPORT_IB)
			put(TEXT, port->interface, "%s/gid_attrs/ndevs/%d", base, i);
	}
	for (const struct counter *counter = device->driver->counters; counter->name; counter++) {
		if (strncmp(counter->name, "device/", 7) == 0)
			put(TEXT, "0", "%s/infiniband/%s/%s", function, device->name, counter->name + 7);
		else if (strncmp(counter->name, "ethtool/", 8) != 0)
			put(TEXT, "0", "%s/%s", base, counter->name);
	}
	if (!port->interface)
		return;
	snprintf(base, sizeof base, "%s/net/%s", function, port->interface);
	snprintf(text, sizeof text, "%d", number - 1);
	put(TEXT, text, "%s/dev_port", base);
	put(TEXT, port->mac ? port->mac : "00:00:00:00:00:00", "%s/address", base);
	if (port->mac) /* as long as no other number */
		put(TEXT, "00545254000c42a103", "%s/phys_switch_id", base);
	if (port->bond)
		put(TEXT, port->bond, "%s/bonding/mode", base);
	put(LINK, base, "class/net/%s", port->interface);
}

static void put_device(const struct device *device)
{
	char function[64], base[256];

	snprintf(function, sizeof function, "devices/pci/%s", device->pci);
	snprintf(base, sizeof base, "%s/infiniband/%s", function, device->name);
	put(TEXT, device->driver->node_type, "%s/node_type", base);
	put(TEXT, "0", "%s/numa_node", function);
	put(TEXT, "pci", "bus/pci/name");
	put(LINK, "bus/pci", "%s/subsystem", function);
	put(LINK, function, "%s/device", base);
	if (device->physfn) {
		put(TEXT, "0", "devices/pci/%s/numa_node", device->physfn);
		char physical[64];
		snprintf(physical, sizeof physical, "devices/pci/%s", device->physfn);
		put(LINK, physical, "%s/physfn", function);
	}
	put(LINK, base, "class/infiniband/%s", device->name);
	for (int i = 1; i <= device->ports; i++)
		put_port(device, i);
}

/*
 * The folder gets its name when all is in it, so that another process finds all or nothing. The rename fails where
 * another one was first, as that folder is not empty; then this one's is left beside it.
 */
__attribute__((constructor)) static void put_all(void)
{
	char unfinished[4096];

	if (!folder() || access(folder(), F_OK) == 0)
		return;
	snprintf(unfinished, sizeof unfinished, "%s-of-%d", folder(), (int)getpid());
	if (mkdir(unfinished, 0777) != 0)
		abort();
	put_into = unfinished;
	for (int i = 0; i < character()->devices; i++)
		put_device(&character()->device[i]);
	put_into = NULL;
	if (rename(unfinished, folder()) != 0 && errno != EEXIST && errno != ENOTEMPTY)
		abort();
}

/* The path that takes the place of one below /sys. */
static const char *instead(const char *path, char room[4096])
{
	static const char *const places[] = {"/sys/class/infiniband", "/sys/class/net"};

	if (!folder() || !path)
		return path;
	for (size_t i = 0; i < LENGTH(places); i++)
		if (strncmp(path, places[i], strlen(places[i])) == 0) {
			snprintf(room, 4096, "%s%s", folder(), path + strlen("/sys"));
			return room;
		}
	return path;
}

static uint64_t counter_value(const struct counter *counter, int device, int port)
{
	uint64_t value = counter->start;
	if (counter->what != NOTHING)
		value += __atomic_load_n(&grown[device][port][counter->what], __ATOMIC_RELAXED);
	uint64_t most = counter->bits ? (1ull << counter->bits) - 1 : UINT64_MAX;
	return value < most ? value : most;
}

/* The counter that a path below the folder is of, as it is now. */
static bool counted_at(const char *path, uint64_t *value)
{
	char name[64], rest[256], wanted[300];
	const char *start = folder() ? strstr(path, "/infiniband/") : NULL;
	int port = 1;

	if (!start || strncmp(path, folder(), strlen(folder())) != 0)
		return false;
	if (sscanf(start, "/infiniband/%63[^/]/ports/%d/%255s", name, &port, rest) == 3)
		snprintf(wanted, sizeof wanted, "%s", rest);
	else if (sscanf(start, "/infiniband/%63[^/]/%255s", name, rest) == 2)
		snprintf(wanted, sizeof wanted, "device/%s", rest);
	else
		return false;
	for (int i = 0; i < character()->devices; i++) {
		const struct device *device = &character()->device[i];
		if (strcmp(device->name, name) != 0)
			continue;
		for (const struct counter *counter = device->driver->counters; counter->name; counter++)
			if (strcmp(counter->name, wanted) == 0) {
				*value = counter_value(counter, i, port - 1);
				return true;
			}
	}
	return false;
}

/* ---- in place of libc ---- */

#define REAL(name) ((typeof(&name))dlsym(RTLD_NEXT, #name))

static int opened(int at, const char *path, int flags, mode_t mode)
{
	char room[4096];
	uint64_t value;

	path = instead(path, room);
	if (counted_at(path, &value)) {
		int file = memfd_create("counter", MFD_CLOEXEC);
		int length = snprintf(room, sizeof room, "%llu\n", (unsigned long long)value);
		if (file >= 0 && pwrite(file, room, length, 0) == length)
			return file;
	}
	return REAL(openat64)(at, path, flags, mode);
}

#define OPENS(name)                                                                                                    \
	EXPORT int name(const char *path, int flags, ...)                                                              \
	{                                                                                                              \
		va_list values;                                                                                        \
		va_start(values, flags);                                                                               \
		mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(values, mode_t) : 0;                              \
		va_end(values);                                                                                        \
		return opened(AT_FDCWD, path, flags, mode);                                                            \
	}
OPENS(open)
OPENS(open64)

EXPORT DIR *opendir(const char *path)
{
	char room[4096];
	return REAL(opendir)(instead(path, room));
}

EXPORT char *realpath(const char *restrict path, char *restrict result)
{
	char room[4096];
	return REAL(realpath)(instead(path, room), result);
}

EXPORT int statx(int at, const char *restrict path, int flags, unsigned mask, struct statx *restrict to)
{
	char room[4096];
	return REAL(statx)(at, instead(path, room), flags, mask, to);
}

/* An interface in the list of all; one block each, so that it can be freed. */
static struct ifaddrs *interface_of(const char *name, const char *address, struct ifaddrs *next)
{
	struct block {
		struct ifaddrs all;
		struct sockaddr_in address, mask;
		char name[IF_NAMESIZE];
	} *block = calloc(1, sizeof *block);
	unsigned part[4], bits;

	sscanf(address, "%u.%u.%u.%u/%u", part, part + 1, part + 2, part + 3, &bits);
	block->address.sin_family = block->mask.sin_family = AF_INET;
	block->address.sin_addr.s_addr = htonl(part[0] << 24 | part[1] << 16 | part[2] << 8 | part[3]);
	block->mask.sin_addr.s_addr = htonl(UINT32_MAX << (32 - bits));
	snprintf(block->name, sizeof block->name, "%s", name);
	block->all = (struct ifaddrs){.ifa_next = next, .ifa_name = block->name, .ifa_flags = IFF_UP | IFF_RUNNING,
				      .ifa_addr = (struct sockaddr *)&block->address,
				      .ifa_netmask = (struct sockaddr *)&block->mask};
	return &block->all;
}

EXPORT int getifaddrs(struct ifaddrs **all)
{
	if (!folder())
		return REAL(getifaddrs)(all);
	*all = interface_of("lo", "127.0.0.1/8", NULL);
	EACH_PORT(i, j) {
		const struct port *port = &character()->device[i].port[j];
		if (port->interface && port->address)
			*all = interface_of(port->interface, port->address, *all);
	}
	return 0;
}

EXPORT void freeifaddrs(struct ifaddrs *all)
{
	if (!folder()) {
		REAL(freeifaddrs)(all);
		return;
	}
	for (struct ifaddrs *next; all; all = next) {
		next = all->ifa_next;
		free(all);
	}
}

/* ETHTOOL_GSSET_INFO, ETHTOOL_GSTRINGS and ETHTOOL_GSTATS of linux/ethtool.h. */
static int statistics(const char *interface, void *question)
{
	const struct counter *counters[64];
	uint32_t count = 0;
	int place[2] = {0};

	EACH_PORT(i, j) {
		const struct device *device = &character()->device[i];
		if (!device->port[j].interface || strcmp(device->port[j].interface, interface) != 0)
			continue;
		place[0] = i, place[1] = j;
		for (const struct counter *one = device->driver->counters; one->name; one++)
			if (strncmp(one->name, "ethtool/", 8) == 0)
				counters[count++] = one;
	}
	struct ethtool_sset_info *set = question;
	struct ethtool_gstrings *strings = question;
	struct ethtool_stats *stats = question;
	switch (set->cmd) {
	case ETHTOOL_GSSET_INFO:
		set->sset_mask = count ? 1 << ETH_SS_STATS : 0;
		set->data[0] = count;
		return 0;
	case ETHTOOL_GSTRINGS:
		strings->len = count;
		for (uint32_t i = 0; i < count; i++)
			snprintf((char *)strings->data + i * ETH_GSTRING_LEN, ETH_GSTRING_LEN, "%s", counters[i]->name + 8);
		return 0;
	case ETHTOOL_GSTATS:
		stats->n_stats = count;
		for (uint32_t i = 0; i < count; i++)
			stats->data[i] = counter_value(counters[i], place[0], place[1]);
		return 0;
	default:
		errno = EOPNOTSUPP;
		return -1;
	}
}

EXPORT int ioctl(int file, unsigned long request, ...)
{
	va_list values;
	va_start(values, request);
	void *argument = va_arg(values, void *);
	va_end(values);
	if (request == SIOCETHTOOL && folder()) {
		struct ifreq *asked = argument;
		return statistics(asked->ifr_name, asked->ifr_data);
	}
	return REAL(ioctl)(file, request, argument);
}

/*
 * Memory can be locked without a limit, and is not: how long a queue may be is a rule of the adapter here, not of the
 * user who runs the tests. What hcabench says of the limit itself is tried without the model.
 */
#define LIMITS(name, type)                                                                                             \
	EXPORT int get##name(__rlimit_resource_t resource, struct type *limit)                                         \
	{                                                                                                              \
		if (!folder() || resource != RLIMIT_MEMLOCK)                                                           \
			return REAL(get##name)(resource, limit);                                                       \
		*limit = (struct type){RLIM_INFINITY, RLIM_INFINITY};                                                  \
		return 0;                                                                                              \
	}                                                                                                              \
	EXPORT int set##name(__rlimit_resource_t resource, const struct type *limit)                                   \
	{                                                                                                              \
		return folder() && resource == RLIMIT_MEMLOCK ? 0 : REAL(set##name)(resource, limit);                  \
	}
LIMITS(rlimit, rlimit)
LIMITS(rlimit64, rlimit64)

EXPORT int mlock(const void *start, size_t length)
{
	if (!folder())
		return REAL(mlock)(start, length);
	return 0;
}

EXPORT int mlockall(int flags)
{
	if (!folder())
		return REAL(mlockall)(flags);
	return 0;
}
