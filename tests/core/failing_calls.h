/* Lets calls of the compiled library to C functions fail, for one thread of a test.

   What a shared library calls stands in a table of addresses, one for each function. Here those of
   the library that holds the core are replaced while a plan is in force, so tests of every build
   reach what follows a failing call, without another process. */
#ifndef PULSARX_FAILING_CALLS
#define PULSARX_FAILING_CALLS

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__x86_64__)
#define FAILING_IS_SLOT(type) ((type) == R_X86_64_JUMP_SLOT || (type) == R_X86_64_GLOB_DAT)
#elif defined(__aarch64__)
#define FAILING_IS_SLOT(type) ((type) == R_AARCH64_JUMP_SLOT || (type) == R_AARCH64_GLOB_DAT)
#endif

/* Whole numbers and pointers are passed in the same registers, however many a function takes. */
typedef long (*failing_function)(long, long, long, long, long, long);

struct failing_call {
    const char *name;                /* NULL: not in force */
    failing_function real;
    void **slots[2];                 /* of the name, and of what large files made of it */
    void *before[2];                 /* in the slots */
    long first, end;                 /* which calls fail, counted from 1 */
    long seen, answer;
    int error;
};

#define FAILING_MAX 4
static struct failing_call failing_plan[FAILING_MAX];
static __thread int failing_here;    /* the thread whose calls fail */

static long failing_answer(struct failing_call *call, long a, long b, long c, long d, long e,
                           long f) {
    if (failing_here && ++call->seen >= call->first && call->seen < call->end) {
        errno = call->error;
        return call->answer;
    }
    return call->real(a, b, c, d, e, f);
}

#define FAILING_FUNCTION(at)                                                                  \
    static long failing_function_##at(long a, long b, long c, long d, long e, long f) {       \
        return failing_answer(&failing_plan[at], a, b, c, d, e, f);                           \
    }
FAILING_FUNCTION(0)
FAILING_FUNCTION(1)
FAILING_FUNCTION(2)
FAILING_FUNCTION(3)
static const failing_function failing_functions[FAILING_MAX] = {
    failing_function_0, failing_function_1, failing_function_2, failing_function_3};

static void *failing_swap(void **slot, void *to) {
    long page = sysconf(_SC_PAGESIZE);
    void *before = *slot;
    mprotect((void *)((uintptr_t)slot & ~(uintptr_t)(page - 1)), (size_t)page,
             PROT_READ | PROT_WRITE);
    __atomic_store_n(slot, to, __ATOMIC_SEQ_CST);
    return before;
}

static void **failing_slot_in(const struct dl_phdr_info *library, const char *name) {
    const ElfW(Dyn) *entry = NULL;
    const ElfW(Rela) *tables[2] = {NULL, NULL};
    const ElfW(Sym) *symbols = NULL;
    const char *names = NULL;
    size_t sizes[2] = {0, 0};
    for (int at = 0; at < library->dlpi_phnum; at++)
        if (library->dlpi_phdr[at].p_type == PT_DYNAMIC)
            entry = (const ElfW(Dyn) *)(library->dlpi_addr + library->dlpi_phdr[at].p_vaddr);
    for (; entry != NULL && entry->d_tag != DT_NULL; entry++) {
        switch (entry->d_tag) {
        case DT_JMPREL: tables[0] = (const ElfW(Rela) *)entry->d_un.d_ptr; break;
        case DT_PLTRELSZ: sizes[0] = entry->d_un.d_val; break;
        case DT_RELA: tables[1] = (const ElfW(Rela) *)entry->d_un.d_ptr; break;
        case DT_RELASZ: sizes[1] = entry->d_un.d_val; break;
        case DT_SYMTAB: symbols = (const ElfW(Sym) *)entry->d_un.d_ptr; break;
        case DT_STRTAB: names = (const char *)entry->d_un.d_ptr; break;
        }
    }
    for (int at = 0; at < 2; at++)
        for (size_t number = 0; number < sizes[at] / sizeof(ElfW(Rela)); number++) {
            const ElfW(Rela) *each = &tables[at][number];
            if (FAILING_IS_SLOT(ELF64_R_TYPE(each->r_info)) &&
                strcmp(names + symbols[ELF64_R_SYM(each->r_info)].st_name, name) == 0)
                return (void **)(library->dlpi_addr + each->r_offset);
        }
    return NULL;
}

struct failing_search {
    const char *name;
    void **slot;
};

static int failing_look(struct dl_phdr_info *library, size_t size, void *wanted) {
    struct failing_search *search = wanted;
    (void)size;
    if (strstr(library->dlpi_name, "_linked") == NULL)
        return 0;
    search->slot = failing_slot_in(library, search->name);
    return search->slot != NULL;
}

/* From now on, calls first to first + count - 1 that this thread's code in the library makes to the
   function answer so, with errno, and do nothing. 0: the library calls no such function. */
static int calls_fail(const char *name, long first, long count, long answer, int error) {
    struct failing_call *call = failing_plan;
    char large[64];
    int found = 0;
    while (call < failing_plan + FAILING_MAX && call->name != NULL)
        call++;
    if (call == failing_plan + FAILING_MAX)
        return 0;
    strcpy(large, name);
    strcat(large, "64");
    call->real = (failing_function)dlsym(RTLD_DEFAULT, name);
    call->first = first;
    call->end = first + count;
    call->seen = 0;
    call->answer = answer;
    call->error = error;
    for (int at = 0; at < 2; at++) {
        struct failing_search search = {at ? large : name, NULL};
        call->slots[at] = dl_iterate_phdr(failing_look, &search) ? search.slot : NULL;
        if (call->slots[at] == NULL)
            continue;
        call->name = name;
        call->before[at] =
            failing_swap(call->slots[at], (void *)failing_functions[call - failing_plan]);
        found = 1;
    }
    failing_here = failing_here || found;
    return found;
}

/* All calls go where they went. How many calls of the functions there were, whether they failed or
   not. */
static long calls_succeed(void) {
    long seen = 0;
    failing_here = 0;
    for (int number = FAILING_MAX - 1; number >= 0; number--) {
        struct failing_call *call = &failing_plan[number];
        if (call->name == NULL)
            continue;
        for (int at = 0; at < 2; at++)
            if (call->slots[at] != NULL)
                failing_swap(call->slots[at], call->before[at]);
        call->name = NULL;
        seen += call->seen;
    }
    return seen;
}

#endif
