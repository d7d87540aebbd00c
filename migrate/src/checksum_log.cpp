/* SPDX-License-Identifier: BSD-3-Clause */
#include "checksum_log.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "crc32c.h"
#include "error.h"

namespace zc::migrate {

using nlohmann::json;

struct checksum_log::file {
    std::string path;
    std::FILE *stream;
};

namespace {

std::vector<std::uint32_t> sums_of(const array &a)
{
    std::vector<std::uint32_t> sums;
    std::vector<std::byte> packed;
    const std::uint64_t units = a.units(), size = a.unit_bytes();
    for (std::uint64_t at = 0, some; at < units; at += some) {
        some = std::min(units_in_part(units), units - at);
        const std::byte *from = a.address + at * size;
        if (!a.is_dense()) {
            packed.resize(some * size);
            a.pack(at, packed);
            from = packed.data();
        }
        sums.push_back(zc_crc32c(0, from, some * size));
    }
    return sums;
}

const std::string &made(const std::string &directory)
{
    std::error_code ignored; /* what is wrong shows when a file is opened there */
    std::filesystem::create_directories(directory, ignored);
    return directory;
}

} // namespace

std::uint64_t units_in_part(std::uint64_t units)
{
    return (units + checksum_log::kParts - 1) / checksum_log::kParts;
}

checksum_log::checksum_log(const std::string &directory, int rank, std::int64_t every,
                           std::int64_t last)
    : position_(made(directory), rank), every_(every), last_(last)
{
    const std::string path = directory + "/rank-" + std::to_string(rank);
    std::FILE *stream = std::fopen(path.c_str(), "ae");
    if (!stream)
        throw_errno(errno, path);
    file_.reset(new file{path, stream});
}

checksum_log::~checksum_log()
{
    std::fclose(file_->stream);
}

void checksum_log::write(const std::string &line)
{
    std::fputs((line + "\n").c_str(), file_->stream);
}

void checksum_log::flush()
{
    if (std::fflush(file_->stream) != 0)
        throw_errno(errno, file_->path);
}

void checksum_log::record(std::int64_t safe_point, const registry &data)
{
    for (const auto &[name, a] : data.all())
        write(json{{"at", safe_point},
                   {"name", name},
                   {"type", a.type_name()},
                   {"count", a.count},
                   {"units", a.units()},
                   {"sums", sums_of(a)}}
                  .dump());
    write(json{{"at", safe_point}, {"end", data.all().size()}}.dump());
    flush();
    last_ = safe_point;
}

void checksum_log::moved(std::int64_t safe_point)
{
    write(json{{"moved", safe_point}}.dump());
    flush();
}

} // namespace zc::migrate
