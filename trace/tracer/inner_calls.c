/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "inner_calls.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__x86_64__) || defined(__aarch64__)

#if defined(__x86_64__)
#define OF_CALL R_X86_64_JUMP_SLOT
#define OF_ADDRESS R_X86_64_GLOB_DAT
#else
#define OF_CALL R_AARCH64_JUMP_SLOT
#define OF_ADDRESS R_AARCH64_GLOB_DAT
#endif

/* What the dynamic linker knows of a library. */
struct library {
    uintptr_t base;
    const ElfW(Sym) * symbols;
    const char *names;
    const ElfW(Rela) * calls, *others;
    size_t call_bytes, other_bytes;
    uintptr_t relro_begin, relro_end; /* read-only once it is relocated; 0, 0: nothing is */
};

/* Finds what is read-only of the library at @arg's base. */
static int find_relro(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct library *l = arg;
    (void)size;
    if (info->dlpi_addr != l->base)
        return 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (segment->p_type == PT_GNU_RELRO) {
            l->relro_begin = l->base + segment->p_vaddr;
            l->relro_end = l->relro_begin + segment->p_memsz;
        }
    }
    return 1;
}

static struct library read_dynamic(const struct link_map *map)
{
    struct library l = {.base = map->l_addr};
    for (const ElfW(Dyn) *d = map->l_ld; d->d_tag != DT_NULL; d++) {
        /* glibc has added the base to these. */
        const void *at = (const void *)d->d_un.d_ptr;
        switch (d->d_tag) {
        case DT_SYMTAB:
            l.symbols = at;
            break;
        case DT_STRTAB:
            l.names = at;
            break;
        case DT_JMPREL:
            l.calls = at;
            break;
        case DT_PLTRELSZ:
            l.call_bytes = d->d_un.d_val;
            break;
        case DT_RELA:
            l.others = at;
            break;
        case DT_RELASZ:
            l.other_bytes = d->d_un.d_val;
            break;
        default:
            break;
        }
    }
    return l;
}

static bool is_of_mpi(const char *name)
{
    return strncmp(name, "MPI_", 4) == 0 || strncmp(name, "PMPI_", 5) == 0;
}

/* If the page cannot be written the call stays as it is. */
static void put(const struct library *l, uintptr_t at, uintptr_t value)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t begin = at & ~(page - 1);
    uintptr_t *place = (uintptr_t *)at;
    if (*place == value || mprotect((void *)begin, page, PROT_READ | PROT_WRITE) != 0)
        return;
    *place = value;
    if (begin >= l->relro_begin && begin + page <= l->relro_end)
        mprotect((void *)begin, page, PROT_READ);
}

static void bind_own(const struct library *l, const ElfW(Rela) * relocations, size_t bytes)
{
    for (size_t i = 0; i < bytes / sizeof(*relocations); i++) {
        const ElfW(Rela) *r = &relocations[i];
        const unsigned long type = ELF64_R_TYPE(r->r_info);
        if (type != OF_CALL && type != OF_ADDRESS)
            continue;
        const ElfW(Sym) *symbol = &l->symbols[ELF64_R_SYM(r->r_info)];
        if (symbol->st_shndx != SHN_UNDEF && ELF64_ST_TYPE(symbol->st_info) == STT_FUNC &&
            is_of_mpi(l->names + symbol->st_name))
            put(l, l->base + r->r_offset, l->base + symbol->st_value);
    }
}

static bool has_fortran(const char *path, const void *base)
{
    Dl_info info;
    static const char *const names[] = {"mpi_send_", "mpi_send", "mpi_send__", "MPI_SEND"};
    void *library = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
    bool has = false;
    for (size_t i = 0; library && i < sizeof(names) / sizeof(*names); i++) {
        void *found = dlsym(library, names[i]);
        has |= found && dladdr(found, &info) && info.dli_fbase == base;
    }
    if (library)
        dlclose(library);
    return has;
}

void zct_leave_inner_calls(void *function)
{
    Dl_info info;
    struct link_map *map = NULL;
    if (!dladdr1(function, &info, (void **)&map, RTLD_DL_LINKMAP) || !map ||
        has_fortran(info.dli_fname, info.dli_fbase))
        return;
    struct library l = read_dynamic(map);
    if (!l.symbols || !l.names)
        return;
    dl_iterate_phdr(find_relro, &l);
    if (l.calls)
        bind_own(&l, l.calls, l.call_bytes);
    if (l.others)
        bind_own(&l, l.others, l.other_bytes);
}

#else

void zct_leave_inner_calls(void *function)
{
    (void)function;
}

#endif
