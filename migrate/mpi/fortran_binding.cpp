/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Programs in Fortran call the binding of their MPI, a library of its own, and that calls functions
 * of C: MPICH's for mpif.h calls MPI_Send(), which is libzcm's; that for mpi_f08, and all of Open
 * MPI's, call PMPI_Send(). When libzcm is loaded, it enters its MPI_Send() for PMPI_Send() in the
 * binding's table of addresses (ELF's global offset table), and the same for each function that it
 * wraps. No other library's table is changed: MPI's own calls of PMPI_Send() go where they went.
 */
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <link.h>
#include <string>
#include <string_view>
#include <sys/mman.h>
#include <unistd.h>

#include "process.h"

namespace zc::migrate {

namespace {

#if defined(__x86_64__)
constexpr unsigned kJump = R_X86_64_JUMP_SLOT, kData = R_X86_64_GLOB_DAT;
#elif defined(__aarch64__)
constexpr unsigned kJump = R_AARCH64_JUMP_SLOT, kData = R_AARCH64_GLOB_DAT;
#else
#error "say which relocations of this processor hold the addresses of functions"
#endif

/** libmpifort and, as Debian calls it, libmpichfort; Open MPI's libmpi_mpifh and libmpi_usempif08.
 */
bool is_binding(std::string_view path)
{
    const std::string_view name = path.substr(path.rfind('/') + 1);
    for (std::string_view start : {"libmpifort", "libmpichfort", "libmpi_mpifh", "libmpi_usempi"})
        if (name.starts_with(start))
            return true;
    return false;
}

/** libzcm's own MPI_... for a name PMPI_...; nullptr if it has none. */
void *wrapper_of(const char *name)
{
    if (std::strncmp(name, "PMPI", 4) != 0)
        return nullptr;
    void *function = dlsym(RTLD_DEFAULT, name + 1);
    Dl_info there, here;
    const bool is_ours = function && dladdr(function, &there) &&
                         dladdr(reinterpret_cast<void *>(&wrapper_of), &here) &&
                         there.dli_fbase == here.dli_fbase;
    return is_ours ? function : nullptr;
}

/** What the dynamic linker reads of a library. */
struct dynamic_section {
    const ElfW(Sym) *symbols = nullptr;
    const char *names = nullptr;
    const ElfW(Rela) *calls = nullptr, *others = nullptr;
    std::size_t calls_bytes = 0, others_bytes = 0;

    explicit dynamic_section(const dl_phdr_info &library)
    {
        for (int i = 0; i < library.dlpi_phnum; i++)
            if (library.dlpi_phdr[i].p_type == PT_DYNAMIC)
                read(reinterpret_cast<const ElfW(Dyn) *>(library.dlpi_addr +
                                                         library.dlpi_phdr[i].p_vaddr));
    }

  private:
    void read(const ElfW(Dyn) * entry)
    {
        /* The linker of the GNU C library has made addresses of these. */
        for (; entry->d_tag != DT_NULL; entry++)
            switch (entry->d_tag) {
            case DT_SYMTAB:
                symbols = reinterpret_cast<const ElfW(Sym) *>(entry->d_un.d_ptr);
                break;
            case DT_STRTAB:
                names = reinterpret_cast<const char *>(entry->d_un.d_ptr);
                break;
            case DT_JMPREL:
                calls = reinterpret_cast<const ElfW(Rela) *>(entry->d_un.d_ptr);
                break;
            case DT_PLTRELSZ:
                calls_bytes = entry->d_un.d_val;
                break;
            case DT_RELA:
                others = reinterpret_cast<const ElfW(Rela) *>(entry->d_un.d_ptr);
                break;
            case DT_RELASZ:
                others_bytes = entry->d_un.d_val;
                break;
            default:
                break;
            }
    }
};

/** The part of a library that the linker has made read-only: [begin, end), whole pages. */
struct read_only_part {
    ElfW(Addr) begin = 0, end = 0;

    explicit read_only_part(const dl_phdr_info &library)
    {
        const auto page = static_cast<ElfW(Addr)>(sysconf(_SC_PAGESIZE));
        for (int i = 0; i < library.dlpi_phnum; i++) {
            const ElfW(Phdr) &one = library.dlpi_phdr[i];
            if (one.p_type != PT_GNU_RELRO)
                continue;
            begin = (library.dlpi_addr + one.p_vaddr) / page * page;
            end = (library.dlpi_addr + one.p_vaddr + one.p_memsz) / page * page;
        }
    }
    bool allow(int access) const
    {
        return begin >= end || mprotect(reinterpret_cast<void *>(begin), end - begin, access) == 0;
    }
};

void enter_wrappers(const dl_phdr_info &library, const dynamic_section &of,
                    const ElfW(Rela) * relocations, std::size_t bytes)
{
    for (std::size_t i = 0; i < bytes / sizeof *relocations; i++) {
        const ElfW(Rela) &one = relocations[i];
        const auto kind = ELF64_R_TYPE(one.r_info);
        if (kind != kJump && kind != kData)
            continue;
        if (void *ours = wrapper_of(of.names + of.symbols[ELF64_R_SYM(one.r_info)].st_name))
            *reinterpret_cast<void **>(library.dlpi_addr + one.r_offset) = ours;
    }
}

int look_at(dl_phdr_info *library, std::size_t, void *)
{
    if (!library->dlpi_name || !is_binding(library->dlpi_name))
        return 0;
    const dynamic_section of(*library);
    const read_only_part part(*library);
    if (!of.symbols || !of.names || !part.allow(PROT_READ | PROT_WRITE)) {
        complain(-1, std::string(library->dlpi_name) +
                         ": its table of addresses cannot be changed: calls of programs in Fortran "
                         "are not seen, and their ranks do not move");
        return 0;
    }
    enter_wrappers(*library, of, of.calls, of.calls_bytes);
    enter_wrappers(*library, of, of.others, of.others_bytes);
    part.allow(PROT_READ);
    return 0;
}

/* All libraries of the program are loaded and linked. Without the switch nothing is changed. */
[[gnu::constructor]] void enter_wrappers_for_fortran()
{
    if (std::getenv("ZC_MIGRATE"))
        dl_iterate_phdr(look_at, nullptr);
}

} // namespace

} // namespace zc::migrate
