/*
 * Memory in pages of a known size.
 *
 * Reserved huge pages come first, else small ones that the kernel joins. It
 * joins what it can and says nothing of the rest, so it is asked afterwards.
 *
 * In Rust: hcabench::buffer::HugeBuffer
 *          hcabench::buffer::Region
 */
#ifndef LISTINGS_PAGES_H
#define LISTINGS_PAGES_H

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>

#define SMALL_PAGE ((size_t)4096)
#define HUGE_PAGE ((size_t)2 << 20)

/* The pages that memory got, the least first. */
enum pages { SMALL, PARTLY_TRANSPARENT_HUGE, TRANSPARENT_HUGE, HUGE };

/* As hcabench names them. */
static inline const char *page_name(enum pages pages)
{
	static const char *const names[] = {
		[SMALL] = "small",
		[PARTLY_TRANSPARENT_HUGE] = "partly-transparent-huge",
		[TRANSPARENT_HUGE] = "transparent-huge",
		[HUGE] = "huge",
	};

	return names[pages];
}

static inline size_t round_up(size_t length, size_t unit)
{
	return (length + unit - 1) / unit * unit;
}

static inline void unmap_pages(void *memory, size_t length)
{
	if (memory)
		munmap(memory, round_up(length, HUGE_PAGE));
}

/* Small pages that are joined, or never; NULL if there is no memory. */
static inline void *map_advised(size_t rounded, int advice)
{
	/* mlockall() populates what can be accessed at once, and in small
	 * pages: nobody may, until it was advised. */
	char *start = mmap(NULL, rounded + HUGE_PAGE, PROT_NONE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t extra;

	if (start == MAP_FAILED)
		return NULL;
	/* Aligned, so that it can be huge at all. */
	extra = round_up((uintptr_t)start, HUGE_PAGE) - (uintptr_t)start;
	if (extra)
		munmap(start, extra);
	munmap(start + extra + rounded, HUGE_PAGE - extra);
	/* It fails in a kernel without them: pages_of() tells. */
	madvise(start + extra, rounded, advice);
	if (mprotect(start + extra, rounded, PROT_READ | PROT_WRITE)) {
		munmap(start + extra, rounded);
		return NULL;
	}
	return start + extra;
}

/* Memory that is touched, huge if it can be; NULL, and errno, if there is
 * none. */
static inline void *map_pages(size_t length, bool huge)
{
	size_t rounded = round_up(length, HUGE_PAGE), i;
	volatile char *memory = MAP_FAILED;

	if (huge)
		memory = mmap(NULL, rounded, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB |
				      MAP_POPULATE,
			      -1, 0);
	if (memory == MAP_FAILED)
		memory = map_advised(rounded,
				     huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
	for (i = 0; memory && i < rounded; i += SMALL_PAGE)
		memory[i] = 0;
	return (void *)memory;
}

/* The kernel tells it of a whole mapping, of which this may be a part: what
 * is joined to it may be short of huge pages at its ends only. */
static inline enum pages pages_of(const void *memory, size_t length)
{
	uintptr_t start = (uintptr_t)memory, from, to;
	size_t kib, all = 0, joined = 0;
	FILE *maps = fopen("/proc/self/smaps", "r");
	bool inside = false, reserved = false;
	char line[512];

	if (!maps)
		return SMALL;
	while (fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " ", &from, &to) == 2)
			inside = from < start + length && start < to;
		else if (!inside)
			continue;
		else if (sscanf(line, "Size: %zu kB", &kib) == 1)
			all += kib << 10;
		else if (sscanf(line, "AnonHugePages: %zu kB", &kib) == 1)
			joined += kib << 10;
		else if (sscanf(line, "KernelPageSize: %zu kB", &kib) == 1)
			reserved = kib << 10 >= HUGE_PAGE;
	}
	fclose(maps);
	if (reserved)
		return HUGE;
	if (!joined)
		return SMALL;
	length = round_up(length, HUGE_PAGE);
	return joined >= length && joined + 2 * HUGE_PAGE >= all ?
		TRANSPARENT_HUGE : PARTLY_TRANSPARENT_HUGE;
}

#endif
