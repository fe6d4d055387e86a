/*
 * oneway: how long a message takes from one RDMA port of this host to another,
 * on one clock. The reference for hcabench: the same method, in plain C.
 *
 * It puts the other listings together: both ends are brought together by
 * cm_switch.h, one thread posts as in send_time.h, one receives as in
 * cq_time.h, and the completions of the send queue are taken by the sender
 * between posts or by a thread of their own. A first burst warms up.
 *
 *     oneway --from 10.77.0.1 --to 10.77.0.2 --service uc --burst 2000 ...
 *
 * Prints counts and latencies as key=value; connected=1 comes first, at once;
 * pages are those of the stamps, the sender's and the receiver's messages, as
 * the kernel tells them. Exit code 1 if something failed, a reliable message
 * was lost, or one was changed on the way; 2 for what is not allowed.
 *
 * In Rust: hcabench::bench::hca::run::PointRunner
 *          hcabench::bench::hca::result::analysis::judge
 */
#define _GNU_SOURCE
#include <getopt.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "oneway.h"
#include "options.h"
#include "summary.h"

enum { WARMUP, MEASURED, BURSTS };

static void usage(const char *name)
{
	printf("Usage: %s --from ADDRESS --to ADDRESS [OPTION]...\n"
	       "\n"
	       "  --from ADDRESS        IPv4 address of the sending port\n"
	       "  --to ADDRESS          IPv4 address of the receiving port\n"
	       "  --service rc|uc|ud    service type (default rc)\n"
	       "  --operation send|write  with immediate data; no write on UD (default send)\n"
	       "  --no-immediate        messages are known by their order: send on RC, as on iWARP\n"
	       "  --size BYTES          a multiple of 8 up to 32768 (default 8)\n"
	       "  --burst N             messages, 1 to 8192 (default 1000)\n"
	       "  --warmup N            messages before them, 0 to 8192 (default 100)\n"
	       "  --pause NS            time between two posts (default 0)\n"
	       "  --inline              data is copied into the work requests\n"
	       "  --timestamp submit|send  t_subm, or t_send by a thread (default submit)\n"
	       "  --sender-cpu CPU      (default the last one)\n"
	       "  --receiver-cpu CPU    (default the first one)\n"
	       "  --completion-cpu CPU  a thread for send completions (default: the sender)\n"
	       "  --stamp-cpu CPU       for --timestamp send (default: the sender's)\n"
	       "  --timeout MS          without an arrival until the rest is lost (default 5000)\n"
	       "  --csv FILE            seq,latency_ns of each message\n",
	       name);
}

static void bad_value(const char *option, const char *value,
		      const char *allowed)
{
	fprintf(stderr, "--%s: '%s' is not allowed, must be %s\n", option,
		value, allowed);
	exit(2);
}

static void parse_address(const char *option, const char *text,
			  struct sockaddr_in *address)
{
	address->sin_family = AF_INET;
	if (inet_pton(AF_INET, text, &address->sin_addr) != 1)
		bad_value(option, text, "an IPv4 address");
}

static bool one_of_two(const char *option, const char *text,
		       const char *first, const char *second)
{
	char allowed[64];

	if (strcmp(text, first) && strcmp(text, second)) {
		snprintf(allowed, sizeof(allowed), "%s or %s", first, second);
		bad_value(option, text, allowed);
	}
	return !strcmp(text, second);
}

static enum ibv_qp_type parse_service(const char *text)
{
	if (!strcmp(text, "uc"))
		return IBV_QPT_UC;
	if (!strcmp(text, "ud"))
		return IBV_QPT_UD;
	if (strcmp(text, "rc"))
		bad_value("service", text, "rc, uc or ud");
	return IBV_QPT_RC;
}

