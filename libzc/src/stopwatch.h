/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_STOPWATCH_H_INCLUDED
#define ZC_STOPWATCH_H_INCLUDED

#include "kernel.h"

namespace zc {

/** Time since it was made; or nothing at all, where it is not asked for. */
class stopwatch {
  public:
    explicit stopwatch(bool runs) : runs_(runs), start_(runs ? now_ns() : 0) {}
    double ns() const { return runs_ ? static_cast<double>(now_ns() - start_) : 0; }

  private:
    bool runs_;
    std::uint64_t start_;
};

} // namespace zc

#endif /* ZC_STOPWATCH_H_INCLUDED */
