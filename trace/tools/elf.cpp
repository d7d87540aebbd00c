/* SPDX-License-Identifier: BSD-3-Clause */
#include "elf.h"

#include <elf.h>

#include <cstring>
#include <fstream>
#include <limits>

namespace zc::zct {

namespace {

/* Tables larger than this are not what a linker makes. */
constexpr std::uint64_t kMaxTable = std::uint64_t{1} << 26;

class elf_file {
  public:
    explicit elf_file(const std::filesystem::path &path) : in_(path, std::ios::binary)
    {
        valid_ = read(0, header_) && std::memcmp(header_.e_ident, ELFMAG, SELFMAG) == 0 &&
                 header_.e_ident[EI_CLASS] == ELFCLASS64 &&
                 header_.e_phentsize == sizeof(Elf64_Phdr);
    }

    std::vector<std::string> needed()
    {
        std::vector<std::string> names;
        Elf64_Phdr dynamic{};
        if (!valid_ || !find(PT_DYNAMIC, 0, dynamic) || dynamic.p_filesz > kMaxTable)
            return names;
        std::vector<std::uint64_t> offsets;
        std::uint64_t strings = 0;
        for (std::uint64_t at = 0; at + sizeof(Elf64_Dyn) <= dynamic.p_filesz;
             at += sizeof(Elf64_Dyn)) {
            Elf64_Dyn entry{};
            if (!read(dynamic.p_offset + at, entry) || entry.d_tag == DT_NULL)
                break;
            if (entry.d_tag == DT_NEEDED)
                offsets.push_back(entry.d_un.d_val);
            else if (entry.d_tag == DT_STRTAB)
                strings = entry.d_un.d_ptr;
        }
        Elf64_Phdr load{};
        if (!find(PT_LOAD, strings, load))
            return names;
        for (const std::uint64_t offset : offsets)
            names.push_back(string_at(strings - load.p_vaddr + load.p_offset + offset));
        return names;
    }

  private:
    template <typename T>
    bool read(std::uint64_t at, T &to)
    {
        if (at > std::uint64_t{std::numeric_limits<std::int64_t>::max()})
            return false;
        in_.clear();
        in_.seekg(static_cast<std::streamoff>(at));
        in_.read(reinterpret_cast<char *>(&to), sizeof(to));
        return in_.good();
    }

    /** The first segment of a type; a PT_LOAD must hold @address. */
    bool find(std::uint32_t type, std::uint64_t address, Elf64_Phdr &found)
    {
        for (unsigned i = 0; i < header_.e_phnum; i++) {
            if (!read(header_.e_phoff + i * sizeof(Elf64_Phdr), found))
                return false;
            const bool holds = address >= found.p_vaddr && address - found.p_vaddr < found.p_filesz;
            if (found.p_type == type && (type != PT_LOAD || holds))
                return true;
        }
        return false;
    }

    std::string string_at(std::uint64_t at)
    {
        std::string text;
        char c = 0;
        while (text.size() < 4096 && read(at++, c) && c)
            text += c;
        return text;
    }

    std::ifstream in_;
    Elf64_Ehdr header_{};
    bool valid_;
};

} // namespace

std::vector<std::string> needed_libraries(const std::filesystem::path &file)
{
    std::error_code problem;
    if (!std::filesystem::is_regular_file(file, problem))
        return {};
    return elf_file(file).needed();
}

} // namespace zc::zct