static const char *parse(int argc, char *argv[], struct settings *settings,
			 struct cm_switch *cm)
{
	static const struct option options[] = {
		{ "from", required_argument, NULL, 'f' },
		{ "to", required_argument, NULL, 't' },
		{ "service", required_argument, NULL, 's' },
		{ "operation", required_argument, NULL, 'o' },
		{ "no-immediate", no_argument, NULL, 'n' },
		{ "size", required_argument, NULL, 'z' },
		{ "burst", required_argument, NULL, 'b' },
		{ "warmup", required_argument, NULL, 'w' },
		{ "pause", required_argument, NULL, 'p' },
		{ "inline", no_argument, NULL, 'i' },
		{ "timestamp", required_argument, NULL, 'm' },
		{ "sender-cpu", required_argument, NULL, 'S' },
		{ "receiver-cpu", required_argument, NULL, 'R' },
		{ "completion-cpu", required_argument, NULL, 'C' },
		{ "stamp-cpu", required_argument, NULL, 'T' },
		{ "timeout", required_argument, NULL, 'l' },
		{ "csv", required_argument, NULL, 'c' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	const char *csv = NULL;
	int option, index;

	while ((option = getopt_long(argc, argv, "", options, &index)) != -1) {
		switch (option) {
		case 'f':
			parse_address("from", optarg, &cm->from);
			break;
		case 't':
			parse_address("to", optarg, &cm->to);
			break;
		case 's':
			settings->service = parse_service(optarg);
			break;
		case 'o':
			settings->write = one_of_two("operation", optarg,
						     "send", "write");
			break;
		case 'n':
			settings->by_order = true;
			break;
		case 'z':
			settings->size = number_of("--size", optarg, 8, 32768);
			if (settings->size % 8)
				bad_value("size", optarg, "a multiple of 8");
			break;
		case 'b':
			settings->burst = number_of("--burst", optarg, 1, 8192);
			break;
		case 'w':
			settings->warmup = number_of("--warmup", optarg, 0,
						     8192);
			break;
		case 'p':
			settings->pause_ns = number_of("--pause", optarg, 0,
						       NS_PER_SECOND);
			break;
		case 'i':
			settings->inline_data = true;
			break;
		case 'm':
			settings->restamp = one_of_two("timestamp", optarg,
						       "submit", "send");
			break;
		case 'S':
			settings->sender_cpu = number_of("--sender-cpu", optarg,
							 0, CPU_SETSIZE - 1);
			break;
		case 'R':
			settings->receiver_cpu = number_of("--receiver-cpu",
							   optarg, 0,
							   CPU_SETSIZE - 1);
			break;
		case 'C':
			settings->completion_cpu = number_of("--completion-cpu",
							     optarg, 0,
							     CPU_SETSIZE - 1);
			break;
		case 'T':
			settings->stamp_cpu = number_of("--stamp-cpu", optarg,
							0, CPU_SETSIZE - 1);
			break;
		case 'l':
			settings->timeout_ms = number_of("--timeout", optarg,
							 10, 3600000);
			break;
		case 'c':
			csv = optarg;
			break;
		case 'h':
			usage(argv[0]);
			exit(0);
		default:
			exit(2);
		}
	}
	if (optind < argc || !cm->from.sin_family || !cm->to.sin_family) {
		fprintf(stderr, "--from and --to are needed, and nothing without -- (see %s --help)\n",
			argv[0]);
		exit(2);
	}
	if (settings->write && settings->service == IBV_QPT_UD)
		bad_value("operation", "write", "send with --service ud");
	if (settings->by_order &&
	    (settings->write || settings->service != IBV_QPT_RC)) {
		fprintf(stderr, "--no-immediate needs --service rc --operation send: others arrive without an order, or unannounced\n");
		exit(2);
	}
	if (settings->restamp && settings->inline_data)
		bad_value("timestamp", "send",
			  "submit with --inline: that data is copied at once");
	return csv;
}

/* A CPU that was asked for must be one of those this process may use. */
static void check_cpu(const char *option, int cpu, const cpu_set_t *all)
{
	char allowed[256] = "one of the CPUs", value[16];
	size_t length;
	int other;

	if (cpu < 0 || CPU_ISSET(cpu, all))
		return;
	for (other = 0; other < CPU_SETSIZE; other++) {
		length = strlen(allowed);
		if (!CPU_ISSET(other, all))
			continue;
		if (length > sizeof(allowed) - 16) {
			strcat(allowed, " ...");
			break;
		}
		sprintf(allowed + length, " %d", other);
	}
	snprintf(value, sizeof(value), "%d", cpu);
	bad_value(option, value, allowed);
}

static void choose_cpus(struct settings *settings)
{
	int cpu, first = -1, last = -1;
	cpu_set_t all;

	if (sched_getaffinity(0, sizeof(all), &all)) {
		cm_failed("sched_getaffinity", "this process");
		exit(1);
	}
	check_cpu("sender-cpu", settings->sender_cpu, &all);
	check_cpu("receiver-cpu", settings->receiver_cpu, &all);
	check_cpu("completion-cpu", settings->completion_cpu, &all);
	check_cpu("stamp-cpu", settings->stamp_cpu, &all);
	for (cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &all))
			continue;
		first = first < 0 ? cpu : first;
		last = cpu;
	}
	if (settings->sender_cpu < 0)
		settings->sender_cpu = last;
	if (settings->receiver_cpu < 0)
		settings->receiver_cpu = first;
	if (settings->restamp && settings->stamp_cpu < 0)
		settings->stamp_cpu = settings->sender_cpu;
}

