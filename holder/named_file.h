/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_HOLDER_NAMED_FILE_H_INCLUDED
#define ZC_HOLDER_NAMED_FILE_H_INCLUDED

#include <string>

#include <sys/stat.h>

namespace zc::holder {

/** Whether @path is the name of the open file @fd still, and no link to it: another process may
 * have removed it, or put another one in its place, before it was locked. */
inline bool is_named(int fd, const std::string &path)
{
    struct stat held, named;
    return fstat(fd, &held) == 0 && lstat(path.c_str(), &named) == 0 &&
           held.st_ino == named.st_ino && held.st_dev == named.st_dev;
}

} // namespace zc::holder

#endif
