/* SPDX-License-Identifier: BSD-3-Clause */
#include "object_identity.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <limits>
#include <unistd.h>
#include <vector>

#include "crc32c.h"
#include "mapped_file.h"

namespace zc::migrate {

namespace {

/**
 * What is at @vaddr of @object, all @size bytes; nothing if that is not within one segment that the
 * loader has mapped to be read, from its file. What a table in an object says need not be so:
 * patchelf, packers and strip leave notes that no segment has, and to read there is to crash.
 */
std::span<const unsigned char> mapped(const dl_phdr_info &object, ElfW(Addr) vaddr,
                                      std::size_t size) noexcept
{
    for (int i = 0; i < object.dlpi_phnum; i++) {
        const ElfW(Phdr) &part = object.dlpi_phdr[i];
        const std::size_t has = std::min(part.p_filesz, part.p_memsz);
        if (part.p_type == PT_LOAD && (part.p_flags & PF_R) && vaddr >= part.p_vaddr &&
            vaddr - part.p_vaddr <= has && size <= has - (vaddr - part.p_vaddr))
            return {reinterpret_cast<const unsigned char *>(object.dlpi_addr + vaddr), size};
    }
    return {};
}

/** The same at an address that a dynamic section has: the C library may have made it one in memory
 * (glibc does, where that section can be written), or have left it as it is in the file (musl). */
std::span<const unsigned char> pointed_to(const dl_phdr_info &object, ElfW(Addr) address,
                                          std::size_t size) noexcept
{
    const auto found = mapped(object, address - object.dlpi_addr, size);
    return found.empty() ? mapped(object, address, size) : found;
}

/** What a dynamic section says of names: where they are, and which one is the object's own. */
struct dynamic_names {
    ElfW(Addr) table = 0;
    std::size_t size = 0, own = 0; /* the table has no name at 0 */
};

dynamic_names names_in(std::span<const unsigned char> dynamic) noexcept
{
    dynamic_names names;
    ElfW(Dyn) entry;
    for (; dynamic.size() >= sizeof entry; dynamic = dynamic.subspan(sizeof entry)) {
        std::memcpy(&entry, dynamic.data(), sizeof entry);
        if (entry.d_tag == DT_NULL)
            break;
        if (entry.d_tag == DT_STRTAB)
            names.table = entry.d_un.d_ptr;
        else if (entry.d_tag == DT_STRSZ)
            names.size = entry.d_un.d_val;
        else if (entry.d_tag == DT_SONAME)
            names.own = entry.d_un.d_val;
    }
    return names;
}

/** In one segment of notes; nothing if it is not there. */
std::span<const unsigned char> build_id_in(std::span<const unsigned char> notes) noexcept
{
    constexpr auto padded = [](std::size_t n) { return (n + 3) & ~std::size_t{3}; };
    static_assert(std::numeric_limits<std::size_t>::digits > 32, "padded() may overflow");
    ElfW(Nhdr) note;
    while (notes.size() >= sizeof note) {
        std::memcpy(&note, notes.data(), sizeof note);
        notes = notes.subspan(sizeof note);
        const std::size_t name = padded(note.n_namesz), what = padded(note.n_descsz);
        if (notes.size() < name || notes.size() - name < note.n_descsz)
            break;
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && note.n_descsz > 0 &&
            std::memcmp(notes.data(), "GNU", 4) == 0)
            return notes.subspan(name, note.n_descsz);
        notes = notes.subspan(std::min(notes.size(), name + what));
    }
    return {};
}

constexpr std::string_view kReplaced = "replaced-";

constexpr std::uintptr_t kProgram = 0; /* which is the first that the loader tells of */

/**
 * One object, as noted while the loader holds its locks. Nothing is allocated then, as an allocator
 * may wait for another thread that waits for the loader. What there is no room for is counted only.
 */
struct noted_object {
    std::uintptr_t address = kProgram; /* within it */
    std::vector<char> path;
    std::vector<unsigned char> id;
    std::size_t path_size = 0, id_size = 0;

