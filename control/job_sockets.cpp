/* SPDX-License-Identifier: BSD-3-Clause */
#include "job_sockets.h"

#include <climits>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime_directory.h"

namespace zc::control {

std::string default_socket_directory()
{
    char path[PATH_MAX];
    zcm_runtime_directory(path, sizeof path);
    return path;
}

std::string last_socket_directory()
{
    return "/tmp/zcm-" + std::to_string(geteuid());
}

std::vector<std::string> all_socket_directories()
{
    std::vector<std::string> found;
    char path[PATH_MAX];
    for (int n = 0; zcm_runtime_place(n, path, sizeof path) == 0; n++) {
        struct stat s;
        if (n == 0 || (lstat(path, &s) == 0 && S_ISDIR(s.st_mode) && s.st_uid == geteuid() &&
                       !(s.st_mode & 077)))
            found.emplace_back(path);
    }
    return found;
}

} // namespace zc::control