enum fate { LOST, CHANGED, INTACT };

/* What became of the messages of a burst. */
struct verdict {
	int64_t *latencies;
	int64_t *completions;
	/* Of each message; its latency counts if it is INTACT. */
	enum fate *fates;
	int64_t *by_sequence;
	uint32_t intact;
	uint32_t corrupted;
	uint32_t duplicated;
	uint32_t completed;
};

static bool is_intact(const struct burst *burst, const struct arrival *arrival,
		      const uint64_t *message)
{
	const struct payload *payload = &burst->pair->target.payload;
	uint32_t word, sequence = arrival->label & SEQUENCE_MASK;
	uint64_t stamp = load_stamp(message);

	if (arrival->bytes != payload->size)
		return false;
	for (word = 1; word < payload->size / 8; word++)
		if (message[word] != pattern(arrival->label, word))
			return false;
	return burst->pair->settings->restamp ?
		stamp >= burst->submitted[sequence] :
		stamp == burst->submitted[sequence];
}

static void judge(const struct burst *burst, struct verdict *verdict)
{
	const struct payload *payload = &burst->pair->target.payload;
	const bool write = burst->pair->settings->write;
	const struct arrival *arrival;
	const uint64_t *message;
	uint32_t i, sequence;

	for (i = 0; i < burst->received; i++) {
		arrival = &burst->arrivals[i];
		sequence = arrival->label & SEQUENCE_MASK;
		if (sequence >= burst->posted ||
		    verdict->fates[sequence] != LOST) {
			verdict->duplicated++;
			continue;
		}
		message = (const uint64_t *)slot_of(payload, write ? sequence :
							     arrival->slot);
		if (!is_intact(burst, arrival, message)) {
			verdict->fates[sequence] = CHANGED;
			verdict->corrupted++;
			continue;
		}
		verdict->fates[sequence] = INTACT;
		verdict->by_sequence[sequence] =
			(int64_t)(arrival->stamp - load_stamp(message));
		verdict->latencies[verdict->intact++] =
			verdict->by_sequence[sequence];
	}
	for (i = 0; i < burst->posted; i++)
		if (burst->completed[i])
			verdict->completions[verdict->completed++] =
				(int64_t)(burst->completed[i] -
					  burst->submitted[i]);
}

static void summarize(const char *name, int64_t *values, uint32_t count)
{
	if (!count)
		return;
	sort_samples(values, count);
	printf("%s_min_ns=%lld\n", name, (long long)values[0]);
	printf("%s_p50_ns=%.1f\n", name, percentile(values, count, 50));
	printf("%s_p99_ns=%.1f\n", name, percentile(values, count, 99));
	printf("%s_max_ns=%lld\n", name, (long long)values[count - 1]);
}

static int write_csv(const char *path, const struct verdict *verdict,
		     uint32_t count)
{
	FILE *file = fopen(path, "w");
	uint32_t i;

	if (!file) {
		perror(path);
		return -1;
	}
	fprintf(file, "seq,latency_ns\n");
	for (i = 0; i < count; i++) {
		if (verdict->fates[i] == INTACT)
			fprintf(file, "%u,%lld\n", i,
				(long long)verdict->by_sequence[i]);
		else
			fprintf(file, "%u,\n", i);
	}
	if (ferror(file) | fclose(file)) {
		perror(path);
		return -1;
	}
	return 0;
}