    bool is_complete() const noexcept { return path_size <= path.size() && id_size <= id.size(); }
};

int note(dl_phdr_info *object, std::size_t, void *argument) noexcept
{
    auto &wanted = *static_cast<noted_object *>(argument);
    bool is_it = wanted.address == kProgram;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) &part = object->dlpi_phdr[i];
        const ElfW(Addr) begin = object->dlpi_addr + part.p_vaddr;
        is_it |= part.p_type == PT_LOAD && wanted.address >= begin &&
                 wanted.address < begin + part.p_memsz;
    }
    if (!is_it)
        return 0;
    const std::string_view path = object->dlpi_name ? object->dlpi_name : "";
    const auto id = build_id_bytes(*object);
    wanted.path_size = path.size();
    wanted.id_size = id.size();
    if (wanted.is_complete()) {
        std::ranges::copy(path, wanted.path.begin());
        std::ranges::copy(id, wanted.id.begin());
    }
    return 1;
}

} // namespace

std::span<const unsigned char> build_id_bytes(const dl_phdr_info &object) noexcept
{
    for (int i = 0; i < object.dlpi_phnum; i++) {
        const ElfW(Phdr) &part = object.dlpi_phdr[i];
        if (part.p_type != PT_NOTE)
            continue;
        const std::size_t size = std::min(part.p_filesz, part.p_memsz);
        if (const auto id = build_id_in(mapped(object, part.p_vaddr, size)); !id.empty())
            return id;
    }
    return {};
}

std::string_view soname_of(const dl_phdr_info &object) noexcept
{
    for (int i = 0; i < object.dlpi_phnum; i++) {
        const ElfW(Phdr) &part = object.dlpi_phdr[i];
        if (part.p_type != PT_DYNAMIC)
            continue;
        const std::size_t size = std::min(part.p_filesz, part.p_memsz);
        const dynamic_names names = names_in(mapped(object, part.p_vaddr, size));
        const auto table = pointed_to(object, names.table, names.size);
        if (names.own == 0 || names.own >= table.size())
            return "";
        const auto name = table.subspan(names.own);
        const auto end = std::ranges::find(name, 0);
        if (end == name.end())
            return "";
        return {reinterpret_cast<const char *>(name.data()),
                static_cast<std::size_t>(end - name.begin())};
    }
    return "";
}

std::string hexadecimal(std::span<const unsigned char> bytes)
{
    constexpr char digits[] = "0123456789abcdef";
    std::string text;
    for (const unsigned char byte : bytes) {
        text += digits[byte >> 4];
        text += digits[byte & 15];
    }
    return text;
}

std::string build_id_of(const dl_phdr_info &object)
{
    return hexadecimal(build_id_bytes(object));
}

std::string identity_of_replaced(std::uint64_t inode)
{
    return std::string(kReplaced) + std::to_string(inode);
}

bool is_same_build(std::string_view one, std::string_view other) noexcept
{
    return one == other && !one.starts_with(kReplaced);
}

namespace {

noted_object noted(std::uintptr_t address)
{
    noted_object found{address, std::vector<char>(1 << 10), std::vector<unsigned char>(64)};
    while (dl_iterate_phdr(note, &found), !found.is_complete()) {
        found.path.resize(found.path_size);
        found.id.resize(found.id_size);
    }
    found.path.resize(found.path_size);
    found.id.resize(found.id_size);
    return found;
}

} // namespace

std::string identity_of_program()
{
    const noted_object found = noted(kProgram);
    /* The kernel keeps the program under this name, whatever becomes of its file. */
    return found.id.empty() ? checksum_of("/proc/self/exe") : hexadecimal(found.id);
}

std::string identity_of_library(const void *address)
{
    const noted_object found = noted(reinterpret_cast<std::uintptr_t>(address));
    if (!found.id.empty())
        return hexadecimal(found.id);
    const mapped_file mapped = first_within(mapped_files(), found.address, found.address + 1);
    const open_file_of file(std::string(found.path.data(), found.path.size()), mapped);
    std::string sum = file ? file.checksum() : "";
    return sum.empty() ? identity_of_replaced(mapped.inode) : sum;
}

std::string checksum_of(const std::string &path)
{
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return "";
    std::string sum = checksum_of(file);
    close(file);
    return sum;
}

std::string checksum_of(int file)
{
    std::array<char, 64 << 10> block;
    std::uint32_t sum = 0;
    std::uint64_t size = 0;
    for (;;) {
        const ssize_t got = pread(file, block.data(), block.size(), static_cast<off_t>(size));
        if (got == 0)
            return "crc32c-" + std::to_string(sum) + "-" + std::to_string(size);
        if (got > 0) {
            sum = zc_crc32c(sum, block.data(), static_cast<std::size_t>(got));
            size += static_cast<std::uint64_t>(got);
        } else if (errno != EINTR) {
            return "";
        }
    }
}

} // namespace zc::migrate
