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
#include <sys/stat.h>

static const char *folder(void)
{
	return getenv("ADAPTERS_FOLDER");
}

/* ---- the folder ---- */

static void path_to(char path[4096], const char *format, va_list values)
{
	int start = snprintf(path, 4096, "%s/", folder());
	vsnprintf(path + start, 4096 - start, format, values);
	for (char *slash = path + start; (slash = strchr(slash, '/')); *slash++ = '/') {
		*slash = 0;
		mkdir(path, 0777);
	}
}

__attribute__((format(printf, 2, 3))) static void put(const char *text, const char *format, ...)
{
	char path[4096];
	va_list values;

	va_start(values, format);
	path_to(path, format, values);
	va_end(values);
	FILE *file = fopen(path, "w");
	if (!file)
		abort();
	fprintf(file, "%s\n", text);
	fclose(file);
}

__attribute__((format(printf, 2, 3))) static void put_link(const char *target, const char *format, ...)
{
	char path[4096], whole[4096];
	va_list values;

	va_start(values, format);
	path_to(path, format, values);
	va_end(values);
	snprintf(whole, sizeof whole, "%s/%s", folder(), target);
	if (symlink(whole, path) != 0 && errno != EEXIST)
		abort();
}

static const char *state_of(const struct port *port)
{
	return port->state == IBV_PORT_ACTIVE ? "4: ACTIVE" : port->state == IBV_PORT_INIT ? "2: INIT" : "1: DOWN";
}

static void put_port(const struct device *device, int number)
{
	const struct port *port = &device->port[number - 1];
	const char *layers[] = {"Unknown", "InfiniBand", "Ethernet"};
	char base[256], text[64], function[64];

	snprintf(function, sizeof function, "devices/pci/%s", device->pci);
	snprintf(base, sizeof base, "%s/infiniband/%s/ports/%d", function, device->name, number);
	put(state_of(port), "%s/state", base);
	put(layers[device->driver->link_layer], "%s/link_layer", base);
	put("0xffff", "%s/pkeys/0", base);
	for (int i = 0; i < gids_of(device, port); i++) {
		uint8_t gid[16];
		bool is_v2;
		gid_of(device, port, i, gid, &is_v2);
		for (int j = 0; j < 8; j++)
			sprintf(text + 5 * j, "%02x%02x%s", gid[2 * j], gid[2 * j + 1], j < 7 ? ":" : "");
		put(text, "%s/gids/%d", base, i);
		put(is_v2 ? "RoCE v2" : "IB/RoCE v1", "%s/gid_attrs/types/%d", base, i);
		if (port->address && device->driver->transport == IBV_TRANSPORT_IB)
			put(port->interface, "%s/gid_attrs/ndevs/%d", base, i);
	}
	for (const struct counter *counter = device->driver->counters; counter->name; counter++) {
		if (strncmp(counter->name, "device/", 7) == 0)
			put("0", "%s/infiniband/%s/%s", function, device->name, counter->name + 7);
		else if (strncmp(counter->name, "ethtool/", 8) != 0)
			put("0", "%s/%s", base, counter->name);
	}
	if (!port->interface)
		return;
	snprintf(base, sizeof base, "%s/net/%s", function, port->interface);
	snprintf(text, sizeof text, "%d", number - 1);
	put(text, "%s/dev_port", base);
	put(port->mac ? port->mac : "00:00:00:00:00:00", "%s/address", base);
	if (port->phys_port_id)
		put(port->phys_port_id, "%s/phys_port_id", base);
	if (port->bond)
		put(port->bond, "%s/bonding/mode", base);
	put_link(base, "class/net/%s", port->interface);
}

static void put_device(const struct device *device, int number)
{
	char function[64], base[256];

	snprintf(function, sizeof function, "devices/pci/%s", device->pci);
	snprintf(base, sizeof base, "%s/infiniband/%s", function, device->name);
	put(device->driver->node_type, "%s/node_type", base);
	put("0", "%s/numa_node", function);
	put("pci", "bus/pci/name");
	put_link("bus/pci", "%s/subsystem", function);
	put_link(function, "%s/device", base);
	if (device->physfn) {
		put("0", "devices/pci/%s/numa_node", device->physfn);
		char physical[64];
		snprintf(physical, sizeof physical, "devices/pci/%s", device->physfn);
		put_link(physical, "%s/physfn", function);
	}
	put_link(base, "class/infiniband/%s", device->name);
	put(device->name, "class/infiniband_verbs/uverbs%d/ibdev", number);
	for (int i = 1; i <= device->ports; i++)
		put_port(device, i);
}

__attribute__((constructor)) static void put_all(void)
{
	if (!folder())
		return;
	char path[4096];
	snprintf(path, sizeof path, "%s/complete", folder());
	if (access(path, F_OK) == 0)
		return;
	for (int i = 0; i < character()->devices; i++)
		put_device(&character()->device[i], i);
	put("", "complete");
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

uint64_t counter_value(const struct counter *counter, int device, int port)
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

EXPORT ssize_t readlink(const char *restrict path, char *restrict to, size_t length)
{
	char room[4096];
	return REAL(readlink)(instead(path, room), to, length);
}

EXPORT int statx(int at, const char *restrict path, int flags, unsigned mask, struct statx *restrict to)
{
	char room[4096];
	return REAL(statx)(at, instead(path, room), flags, mask, to);
}

EXPORT int stat64(const char *restrict path, struct stat64 *restrict to)
{
	char room[4096];
	return REAL(stat64)(instead(path, room), to);
}

EXPORT int lstat64(const char *restrict path, struct stat64 *restrict to)
{
	char room[4096];
	return REAL(lstat64)(instead(path, room), to);
}

/* The port with this interface. */
static const struct port *port_with(const char *interface, int place[2])
{
	const struct character *plays = character();
	for (place[0] = 0; place[0] < plays->devices; place[0]++)
		for (place[1] = 0; place[1] < plays->device[place[0]].ports; place[1]++) {
			const struct port *port = &plays->device[place[0]].port[place[1]];
			if (port->interface && strcmp(port->interface, interface) == 0)
				return port;
		}
	return NULL;
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
	for (int i = 0; i < character()->devices; i++)
		for (int j = 0; j < character()->device[i].ports; j++) {
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
	int place[2];
	const struct port *port = port_with(interface, place);
	const struct counter *counters[64];
	uint32_t count = 0;

	if (!port) {
		errno = ENODEV;
		return -1;
	}
	const struct counter *all = character()->device[place[0]].driver->counters;
	for (; all->name; all++)
		if (strncmp(all->name, "ethtool/", 8) == 0)
			counters[count++] = all;
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
