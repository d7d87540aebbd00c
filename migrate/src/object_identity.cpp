/* SPDX-License-Identifier: BSD-3-Clause */
#include "object_identity.h"

#include <array>
#include <cstdint>
#include <cstring>
#include <fstream>

#include "crc32c.h"

namespace zc::migrate {

namespace {

std::string hexadecimal(const unsigned char *bytes, std::size_t length)
{
    constexpr char digits[] = "0123456789abcdef";
    std::string text;
    for (std::size_t i = 0; i < length; i++) {
        text += digits[bytes[i] >> 4];
        text += digits[bytes[i] & 15];
    }
    return text;
}

/** In one segment of notes; "" if it is not there. */
std::string build_id_in(const char *at, std::size_t size)
{
    constexpr auto padded = [](std::size_t n) { return (n + 3) & ~std::size_t{3}; };
    for (const char *const end = at + size; at + sizeof(ElfW(Nhdr)) <= end;) {
        ElfW(Nhdr) note;
        std::memcpy(&note, at, sizeof note);
        const char *const name = at + sizeof note;
        const char *const what = name + padded(note.n_namesz);
        at = what + padded(note.n_descsz);
        if (at <= end && note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
            std::memcmp(name, "GNU", 4) == 0)
            return hexadecimal(reinterpret_cast<const unsigned char *>(what), note.n_descsz);
    }
    return "";
}

} // namespace

std::string build_id_of(const dl_phdr_info &object)
{
    std::string id;
    for (int i = 0; i < object.dlpi_phnum && id.empty(); i++) {
        const ElfW(Phdr) &part = object.dlpi_phdr[i];
        if (part.p_type == PT_NOTE)
            id = build_id_in(reinterpret_cast<const char *>(object.dlpi_addr + part.p_vaddr),
                             part.p_memsz);
    }
    return id;
}

std::string checksum_of(const std::string &path)
{
    std::ifstream file(path, std::ios::binary);
    if (!file)
        return "";
    std::array<char, 64 << 10> block;
    std::uint32_t sum = 0;
    std::uint64_t size = 0;
    while (file.read(block.data(), block.size()), file.gcount() > 0) {
        const auto got = static_cast<std::size_t>(file.gcount());
        sum = zc_crc32c(sum, block.data(), got);
        size += got;
    }
    return "crc32c-" + std::to_string(sum) + "-" + std::to_string(size);
}

} // namespace zc::migrate
