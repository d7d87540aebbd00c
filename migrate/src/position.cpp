/* SPDX-License-Identifier: BSD-3-Clause */
#include "position.h"

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <fcntl.h>
#include <fstream>
#include <unistd.h>

#include "error.h"

namespace zc::migrate {

namespace {

/* All lines have the same length: one replaces the other as a whole. */
constexpr const char *kLine = "%20" PRId64 " %-7s\n";
constexpr const char *kEnded = "ended", *kRuns = "runs";

std::string path_of(const std::string &directory, int rank)
{
    return directory + "/rank-" + std::to_string(rank) + ".at";
}

} // namespace

position_file::position_file(const std::string &directory, int rank)
    : path_(path_of(directory, rank)),
      file_(open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666))
{
    if (file_ < 0)
        throw_errno(errno, path_);
}

position_file::~position_file()
{
    close(file_);
}

void position_file::write(const position &here)
{
    char line[64];
    const int length =
        std::snprintf(line, sizeof line, kLine, here.safe_point, here.ended ? kEnded : kRuns);
    if (pwrite(file_, line, static_cast<std::size_t>(length), 0) != length)
        throw_errno(errno, path_);
}

std::vector<position> positions_in(const std::string &directory)
{
    std::vector<position> all;
    for (int rank = 0;; rank++) {
        std::ifstream file(path_of(directory, rank));
        if (!file)
            return all;
        position one;
        std::string state;
        file >> one.safe_point >> state;
        one.ended = state == kEnded;
        all.push_back(one);
    }
}

} // namespace zc::migrate
