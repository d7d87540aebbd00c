/* SPDX-License-Identifier: BSD-3-Clause */
#include "commit_record.h"

#include <cerrno>
#include <fcntl.h>
#include <fstream>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "descriptor.h"
#include "durable_file.h"
#include "error.h"

namespace zc::holder {

void write_record(const std::string &path, const commit_record &what)
{
    durable_file file(path);
    const std::string text = nlohmann::json{{"incarnation", what.incarnation},
                                            {"place", what.place},
                                            {"before", what.before}}
                                 .dump() +
                             "\n";
    const descriptor part{
        open(file.part().c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600)};
    if (part.fd < 0 ||
        write(part.fd, text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
        fsync(part.fd) != 0)
        throw_errno(errno, file.part());
    file.finish();
}

std::optional<commit_record> read_record(const std::string &path)
{
    std::ifstream file(path);
    if (!file) {
        if (errno == ENOENT)
            return {};
        throw_errno(errno, path);
    }
    const auto read = nlohmann::json::parse(file, nullptr, false);
    if (!read.is_object() || !read.contains("incarnation") || !read.contains("place"))
        throw error(EBADMSG, path + " is no record of zc-hold");
    return commit_record{read.at("incarnation"), read.at("place"), read.value("before", "")};
}

} // namespace zc::holder
