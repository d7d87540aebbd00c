/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Programs in Fortran call the binding of their MPI, a library of its own, and that calls functions
 * of C: MPICH's for mpif.h calls MPI_Send(), which is libzcm's; that for mpi_f08, and all of Open
 * MPI's, call PMPI_Send(). When libzcm is loaded, it enters its MPI_Send() for PMPI_Send() in the
 * binding's table of addresses (ELF's global offset table), and the same for each function that it
 * wraps. No other library's table is changed: MPI's own calls of PMPI_Send() go where they went.
 */
#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <link.h>
#include <span>
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

/** What the dynamic linker reads of a library: its dynamic section, one entry of each kind. */
class dynamic_section {
  public:
    explicit dynamic_section(const dl_phdr_info &library)
    {
        for (int i = 0; i < library.dlpi_phnum; i++)
            if (library.dlpi_phdr[i].p_type == PT_DYNAMIC)
                read(reinterpret_cast<const ElfW(Dyn) *>(library.dlpi_addr +
                                                         library.dlpi_phdr[i].p_vaddr));
    }
    /** The linker of the GNU C library has made addresses of these. nullptr if there is none. */
    template <typename T>
    const T *table(std::size_t tag) const
    {
        return reinterpret_cast<const T *>(values_[tag]);
    }
    /** In bytes; 0 if there is no such entry. */
    std::size_t size(std::size_t tag) const { return values_[tag]; }

  private:
    void read(const ElfW(Dyn) * entry)
    {
        for (; entry->d_tag != DT_NULL; entry++)
            if (entry->d_tag > 0 && static_cast<std::size_t>(entry->d_tag) < values_.size())
                values_[static_cast<std::size_t>(entry->d_tag)] = entry->d_un.d_val;
    }

    std::array<ElfW(Xword), DT_NUM> values_{}; /* by the entry's tag */
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

/** For the relocations in @table, which are @size bytes; both are tags of the dynamic section. */
void enter_wrappers(const dl_phdr_info &library, const dynamic_section &of, std::size_t table,
                    std::size_t size)
{
    const auto *relocations = of.table<ElfW(Rela)>(table);
    const auto *symbols = of.table<ElfW(Sym)>(DT_SYMTAB);
    const auto *names = of.table<char>(DT_STRTAB);
    for (const ElfW(Rela) & one : std::span(relocations, of.size(size) / sizeof *relocations)) {
        const auto kind = ELF64_R_TYPE(one.r_info);
        if (kind != kJump && kind != kData)
            continue;
        if (void *ours = wrapper_of(names + symbols[ELF64_R_SYM(one.r_info)].st_name))
            *reinterpret_cast<void **>(library.dlpi_addr + one.r_offset) = ours;
    }
}

int look_at(dl_phdr_info *library, std::size_t, void *)
{
    if (!library->dlpi_name || !is_binding(library->dlpi_name))
        return 0;
    const dynamic_section of(*library);
    const read_only_part part(*library);
    if (!of.table<ElfW(Sym)>(DT_SYMTAB) || !of.table<char>(DT_STRTAB) ||
        !part.allow(PROT_READ | PROT_WRITE)) {
        complain(-1, std::string(library->dlpi_name) +
                         ": its table of addresses cannot be changed: calls of programs in Fortran "
                         "are not seen, and their ranks do not move");
        return 0;
    }
    enter_wrappers(*library, of, DT_JMPREL, DT_PLTRELSZ);
    enter_wrappers(*library, of, DT_RELA, DT_RELASZ);
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