static int report(const struct burst *burst, enum pages stamp_pages,
		  const char *csv)
{
	const struct pair *pair = burst->pair;
	const struct settings *settings = pair->settings;
	const size_t bytes = burst->count * sizeof(int64_t);
	struct verdict verdict = {
		.latencies = malloc(bytes),
		.completions = malloc(bytes),
		.fates = calloc(burst->count, sizeof(enum fate)),
		.by_sequence = malloc(bytes),
	};
	uint32_t lost;

	if (!verdict.latencies || !verdict.completions || !verdict.fates ||
	    !verdict.by_sequence)
		return cm_failed("malloc", "the results");
	judge(burst, &verdict);
	lost = burst->posted - verdict.intact - verdict.corrupted;
	printf("sender=%s\n",
	       ibv_get_device_name(pair->source.id->verbs->device));
	printf("receiver=%s\n",
	       ibv_get_device_name(pair->target.id->verbs->device));
	printf("sender_cpu=%d\nreceiver_cpu=%d\n", settings->sender_cpu,
	       settings->receiver_cpu);
	printf("pages=%s,%s,%s\n", page_name(stamp_pages),
	       page_name(pages_of(pair->source.payload.memory,
				  pair->source.payload.length)),
	       page_name(pages_of(pair->target.payload.memory,
				  pair->target.payload.length)));
	printf("sent=%u\nreceived=%u\nlost=%u\n", burst->posted, verdict.intact,
	       lost);
	printf("corrupted=%u\nduplicated=%u\nlate=%u\ncompleted=%u\n",
	       verdict.corrupted, verdict.duplicated, burst->late,
	       verdict.completed);
	if (settings->restamp)
		printf("rewritten=%llu\n",
		       (unsigned long long)burst->rewritten);
	summarize("latency", verdict.latencies, verdict.intact);
	summarize("completion", verdict.completions, verdict.completed);
	if (csv && write_csv(csv, &verdict, burst->posted))
		return -1;
	if (burst->posted < settings->burst) {
		fprintf(stderr, "only %u of %u messages were posted\n",
			burst->posted, settings->burst);
		return -1;
	}
	if (verdict.completed < burst->posted) {
		fprintf(stderr, "%u send requests did not complete\n",
			burst->posted - verdict.completed);
		return -1;
	}
	if (settings->service == IBV_QPT_RC && lost) {
		fprintf(stderr, "%u messages of a reliable connection did not arrive\n",
			lost);
		return -1;
	}
	free(verdict.latencies);
	free(verdict.completions);
	free(verdict.fates);
	free(verdict.by_sequence);
	return verdict.corrupted || verdict.duplicated ? -1 : 0;
}

static int measure(struct pair *pair, const char *csv)
{
	static struct burst bursts[BURSTS];
	const struct settings *settings = pair->settings;
	const uint32_t slots = pair->source.payload.slots;
	const size_t stamps = slots * sizeof(uint64_t);
	uint64_t *submitted = map_locked(stamps), *completed = map_locked(stamps);
	struct arrival *arrivals = map_locked(slots * sizeof(*arrivals));
	int i, result = submitted && completed && arrivals ? 0 : -1;
	enum pages stamp_pages;

	for (i = settings->warmup ? WARMUP : MEASURED;
	     !result && i < BURSTS; i++) {
		bursts[i].pair = pair;
		bursts[i].number = i;
		bursts[i].count = i == WARMUP ? settings->warmup :
						settings->burst;
		bursts[i].submitted = submitted;
		bursts[i].completed = completed;
		bursts[i].arrivals = arrivals;
		memset(completed, 0, stamps);
		result = run_burst(&bursts[i]);
	}
	if (bursts[MEASURED].posted) {
		stamp_pages = least_pages(
			least_pages(pages_of(submitted, stamps),
				    pages_of(completed, stamps)),
			pages_of(arrivals, slots * sizeof(*arrivals)));
		if (report(&bursts[MEASURED], stamp_pages, csv))
			result = -1;
	}
	unmap_pages(submitted, stamps);
	unmap_pages(completed, stamps);
	unmap_pages(arrivals, slots * sizeof(*arrivals));
	return result;
}

int main(int argc, char *argv[])
{
	struct settings settings = {
		.service = IBV_QPT_RC,
		.size = 8,
		.burst = 1000,
		.warmup = 100,
		.timeout_ms = 5000,
		.sender_cpu = -1,
		.receiver_cpu = -1,
		.completion_cpu = -1,
		.stamp_cpu = -1,
	};
	struct pair pair = { .settings = &settings };
	const char *csv = parse(argc, argv, &settings, &pair.cm);
	int result;

	choose_cpus(&settings);
	/* No page fault may fall into a loop. */
	if (mlockall(MCL_CURRENT | MCL_FUTURE)) {
		fprintf(stderr, "mlockall failed: %s: raise the limit with ulimit -l\n",
			strerror(errno));
		return 1;
	}
	result = connect_pair(&pair);
	if (!result) {
		/* For whoever waits for it. */
		printf("connected=1\n");
		fflush(stdout);
		result = measure(&pair, csv);
	}
	destroy_pair(&pair);
	return result ? 1 : 0;
}
