/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_PROC_TEXT_H_INCLUDED
#define ZC_PROC_TEXT_H_INCLUDED

#include "vma.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <string_view>
#include <unistd.h>

namespace zc {

/** Parses a line of /proc/PID/maps, or a head line of smaps. */
bool parse_maps_line(std::string_view line, vma &out);

/** Classifies a mapping's name: sets file-independent fields of @out. */
void classify_name(std::string_view name, vma &out);

/**
 * for_each_line - feeds a /proc file line by line
 * @each: bool(std::string_view line); false stops
 *
 * Opened anew each time, so that it always speaks of the calling process.
 * Return: 0 or -errno.
 */
template <typename F>
int for_each_line(const char *path, F each)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    std::array<char, 32768> buffer;
    std::size_t held = 0;
    int err = 0;
    for (bool more = true; more;) {
        ssize_t n = read(fd, buffer.data() + held, buffer.size() - held);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            err = n < 0 ? -errno : 0;
            break;
        }
        held += static_cast<std::size_t>(n);
        std::string_view text(buffer.data(), held);
        for (std::size_t eol; more && (eol = text.find('\n')) != text.npos;) {
            more = each(text.substr(0, eol));
            text.remove_prefix(eol + 1);
        }
        /* A line longer than the buffer (a very long path) is cut: what
         * matters stands at its beginning. */
        if (text.size() == buffer.size()) {
            more = more && each(text);
            text = {};
        }
        std::memmove(buffer.data(), text.data(), text.size());
        held = text.size();
    }
    close(fd);
    return err;
}

} // namespace zc

#endif /* ZC_PROC_TEXT_H_INCLUDED */
