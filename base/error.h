/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_BASE_ERROR_H_INCLUDED
#define ZC_BASE_ERROR_H_INCLUDED

#include <cerrno>
#include <exception>
#include <new>
#include <stdexcept>
#include <string>

namespace zc {

/** An errno and one line that names the culprit. Never crosses the C interface. */
class error : public std::runtime_error {
  public:
    error(int code, const std::string &what) : std::runtime_error(what), code_(code) {}
    int code() const noexcept { return code_; }

  private:
    int code_;
};

/** The same, with the system's own text behind @what. */
[[noreturn]] void throw_errno(int code, const std::string &what);

/** What @problem says; of a lack of memory std::bad_alloc says but its own name. */
inline std::string reason_of(const std::exception &problem)
{
    return dynamic_cast<const std::bad_alloc *>(&problem) ? "out of memory" : problem.what();
}

} // namespace zc

#endif
