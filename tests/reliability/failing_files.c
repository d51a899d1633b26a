/* Lets calls on files fail: LD_PRELOADed into a child process, whose calls fail as it says.

   Counted are the calls of all threads on files and folders below the one that is watched, those of
   Python and of other libraries too. What `file_ops` and its plan of faults cannot show is shown
   here: writes that are cut short, calls that a signal interrupts, and flushes that fail and lose
   what was written since the last one, as those of the Linux kernel do. */

#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

enum { OPEN, READ, WRITE, FLUSH, ALLOCATE, TRUNCATE, RENAME, LINK, UNLINK, MAKE_DIRECTORY, STAT,
       LIST, MAP, CLOSE, OP_COUNT };
enum { ERROR = 1,                   /* nothing is done */
       SHORT,                       /* half of it is done, and the call says so */
       SHORT_ERROR,                 /* and the next one of this kind fails */
       LATE,                        /* it is done, and the call fails */
       DROP,                        /* flush: it fails; what was written since the last is gone */
       LIE };                       /* as DROP, a write likewise; and the call says that it is done */

#define DESCRIPTORS_MAX 65536
#define KEPT_MAX 4096
#define KEPT_SIZE (16 << 20)

struct kept { dev_t device; ino_t inode; off_t at; size_t size; unsigned char *old; };

static char watched[PATH_MAX];
static size_t watched_size;
static unsigned char below[DESCRIPTORS_MAX];
static long calls[OP_COUNT], struck;
static int failing_op = -1, failing_kind, failing_error;
static long first, end;
static int keeps;                   /* what is overwritten, for DROP and LIE */
static struct kept kept[KEPT_MAX];
static long kept_count;
static unsigned char *old_bytes;
static size_t old_used;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

#define REAL(name) ({ \
    static __typeof__(&name) real; \
    real = real ? real : (__typeof__(&name))dlsym(RTLD_NEXT, #name); \
    real; })

/* The folder whose files are counted; those that are open already are not. */
void files_watch(const char *folder) {
    watched_size = strlen(folder);
    memcpy(watched, folder, watched_size + 1);
    memset(below, 0, sizeof below);
}

/* From now on these calls of this operation fail, counted from 1; op -1: none. */
void files_fail(int op, int kind, long call, long count, int error) {
    pthread_mutex_lock(&mutex);
    memset(calls, 0, sizeof calls);
    struck = 0;
    failing_op = op;
    failing_kind = kind;
    failing_error = error;
    first = call;
    end = call + count;
    pthread_mutex_unlock(&mutex);
}

