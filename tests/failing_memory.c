/* Lets memory run out: LD_PRELOADed into a child process, whose allocations fail as it says.

   Counted are those of the thread that armed, as far as one of the functions that led to them is in
   the library that is looked at: what this asks for itself, and what Python asks for in its name.
   Or all are counted, of all threads: memory_fails_anywhere. With PYTHONMALLOC=malloc, or Python
   asks seldom. */

#define _GNU_SOURCE
#include <errno.h>
#include <execinfo.h>
#include <stddef.h>
#include <stdint.h>

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *memory, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);

#define FRAMES_MAX 16
#define LOCAL static __thread __attribute__((tls_model("initial-exec")))

LOCAL long seen = -1;                /* allocations counted since it was armed; -1: it is not */
LOCAL long first, end;               /* which of them fail */
LOCAL long failed;
LOCAL int pauses;                    /* nothing is counted */
LOCAL void *failed_at;               /* in the library, of the first one that failed */
static uintptr_t low, high;          /* the library */
static uintptr_t *places;            /* in it, of those counted; NULL: they are not kept */
static long places_max;
static int depth;                    /* how many functions to look at, the nearest first */

void memory_fails(long number, long count, int frames, uintptr_t from, uintptr_t to) {
    void *unused[1];
    backtrace(unused, 1);            /* asks for memory when it is called first */
    low = from;
    high = to;
    depth = frames < FRAMES_MAX ? frames : FRAMES_MAX;
    first = number;
    end = number + count;
    failed = 0;
    failed_at = NULL;
    seen = 0;
}

/* Keep where each one that is counted is asked for. */
void memory_keeps(uintptr_t *to, long count) {
    places = to;
    places_max = count;
}

void memory_pauses(int on) {
    pauses = on;
}

/* How many were counted, or failed if any was to. */
long memory_lasts(void) {
    long counted = seen;
    seen = -1;
    return end > first ? failed : counted;
}

uintptr_t memory_failed_at(void) {
    return failed_at ? (uintptr_t)failed_at - low : 0;
}

static int anywhere;                 /* counts */
static long anywhere_seen, anywhere_at;

/* One of the allocations in the whole process, from 0 on, while `memory_counts_anywhere`. */
void memory_fails_anywhere(long number) {
    anywhere_at = number;
    anywhere_seen = 0;
}

void memory_counts_anywhere(int on) {
    __atomic_store_n(&anywhere, on, __ATOMIC_SEQ_CST);
}

long memory_counted_anywhere(void) {
    return anywhere_seen;
}

static int fails(void) {
    void *frames[FRAMES_MAX + 2];
    int count, at;
    if (__atomic_load_n(&anywhere, __ATOMIC_RELAXED)) {
        if (__atomic_fetch_add(&anywhere_seen, 1, __ATOMIC_RELAXED) != anywhere_at)
            return 0;
        errno = ENOMEM;
        return 1;
    }
    if (seen < 0 || pauses)
        return 0;
    pauses = 1;
    count = backtrace(frames, depth + 2);
    pauses = 0;
    for (at = 2; at < count; at++)
        if ((uintptr_t)frames[at] >= low && (uintptr_t)frames[at] < high)
            break;
    if (at >= count)
        return 0;
    if (places != NULL && seen < places_max)
        places[seen] = (uintptr_t)frames[at] - low;
    if (seen >= end)
        return 0;
    if (seen++ < first)
        return 0;
    if (failed++ == 0)
        failed_at = frames[at];
    errno = ENOMEM;
    return 1;
}

void *malloc(size_t size) {
    return fails() ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size) {
    return fails() ? NULL : __libc_calloc(count, size);
}

void *realloc(void *memory, size_t size) {
    return fails() ? NULL : __libc_realloc(memory, size);
}

void *memalign(size_t alignment, size_t size) {
    return fails() ? NULL : __libc_memalign(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
    return fails() ? NULL : __libc_memalign(alignment, size);
}

int posix_memalign(void **memory, size_t alignment, size_t size) {
    void *found = fails() ? NULL : __libc_memalign(alignment, size);
    if (found == NULL)
        return ENOMEM;
    *memory = found;
    return 0;
}