void files_keep(void) {
    if (old_bytes == NULL)
        old_bytes = mmap(NULL, KEPT_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    keeps = 1;
}

long files_calls(int op) { return calls[op]; }

long files_struck(void) { return struck; }

static int is_below(const char *path) {
    return watched_size && path != NULL && strncmp(path, watched, watched_size) == 0;
}

static int is_open_below(int fd) {
    return fd >= 0 && fd < DESCRIPTORS_MAX && below[fd];
}

/* What happens to this call; 0: nothing. */
static int fault(int op) {
    int kind = 0;
    pthread_mutex_lock(&mutex);
    calls[op]++;
    if (op == failing_op && calls[op] >= first && calls[op] < end) {
        kind = failing_kind;
        if (kind == SHORT_ERROR)
            kind = calls[op] == first ? SHORT : ERROR;
        struck++;
    }
    pthread_mutex_unlock(&mutex);
    return kind;
}

static int refused(void) {
    errno = failing_error;
    return -1;
}

static ssize_t write_really(int fd, const void *data, size_t size, off_t at) {
    return REAL(pwrite64)(fd, data, size, at);
}

/* Keep what a write is to replace. */
static void keep(int fd, size_t size, off_t at) {
    struct stat64 found;
    ssize_t got;
    if (!keeps || REAL(fstat64)(fd, &found) < 0)
        return;
    pthread_mutex_lock(&mutex);
    if (kept_count < KEPT_MAX && old_used + size <= KEPT_SIZE) {
        got = REAL(pread64)(fd, old_bytes + old_used, size, at);
        got = got < 0 ? 0 : got;
        memset(old_bytes + old_used + got, 0, size - (size_t)got);
        kept[kept_count++] = (struct kept){
            found.st_dev, found.st_ino, at, size, old_bytes + old_used};
        old_used += size;
    }
    pthread_mutex_unlock(&mutex);
}

/* Forget what was kept of a file, which is flushed now, or put it back, the last first. */
static void settle(int fd, int undo) {
    struct stat64 found;
    long at;
    if (!keeps || REAL(fstat64)(fd, &found) < 0)
        return;
    pthread_mutex_lock(&mutex);
    for (at = kept_count - 1; at >= 0; at--) {
        if (kept[at].size == 0 || kept[at].device != found.st_dev || kept[at].inode != found.st_ino)
            continue;
        if (undo && write_really(fd, kept[at].old, kept[at].size, kept[at].at) < 0)
            continue;
        kept[at].size = 0;
    }
    pthread_mutex_unlock(&mutex);
}

static int opened(int fd, int is) {
    if (fd >= 0 && fd < DESCRIPTORS_MAX)
        below[fd] = (unsigned char)is;
    return fd;
}

#define OPENS(name) \
int name(const char *path, int flags, ...) { \
    mode_t mode = 0; \
    int is = is_below(path); \
    va_list more; \
    va_start(more, flags); \
    if (flags & (O_CREAT | __O_TMPFILE)) \
        mode = va_arg(more, mode_t); \
    va_end(more); \
    if (is && fault(OPEN)) \
        return refused(); \
    return opened(REAL(name)(path, flags, mode), is); \
}
OPENS(open)
OPENS(open64)

#define OPENS_AT(name) \
int name(int folder, const char *path, int flags, ...) { \
    mode_t mode = 0; \
    int is = path[0] == '/' ? is_below(path) : is_open_below(folder); \
    va_list more; \
    va_start(more, flags); \
    if (flags & (O_CREAT | __O_TMPFILE)) \
        mode = va_arg(more, mode_t); \
    va_end(more); \
    if (is && fault(OPEN)) \
        return refused(); \
    return opened(REAL(name)(folder, path, flags, mode), is); \
}
OPENS_AT(openat)
OPENS_AT(openat64)

int close(int fd) {
    int is = is_open_below(fd);
    int kind = is ? fault(CLOSE) : 0;
    int answer;
    if (is)
        below[fd] = 0;
    answer = REAL(close)(fd);
    return kind ? refused() : answer;
}

#define READS(name, TAIL, ...) \
ssize_t name(int fd, void *room, size_t size TAIL) { \
    int kind = is_open_below(fd) ? fault(READ) : 0; \
    if (kind == ERROR) \
        return refused(); \
    if (kind == SHORT && size > 1) \
        size /= 2; \
    return REAL(name)(fd, room, size __VA_ARGS__); \
}
#define AT , off_t at
READS(read, )
READS(pread, AT, , at)
READS(pread64, AT, , at)

static ssize_t writes(int fd, const void *data, size_t size, off_t at, int positioned) {
    int kind = is_open_below(fd) ? fault(WRITE) : 0;
    ssize_t answer;
    if (kind == ERROR)
        return refused();
    if (kind == LIE) {
        if (!positioned)
            lseek(fd, (off_t)size, SEEK_CUR);
        return (ssize_t)size;
    }
    if (kind == SHORT && size > 1)
        size /= 2;
    if (is_open_below(fd))
        keep(fd, size, positioned ? at : lseek(fd, 0, SEEK_CUR));
    answer = positioned ? write_really(fd, data, size, at) : REAL(write)(fd, data, size);
    return kind == LATE ? refused() : answer;
}

ssize_t write(int fd, const void *data, size_t size) { return writes(fd, data, size, 0, 0); }

ssize_t pwrite(int fd, const void *data, size_t size, off_t at) {
    return writes(fd, data, size, at, 1);
}

ssize_t pwrite64(int fd, const void *data, size_t size, off_t at) {
    return writes(fd, data, size, at, 1);
}

#define FLUSHES(name) \
int name(int fd) { \
    int kind = is_open_below(fd) ? fault(FLUSH) : 0; \
    int answer; \
    if (kind == DROP || kind == LIE) \
        settle(fd, 1); \
    if (kind == LIE) \
        return 0; \
    if (kind && kind != LATE) \
        return refused(); \
    answer = REAL(name)(fd); \
    if (answer == 0 && is_open_below(fd)) \
        settle(fd, 0); \
    return kind ? refused() : answer; \
}
FLUSHES(fsync)
FLUSHES(fdatasync)

#define ALLOCATES(name) \
int name(int fd, off_t at, off_t size) { \
    return is_open_below(fd) && fault(ALLOCATE) ? failing_error : REAL(name)(fd, at, size); \
}
ALLOCATES(posix_fallocate)
ALLOCATES(posix_fallocate64)

#define PUNCHES(name) \
int name(int fd, int mode, off_t at, off_t size) { \
    return is_open_below(fd) && fault(ALLOCATE) ? refused() : REAL(name)(fd, mode, at, size); \
}
PUNCHES(fallocate)
PUNCHES(fallocate64)

#define TRUNCATES(name) \
int name(int fd, off_t size) { \
    return is_open_below(fd) && fault(TRUNCATE) ? refused() : REAL(name)(fd, size); \
}
TRUNCATES(ftruncate)
TRUNCATES(ftruncate64)

#define OF_TWO_NAMES(name, op) \
int name(const char *source, const char *target) { \
    int kind = is_below(source) || is_below(target) ? fault(op) : 0; \
    int answer; \
    if (kind == ERROR) \
        return refused(); \
    answer = REAL(name)(source, target); \
    return kind ? refused() : answer; \
}
OF_TWO_NAMES(rename, RENAME)
OF_TWO_NAMES(link, LINK)

#define OF_A_NAME(name, op) \
int name(const char *path) { \
    return is_below(path) && fault(op) ? refused() : REAL(name)(path); \
}
OF_A_NAME(unlink, UNLINK)
OF_A_NAME(rmdir, UNLINK)

int unlinkat(int folder, const char *path, int flags) {
    int is = path[0] == '/' ? is_below(path) : is_open_below(folder);
    return is && fault(UNLINK) ? refused() : REAL(unlinkat)(folder, path, flags);
}

int mkdir(const char *path, mode_t mode) {
    return is_below(path) && fault(MAKE_DIRECTORY) ? refused() : REAL(mkdir)(path, mode);
}

#define STATS(name, kind) \
int name(const char *path, struct kind *found) { \
    return is_below(path) && fault(STAT) ? refused() : REAL(name)(path, found); \
}
STATS(stat, stat)
STATS(stat64, stat64)
STATS(lstat, stat)
STATS(lstat64, stat64)

#define STATS_OPEN(name, kind) \
int name(int fd, struct kind *found) { \
    return is_open_below(fd) && fault(STAT) ? refused() : REAL(name)(fd, found); \
}
STATS_OPEN(fstat, stat)
STATS_OPEN(fstat64, stat64)

DIR *opendir(const char *path) {
    if (is_below(path) && fault(LIST)) {
        errno = failing_error;
        return NULL;
    }
    return REAL(opendir)(path);
}

#define MAPS(name) \
void *name(void *at, size_t size, int protection, int flags, int fd, off_t offset) { \
    if (fd >= 0 && is_open_below(fd) && fault(MAP)) { \
        errno = failing_error; \
        return MAP_FAILED; \
    } \
    return REAL(name)(at, size, protection, flags, fd, offset); \
}
MAPS(mmap)
MAPS(mmap64)

long syscall(long number, ...) {
    long given[6];
    int at;
    va_list more;
    va_start(more, number);
    for (at = 0; at < 6; at++)
        given[at] = va_arg(more, long);
    va_end(more);
    if (number == SYS_renameat2 && (is_below((char *)given[1]) || is_below((char *)given[3]))
        && fault(RENAME))
        return refused();
    return REAL(syscall)(number, given[0], given[1], given[2], given[3], given[4], given[5]);
}
